"""The steps that check demands on sizes before an op runs; see `argosy.ops.demands`."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from argosy.artifact.plan import CallStep, ScalarArgument
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction
from argosy.ops.demands import Demand, demands_of
from argosy.ops.fused import Fused
from argosy.targets.cpu.codegen.demand_check import DEMAND_CHECK, demand_words

__all__ = ["check_steps"]


def check_steps(
    instruction: Instruction, known: AbstractSet[str], met: set[Demand], size: Callable[[DimLike], int | str]
) -> list[CallStep]:
    """What must be checked before an instruction; `met` is what was checked on the way there, and is added to.

    Demands on symbols that are not `known` yet are left to the op itself, which gives them their values. `size` is
    how the plan writes a dim.
    """
    op = instruction.op
    steps = []
    for inner in op.module.instructions if isinstance(op, Fused) else (instruction,):
        found = [demand for demand in demands_of(inner) if demand.symbols <= known and demand not in met]
        if found:
            met.update(found)
            words = enumerate(demand_words(found))
            scalars = tuple(ScalarArgument(8 * slot, "int64", size(word)) for slot, word in words)
            source = inner.source or instruction.source
            steps.append(CallStep(0, DEMAND_CHECK.entry, 1, 8 * len(scalars), scalars, (), (), 0, source))
    return steps
