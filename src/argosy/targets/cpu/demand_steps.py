"""The steps that check demands on sizes before an op runs; see `argosy.ops.demands`."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from argosy.artifact.plan import CallStep, ScalarArgument
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction
from argosy.ops.demands import Demand
from argosy.targets.cpu.codegen.demand_check import DEMAND_CHECK, demand_words
from argosy.targets.lowering.demands import new_demands

__all__ = ["check_steps"]


def check_steps(
    instruction: Instruction, known: AbstractSet[str], met: set[Demand], size: Callable[[DimLike], int | str]
) -> list[CallStep]:
    """What must be checked before an instruction; see `lowering.demands`. `size` is how the plan writes a dim."""
    steps = []
    for source, found in new_demands(instruction, known, met):
        words = enumerate(demand_words(found))
        scalars = tuple(ScalarArgument(8 * slot, "int64", size(word)) for slot, word in words)
        steps.append(CallStep(0, DEMAND_CHECK.entry, 1, 8 * len(scalars), scalars, (), (), 0, source, whole=True))
    return steps
