"""The steps of sorting, for every op that needs an order."""

from __future__ import annotations

from argosy.ir.dim import DimLike
from argosy.ir.dtype import DType
from argosy.ir.types import TensorType
from argosy.targets.gpu.codegen.radix import DIGITS, SortedLines, base_kernel, before_kernel, count_kernel, move_kernel
from argosy.targets.gpu.solution import Steps

__all__ = ["sort_lines"]


def sort_lines(steps: Steps, keys: int, order: SortedLines, positions: int | None = None) -> tuple[int, int]:
    """The buffers of sorted keys and of the positions, `order.places` [lines, size], where they were.

    Equal keys keep their order. What travels with the keys are `positions`, where they are given. The buffers of both
    are written over.
    """
    lines, size, blocks = order.lines, order.size, order.blocks

    def room(dtype: DType, *dims: DimLike) -> int:
        return steps.temporary(TensorType(dtype, dims))

    counts, before = (room(order.places, lines, DIGITS, blocks) for _ in range(2))
    starts = room(order.places, lines, blocks, DIGITS)
    totals, bases = (room(order.places, lines, DIGITS) for _ in range(2))
    source = (keys, room(order.places, lines, size) if positions is None else positions)
    target = (room(order.dtype, lines, size), room(order.places, lines, size))
    for shift in order.shifts:
        steps.launch(count_kernel(order), [source[0]], [counts, starts], [shift])
        steps.launch(before_kernel(order), [counts], [before, totals])
        steps.launch(base_kernel(order), [totals], [bases])
        later = shift > 0 or positions is not None
        reads = [source[0], starts, before, bases, *([source[1]] if later else [])]
        steps.launch(move_kernel(order, later=later), reads, [*target], [shift])
        source, target = target, source
    return source
