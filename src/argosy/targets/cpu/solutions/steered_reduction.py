"""Reductions over axes that an operand gives."""

from __future__ import annotations

from typing import Any

from argosy.ir.types import TensorType
from argosy.targets.cpu.codegen.steered_reduction import reduction_sizes, steered_reduction, total_type
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.cpu.solutions.steered import define_sizes

__all__ = ["SteeredReduction"]


@register_solution
class SteeredReduction(LoneOp):
    """One pass over the operand, which adds every element to its total."""

    name = "steered reduction"
    anchors = frozenset({"reduce"})
    rank = -1

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps, reduction_sizes)
        (reduce,) = problem.module.instructions
        totals = steps.temporary(TensorType(total_type(reduce), reduce.result().shape))
        self.call(problem, steps, steered_reduction(problem.module), writes=[steps.result(), totals])
