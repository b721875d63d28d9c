"""Concat and split that are not index arithmetic of their readers: one kernel that copies all pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, equal
from argosy.ops.joining import Concat
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.cpu.codegen.loops import Nest, store_kernel
from argosy.targets.cpu.codegen.piece import pieces_of
from argosy.targets.cpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.cpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["ConcatCopies", "SplitCopies"]


@register_solution
class ConcatCopies(Solution):
    """Every operand is copied to its place in the result."""

    name = "concat copies"
    anchors = frozenset({"concat"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        (concat,) = problem.module.instructions
        result = concat.result()
        axis = normalize_axis(op_of(concat, Concat).axis, result.rank)
        start: DimLike = 0
        nests = []
        for number in range(len(concat.operands)):
            operand = present(concat, number)
            shape = (*result.shape[:axis], operand.shape[axis], *result.shape[axis + 1 :])
            begins: list[DimLike] = [0] * result.rank
            begins[axis] = start
            nests.append(Nest(operand, shape, 0, maps.slice_by(result.shape, shape, begins, [1] * result.rank)))
            start = operand.shape[axis] + start
        kernel = store_kernel(problem.module, [result.dtype], nests)
        if equal(product(result.shape[:axis]), 1):
            width = max(result.dtype.bits, 8) // 8
            sizes = [product((*nest.extents, width)) for nest in nests]
            kernel = replace(kernel, joins=tuple(enumerate(sizes)))
        else:
            kernel = replace(kernel, apart="axes before the one that is joined are not of size 1")
        steps.call(kernel, [steps.operand(i) for i in range(len(problem.module.parameters))], [steps.result()])


@register_solution
class SplitCopies(Solution):
    """Every piece is copied out of the operand."""

    name = "split copies"
    anchors = frozenset({"split"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        (split,) = problem.module.instructions
        define_sizes(problem, steps)
        nests = [
            Nest(piece, piece.shape, number, maps.identity(piece.shape)) for number, piece in enumerate(split.results)
        ]
        kernel = store_kernel(problem.module, [piece.dtype for piece in split.results], nests)
        kernel = replace(kernel, pieces=pieces_of(problem.module))
        reads = [steps.operand(i) for i in range(len(problem.module.parameters))]
        steps.call(kernel, reads, [steps.result(number) for number in range(len(split.results))])
