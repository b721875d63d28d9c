"""Whether the launches of a run, as `argosy perf` times them, sum to the run, and how near to the roofline they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import argosy
from argosy.profiling import Report

__all__ = ["BAR", "Sums", "sums"]

BAR: Final = 0.10
"""How far the sum may be from the run, as a share of it."""
_RUNS: Final = 100
_SLOWEST: Final = 8


@dataclass(frozen=True, slots=True)
class Sums:
    """A report, and what is looked at of it: seconds of the launches as one graph, and the sum of each by itself."""

    report: Report
    graph: float
    summed: float

    @property
    def apart(self) -> float:
        """How far the sum is from the graph, as a share of that."""
        return self.summed / self.graph - 1

    def lines(self) -> list[str]:
        """As text: a line for the run, and one for each of the launches that take longest."""
        known = [entry for entry in self.report.instructions if entry.least is not None]
        least, spent = (math.fsum(getattr(entry, name) for entry in known) for name in ("least", "seconds"))
        outside = self.report.outside
        rest = f"  beside it {outside.seconds * 1e6:.1f}" if outside is not None else ""
        rates = f"{(self.report.operations or 0) / self.graph / 1e12:.1f} TFLOP/s"
        summed = f"sum of launches {self.summed * 1e6:.1f} ({self.apart:+.1%}, bar {BAR:.0%})"
        share = f"{least / spent if spent else 0:.0%} of {spent / self.summed if self.summed else 0:.0%} of the time"
        slowest = sorted(self.report.instructions, key=lambda entry: -entry.seconds)[:_SLOWEST]
        return [
            f"    run {self.report.times.median * 1e6:.1f} us{rest}  graph {self.graph * 1e6:.1f}  {summed}  {rates}",
            f"    roofline {share}, where it is known",
            *(f"    {e.seconds * 1e6:8.1f} us  {e.op}  {e.node}  {e.type}{e.rates_text}" for e in slowest),
        ]


def sums(session: argosy.Session, given: dict[str, Any]) -> Sums:
    """Measure a session whose runs are one row of fixed launches."""
    report = argosy.perf(session, inputs=given, iterations=_RUNS)
    if report.device_seconds is None:
        raise SystemExit("its launches are not timed by the device")
    return Sums(report, report.device_seconds, report.instruction_seconds)
