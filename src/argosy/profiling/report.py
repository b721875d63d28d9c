"""What a measurement found: frozen, as text for people, as plain data and as CSV for programs. Times are seconds."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import textwrap
from dataclasses import dataclass
from typing import Any, Final

from argosy.profiling.comparing import Compared
from argosy.profiling.footprint import Footprint, size_words
from argosy.profiling.instructions import InstructionTime, OpTime, ShapeTime
from argosy.profiling.outside import Outside
from argosy.profiling.spans import Span, trace
from argosy.profiling.tables import WIDTH, instruction_table, op_table, shape_table
from argosy.profiling.times import Times

__all__ = ["Report"]

_SLOWEST: Final = 20
"""Ops and instructions that the text lists; JSON has all."""
_SHAPES: Final = 10
"""Ops with a shape that the text lists; JSON has all."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of `perf`. `str(report)` is the text that the command line shows.

    `first` is the first run, which may load and prepare; it and the `warmup` runs are not among `times`.
    Instructions are measured in runs of their own, `observed` of them, because watching takes time.
    """

    variant: str
    inputs: dict[str, str]
    first: float
    warmup: int
    times: Times
    observed: int
    instructions: tuple[InstructionTime, ...]
    ops: tuple[OpTime, ...]
    shapes: tuple[ShapeTime, ...]
    footprint: Footprint
    operations: int | None
    """Multiplications and additions of its products, convolutions and recurrences; None where they are not known."""
    least: tuple[float, str] | None
    """Seconds that they take at the peaks of the arch's row, and the row's product."""
    peak_memory: int | None = None
    """Bytes: the most that the process has had in memory, the compiler's with it where it compiled."""
    device_seconds: float | None = None
    """Launches of a run on a GPU as one graph, by its clock, without copies; then instructions are timed by it too."""
    outside: Outside | None = None
    """What the median run takes beside its kernels; None on `ref`, which has none."""
    ranges: str = ""
    """The library by which profilers saw its runs, which went step by step then; empty without ranges."""
    compared: tuple[Compared, ...] = ()
    """What was measured in turn with `times`."""
    emulated: bool = False
    """Whether a GPU was emulated, so that times say nothing of it; the text leaves out what is counted by them."""
    spans: tuple[Span, ...] = ()
    """Every execution in the observed runs, in order; `to_json` leaves them out, `to_trace` has them."""

    @property
    def instruction_seconds(self) -> float:
        """The sum over all instructions."""
        return math.fsum(entry.seconds for entry in self.instructions)

    @property
    def gflops(self) -> float | None:
        """Billions of the model's operations in a second of the median run."""
        return self.operations / self.times.median / 1e9 if self.operations and self.times.median else None

    @property
    def peak_share(self) -> float | None:
        """The time at the peaks of the arch's row as a share of the median run."""
        return self.least[0] / self.times.median if self.least and self.times.median else None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        told = dataclasses.asdict(dataclasses.replace(self, spans=()))
        del told["spans"]
        for name in ("instructions", "ops", "shapes"):
            for entry, rated in zip(told[name], getattr(self, name), strict=True):
                entry.update(rated.rates)
        return {
            **told,
            "instruction_seconds": self.instruction_seconds,
            "gflops": self.gflops,
            "peak_share": self.peak_share,
        }

    def to_trace(self) -> dict[str, Any]:
        """The observed runs in the Trace Event Format, which Perfetto and chrome://tracing open."""
        return trace(self.variant, self.spans, self.instructions if self.device_seconds is not None else ())

    def to_csv(self) -> str:
        """A line for each instruction, in the order of execution."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        head = ("node", "op", "operands", "type", "seconds", "share", "calls", "operations", "bytes")
        writer.writerow((*head, "gflops", "gbytes", "roofline"))
        writer.writerows(
            (
                entry.node,
                entry.op,
                entry.operands,
                entry.type,
                f"{entry.seconds:.9f}",
                f"{entry.share:.6f}",
                entry.calls,
                entry.operations,
                entry.bytes,
                *(None if rate is None else f"{rate:.4g}" for rate in entry.rates.values()),
            )
            for entry in self.instructions
        )
        return text.getvalue()

    def _beside(self) -> list[str]:
        """What the device took, and what is outside of kernels."""
        lines = [f"  launches {_ms(self.device_seconds)} as one graph, on the device"] if self.device_seconds else []
        return [*lines, *([f"  {self.outside.line(self.times.median)}"] if self.outside is not None else [])]

    def _memory(self) -> str:
        peak = "" if self.peak_memory is None else f"  process at most {size_words(self.peak_memory)}"
        return f"  {self.footprint.memory}{peak}"

    def _work(self) -> list[str]:
        if self.operations is None or self.gflops is None or self.emulated:
            return []
        scale, unit = (1e9, "GFLOP") if self.operations >= 1e8 else (1e6, "MFLOP")
        line = f"  {self.operations / scale:.3g} {unit} in products and convolutions  {self.gflops:.3g} GFLOP/s"
        if self.least is not None and self.peak_share is not None:
            line += f"  {self.peak_share:.1%} of the peak of {self.least[1]}"
        return [line]

    def _compared(self) -> list[str]:
        if not self.compared:
            return []
        lines = [f"compared, {self.times.count} rounds in turn; ratio: its median over ours, above 1 ours is faster"]
        for entry in self.compared:
            times = "  ".join(f"{name} {_ms(value)}" for name, value in entry.times.columns()[:2])
            lines.append(f"  {entry.ratio:6.2f} x  {times}  {entry.name}")
            lines += [f"            outputs differ: {entry.differs}"] * bool(entry.differs)
        return lines

    def __str__(self) -> str:
        times, rated = self.times, not self.emulated
        lines = [f"variant {self.variant}"]
        for name, told in self.inputs.items():
            lines += textwrap.wrap(f"input {name}: {told}", WIDTH, initial_indent="  ", subsequent_indent="    ")
        lines += ["emulated: times are those of the emulator, and say nothing of a device"] * self.emulated
        lines += [
            f"end to end, {_runs(times.count)} after {self.warmup + 1} to warm up (the first took {_ms(self.first)})",
            *([f"  step by step, with ranges of {self.ranges}"] if self.ranges else []),
            "  " + "  ".join(f"{name} {_ms(value)}" for name, value in times.columns()),
            f"  quartiles {times.spread:.1%} of the median apart  throughput {times.throughput:.1f} runs/s",
            self._memory(),
            *([f"  {self.footprint.steps}"] if self.footprint.steps else []),
            *self._beside(),
            *self._work(),
            *self._compared(),
            "by op, what the run is longer by for each launch, by the device's clock"
            if self.device_seconds is not None
            else f"by op, medians of {_runs(self.observed, 'observed ')}",
            *op_table(self.ops, _SLOWEST, rated=rated),
            "by op and shape, slowest first",
            *shape_table(self.shapes, _SHAPES, rated=rated),
            "by instruction, slowest first",
            *instruction_table(self.instructions, _SLOWEST, rated=rated),
        ]
        return "\n".join([*lines, self._sum()])

    def _sum(self) -> str:
        whole, what = self.times.median, "the median run"
        if self.device_seconds is not None:
            whole, what = self.device_seconds, "the launches as one graph"
        apart = whole - self.instruction_seconds
        share = f" ({abs(apart) / whole:.1%})" if whole else ""
        more = f"{_ms(abs(apart))}{share} {'more' if apart < 0 else 'less'}"
        return f"sum of instructions {_ms(self.instruction_seconds)}, {more} than {what}"


def _runs(count: int, what: str = "") -> str:
    return f"{count} {what}run{'s' * (count != 1)}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.{1 if seconds >= 0.1 else 3}f} ms"
