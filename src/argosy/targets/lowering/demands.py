"""Demands on sizes that an instruction adds to those checked on the way to it; see `argosy.ops.demands`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Literal

from argosy.artifact.plan import CheckStep, SizeDemand
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction
from argosy.ops.demands import BOTH, Demand, demands_of
from argosy.ops.fused import Fused

__all__ = ["check_steps", "new_demands"]


def new_demands(
    instruction: Instruction, known: AbstractSet[str], met: set[Demand]
) -> Iterator[tuple[str, list[Demand]]]:
    """What must be checked before an instruction, by the node that asks; `met` is what was, and is added to.

    Demands on symbols that are not `known` yet are left to the op itself, which gives them their values.
    """
    op = instruction.op
    for inner in op.module.instructions if isinstance(op, Fused) else (instruction,):
        found = [demand for demand in demands_of(inner) if demand.symbols <= known and demand not in met]
        if found:
            met.update(found)
            yield inner.source or instruction.source, found


def check_steps(
    instruction: Instruction, known: AbstractSet[str], met: set[Demand], size: Callable[[DimLike], int | str]
) -> list[CheckStep]:
    """The steps that check them on the host. `size` is how the plan writes a dim."""
    return [
        CheckStep(tuple(SizeDemand(size(d.left), size(d.right), d.axis, _ones(d)) for d in found), source)
        for source, found in new_demands(instruction, known, met)
    ]


def _ones(demand: Demand) -> Literal["none", "left", "right", "both", "planned"]:
    if demand.spreads != BOTH:
        return "left" if demand.spreads & 1 else "right" if demand.spreads & 2 else "none"
    return "both" if isinstance(demand.left, int) or isinstance(demand.right, int) else "planned"
