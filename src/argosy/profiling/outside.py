"""What a run takes beside its kernels: host steps, copies, starting them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.profiling.footprint import size_words
from argosy.profiling.instructions import InstructionTime
from argosy.profiling.watching import Watched

__all__ = ["Outside"]


@dataclass(frozen=True, slots=True)
class Outside:
    """Of the median run, the `seconds` that it takes beside its kernels, and what they go into as far as it is known.

    They are below zero where watching the kernels took longer. `host_steps` are executions of ops that numpy evaluates,
    `host_seconds` theirs in the watched runs. `copied_in` and `copied_out` are bytes that a run copies to where kernels
    read them and from where they wrote them: on a GPU to and from the device, of host steps too; on a CPU inputs that
    are not read where they are, and results.
    """

    seconds: float
    host_steps: int
    host_seconds: float
    copied_in: int
    copied_out: int

    @staticmethod
    def of(seconds: float, instructions: Sequence[InstructionTime], watched: Watched) -> Outside:
        """Sums up what was watched."""
        host = [entry for entry in instructions if not entry.is_kernel]
        calls, spent = sum(entry.calls for entry in host), sum(entry.seconds for entry in host)
        return Outside(seconds, calls, spent, watched.copied_in, watched.copied_out)

    def line(self, median: float) -> str:
        """A line of the report, beside the median run."""
        share = f" ({self.seconds / median:.1%})" if median else ""
        spent = f"{self.seconds * 1e3:.3f} ms{share}" if self.seconds >= 0 else "no more than watching them takes"
        steps = f"{self.host_steps} host steps" + f" {self.host_seconds * 1e3:.3f} ms" * bool(self.host_steps)
        copies = f"copied in {size_words(self.copied_in)}, out {size_words(self.copied_out)}"
        return f"outside of kernels {spent}  {steps}  {copies}"
