"""Distinct items of a tensor: by a sort, or where they are few, by comparing each with all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64, UINT8
from argosy.ir.types import TensorType
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.sort import Unique
from argosy.targets.gpu.codegen.distinct import Parts, distinct_results_kernel, first_kernel, place_kernel
from argosy.targets.gpu.codegen.radix import SORT_BLOCKS, SortedLines, key_of
from argosy.targets.gpu.codegen.runs import (
    first_place_kernel,
    flags_kernel,
    item_keys_kernel,
    leaders_kernel,
    run_items_kernel,
    runs_kernel,
)
from argosy.targets.gpu.codegen.selecting import blocks_of, count_kernel, offsets_kernel
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.data_dependent import pick_kernel
from argosy.targets.gpu.solutions.sorting import sort_lines
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["UniqueItems", "UniqueRuns"]

_SHORT: Final = 512
"""Items that are compared with one another in less time than the launches of a sort take."""
_ELEMENTS: Final = 16
"""Elements of an item, each of which takes a sort."""


def _items(problem: Problem) -> tuple[TensorType, Parts, bool]:
    """The tensor, its items, and whether they are wanted in order of size."""
    anchor = problem.anchor_instruction
    op, x = op_of(anchor, Unique), present(anchor, 0)
    if op.axis is None:
        return x.tensor, (1, product(x.shape), 1), op.sorted
    axis = normalize_axis(op.axis, x.rank)
    return x.tensor, (product(x.shape[:axis]), x.shape[axis], product(x.shape[axis + 1 :])), op.sorted


def _elements(parts: Parts) -> int:
    """Of an item; 0 where these are too many to sort by, or not known."""
    found = product((parts[0], parts[2]))
    return found if isinstance(found, int) and found <= _ELEMENTS else 0


def _pick(problem: Problem, steps: Steps, first: int, counts: int, total: int) -> None:
    """The results but for the places, which are there: of items that are distinct, known by their first occurrences."""
    kind, parts, _ = _items(problem)
    for number in (0, 1, 3):
        for name, _ in steps.undefined(number):
            steps.define(name, total)
    found = steps.result(1)
    steps.launch(distinct_results_kernel(parts[1]), [first, counts, steps.result(2)], [found, steps.result(3)])
    kernel = pick_kernel(kind.with_dims(parts), 1, problem.anchor_instruction.result(1).shape[0])
    steps.launch(kernel, [steps.ordered(0, None), found], [steps.result(0)])


@register_solution
class UniqueRuns(Solution):
    """Equal items are runs of the sorted ones; wanted in order of occurrence, the first ones are counted once more."""

    name = "unique runs"
    anchors: ClassVar = frozenset({"unique"})

    def applies(self, problem: Problem) -> str:
        _, parts, _ = _items(problem)
        most = dims.bounds(parts[1])[1]
        if most is not None and most <= _SHORT:
            return "so few items are compared in less time"
        return "" if _elements(parts) else f"an item has more than {_ELEMENTS} elements to be sorted by"

    def configs(self, problem: Problem) -> Sequence[int]:
        del problem
        return SORT_BLOCKS

    def lower(self, problem: Problem, config: int, steps: Steps) -> None:
        kind, parts, in_order = _items(problem)
        count, elements = parts[1], _elements(parts)
        order = SortedLines(1, count, key_of("x", kind.dtype)[1], config)
        source, places = steps.ordered(0, None), steps.result(2)
        items: int | None = None
        for part in reversed(range(elements)):
            keys = steps.temporary(TensorType(order.dtype, (count,)))
            kernel = item_keys_kernel(kind, parts, order, part, later=items is not None)
            steps.launch(kernel, [source, *([] if items is None else [items])], [keys])
            _, items = sort_lines(steps, keys, order, items)
        flags, runs, begins, first, counts = (
            steps.temporary(TensorType(each, (count,))) for each in (UINT8, *[INT64] * 4)
        )
        reads = [source, *([] if items is None else [items])]
        steps.launch(flags_kernel(kind, parts, order, elements), reads, [flags])
        before, total = self._offsets(steps, flags, count)
        steps.launch(runs_kernel(count), [flags, before], [runs, begins])
        by_size = places if in_order else steps.temporary(TensorType(INT64, (count,)))
        reads = [*reads[1:], runs, begins, total]
        steps.launch(run_items_kernel(count, order.places), reads, [first, counts, by_size])
        if not in_order:
            steps.launch(leaders_kernel(count), [first], [flags])
            before, total = self._offsets(steps, flags, count)
            steps.launch(first_place_kernel(count, gather=False), [flags, before], [by_size])
            steps.launch(first_place_kernel(count, gather=True), [first, by_size], [places])
        _pick(problem, steps, first, counts, total)

    @staticmethod
    def _offsets(steps: Steps, flags: int, count: DimLike) -> tuple[int, int]:
        """How many flags there are before each block, and in all."""
        kind = TensorType(UINT8, (count,))
        each = TensorType(INT64, (blocks_of(kind),))
        counts, before, total = steps.temporary(each), steps.temporary(each), steps.temporary(TensorType(INT64, (1,)))
        steps.launch(count_kernel(kind), [flags], [counts])
        steps.launch(offsets_kernel(blocks_of(kind)), [counts], [before, total])
        return before, total


@register_solution
class UniqueItems(Solution):
    """Every item finds the first that is equal and its place among the distinct ones; these are then picked."""

    name = "unique items"
    anchors: ClassVar = frozenset({"unique"})
    rank = -1

    def applies(self, problem: Problem) -> str:
        del problem
        return ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        source, places = steps.ordered(0, None), steps.result(2)
        kind, parts, in_order = _items(problem)
        first, counts = (steps.temporary(TensorType(INT64, (parts[1],))) for _ in range(2))
        total = steps.temporary(TensorType(INT64, (1,)))
        steps.launch(first_kernel(kind, parts), [source], [first, counts])
        # One program tells how many there are, also where there are no items.
        steps.launch(place_kernel(kind, parts, in_order=in_order), [source, first], [places, total])
        _pick(problem, steps, first, counts, total)
