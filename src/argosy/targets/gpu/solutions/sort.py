"""The k best of each line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import INT64
from argosy.ir.types import TensorType
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.sort import TopK
from argosy.targets.gpu.codegen.radix import SORT_BLOCKS, SortedLines, key_of
from argosy.targets.gpu.codegen.topk import CHUNK, chunk_kernel, keys_kernel, rank_kernel, taken_kernel, topk_sizes
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.sorting import sort_lines
from argosy.targets.gpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["TopKChunks", "TopKRadix", "TopKRanks"]

_MOST: Final = CHUNK // 4
"""Elements that a chunk may pass on, so that each round leaves a quarter at most."""
_SHORT: Final = 512
"""Elements of a line that are compared with one another in less time than the launches of a sort take."""


@register_solution
class TopKChunks(Solution):
    """Chunks are sorted in registers, then what each passes on, until one is left."""

    name = "top-k chunks"
    anchors: ClassVar = frozenset({"topk"})

    def applies(self, problem: Problem) -> str:
        anchor = problem.anchor_instruction
        x, size, kept = present(anchor, 0), *_sizes(problem)
        if x.dtype.compute.bits > 32:
            return "a key has more than 32 bits"
        most = dims.bounds(size)[1]
        if most is not None and most <= CHUNK:
            return ""
        if not isinstance(size, int):
            return "how often chunks are sorted depends on data"
        return "" if isinstance(kept, int) and kept <= _MOST else "a chunk passes on too much"

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, topk_sizes)
        anchor, module = problem.anchor_instruction, problem.module
        x, left, kept = present(anchor, 0), *_sizes(problem)
        lines = product(x.shape[: _axis(problem)] + x.shape[_axis(problem) + 1 :])
        reads = [steps.operand(index) for index in range(len(module.parameters))]
        given: DimLike | None = None
        while isinstance(left, int) and left > CHUNK and isinstance(kept, int):
            chunks = ceildiv(left, CHUNK)
            passed = steps.temporary(TensorType(INT64, (lines, chunks * kept)))
            steps.launch(chunk_kernel(module, problem.orders, given, kept), reads, [passed])
            reads = [*reads[: len(module.parameters)], passed]
            given = left = chunks * kept
        results = [steps.result(0), steps.result(1)]
        steps.launch(chunk_kernel(module, problem.orders, given, None), reads, results)


@register_solution
class TopKRadix(Solution):
    """All lines are sorted by their keys, a digit a pass, whatever their length."""

    name = "top-k radix"
    anchors: ClassVar = frozenset({"topk"})
    rank = -1

    def applies(self, problem: Problem) -> str:
        size = _sizes(problem)[0]
        most = dims.bounds(size)[1]
        if most is not None and most <= _SHORT:
            return "lines are so short that ranks cost less"
        return ""

    def configs(self, problem: Problem) -> Sequence[int]:
        del problem
        return SORT_BLOCKS

    def lower(self, problem: Problem, config: int, steps: Steps) -> None:
        define_sizes(problem, steps, topk_sizes)
        anchor, module, size = problem.anchor_instruction, problem.module, _sizes(problem)[0]
        x, axis = present(anchor, 0), _axis(problem)
        _, bits = key_of("x", x.dtype)
        order = SortedLines(product(x.shape[:axis] + x.shape[axis + 1 :]), size, bits, config)
        reads = [steps.operand(index) for index in range(len(module.parameters))]
        keys = steps.temporary(TensorType(order.dtype, (order.lines, size)))
        steps.launch(keys_kernel(module, problem.orders), reads, [keys])
        _, positions = sort_lines(steps, keys, order)
        steps.launch(
            taken_kernel(module, problem.orders, order.places), [*reads, positions], [steps.result(0), steps.result(1)]
        )


@register_solution
class TopKRanks(Solution):
    """Every element is compared with all others of its line."""

    name = "top-k ranks"
    anchors: ClassVar = frozenset({"topk"})
    rank = -2

    def applies(self, problem: Problem) -> str:
        del problem
        return ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, topk_sizes)
        reads = [steps.operand(index) for index in range(len(problem.module.parameters))]
        steps.launch(rank_kernel(problem.module, problem.orders), reads, [steps.result(0), steps.result(1)])


def _axis(problem: Problem) -> int:
    anchor = problem.anchor_instruction
    return normalize_axis(op_of(anchor, TopK).axis, present(anchor, 0).rank)


def _sizes(problem: Problem) -> tuple[DimLike, DimLike]:
    """The length of a line, and how many elements of it are kept."""
    anchor, axis = problem.anchor_instruction, _axis(problem)
    return present(anchor, 0).shape[axis], anchor.result().shape[axis]
