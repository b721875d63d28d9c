"""What a run takes beside time: memory, and steps that the host evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argosy.artifact.artifact import Artifact
from argosy.artifact.manifest import VariantRecord
from argosy.artifact.plan import CallStep, CopyStep, EvaluateStep, LaunchStep, PlanRecord, steps_in
from argosy.runtime.planned_memory import PlannedMemory

__all__ = ["Footprint", "footprint", "peak_memory", "size_words"]


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes that a run takes, and the steps of its plan, those of every branch counted once.

    `weights` are the bytes that the artifact holds, `arena` those of the block in which a run keeps what it computes,
    `live` the most of it that is needed at once. `kernels` are calls or launches, `host_steps` what numpy evaluates,
    `copies` what is moved. None where it is not known: `ref` has no plan, and sizes may depend on data.
    """

    weights: int
    arena: int | None = None
    live: int | None = None
    kernels: int | None = None
    host_steps: int | None = None
    copies: int | None = None

    @property
    def memory(self) -> str:
        """Bytes, for people."""
        told = f"weights {size_words(self.weights)}"
        if self.arena is None or self.live is None:
            return told
        return f"{told}  arena {size_words(self.arena)}, {size_words(self.live)} of it live at once"

    @property
    def steps(self) -> str:
        """What the plan does, for people; empty where there is none."""
        if self.kernels is None:
            return ""
        return f"{self.kernels} kernels, {self.host_steps} host steps, {self.copies} copies"


def footprint(artifact: Artifact, variant: VariantRecord | None, sizes: Mapping[str, int]) -> Footprint:
    """The footprint of a variant (None for `ref`) at these sizes by symbol."""
    weights = artifact.weight_bytes
    if variant is None:
        return Footprint(weights)
    plan = artifact.plan(variant.key)
    steps = list(steps_in(plan.body))
    arena, live = _arena(plan, artifact.where, sizes)
    return Footprint(
        weights,
        arena,
        live,
        kernels=sum(isinstance(step, CallStep | LaunchStep) for step in steps),
        host_steps=sum(isinstance(step, EvaluateStep) for step in steps),
        copies=sum(isinstance(step, CopyStep) for step in steps),
    )


def peak_memory() -> int | None:
    """The most bytes that this process has had in memory, also before the runs; None where the system doesn't say.

    Source: VmHWM of proc(5), which unlike getrusage(2) does not count what the process was before an exec.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else None


def _arena(plan: PlanRecord, where: str, sizes: Mapping[str, int]) -> tuple[int | None, int | None]:
    memory = PlannedMemory(plan, where)
    if not set(memory.symbols) <= sizes.keys():
        return None, None
    placement = memory.placement(sizes)
    return placement.size, placement.live


def size_words(count: int) -> str:
    """A number of bytes for people."""
    if count < 2**10:
        return f"{count} B"
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
