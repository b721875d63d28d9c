"""Concatenations and splits: a copy for each part."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.ir.dim import DimLike
from argosy.ops.joining import Concat, Split
from argosy.ops.shapes import normalize_axis
from argosy.targets.gpu.codegen.joining import place_kernel, take_kernel
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.lowering.accesses import op_of, present, split_access

__all__ = ["Concatenation", "Splitting"]


@register_solution
class Concatenation(Solution):
    """Each operand is copied to its place."""

    name = "concat"
    anchors: ClassVar = frozenset({"concat"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        anchor = problem.anchor_instruction
        result = anchor.result()
        axis = normalize_axis(op_of(anchor, Concat).axis, result.rank)
        target = steps.result(0, problem.order)
        start: DimLike = 0
        for index in range(len(anchor.operands)):
            part = present(anchor, index)
            kernel = place_kernel(part.tensor, result.tensor, axis, start, problem.orders[index], problem.order)
            if part.shape[axis] != 0:
                steps.launch(kernel, [steps.operand(index)], [target])
            start = part.shape[axis] + start


@register_solution
class Splitting(Solution):
    """Each piece is copied from its place."""

    name = "split"
    anchors: ClassVar = frozenset({"split"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        anchor = problem.anchor_instruction
        op_of(anchor, Split)
        x = present(anchor, 0)
        order = problem.orders[0]
        for index in range(len(anchor.types)):
            kernel = take_kernel(anchor.result(index), x.tensor, split_access(anchor, index), order, order)
            steps.launch(kernel, [steps.operand(0)], [steps.result(index, order)])
