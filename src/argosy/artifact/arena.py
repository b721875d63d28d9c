"""Packs buffers into one arena: buffers that are never needed at the same time may share bytes.

The problem (dynamic storage allocation) is NP-hard; greedy placement, largest first, comes within a few per cent
of the largest sum of live bytes, which no packing can beat. Several orders are tried and the best one is kept; where
it leaves gaps, what ended on top goes first in further ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Placement", "live_bytes", "place"]

_Int: TypeAlias = "NDArray[np.int64]"
_TRIES: Final = 40
"""Further orders, where the first ones end `_GOOD` times over the bound; all of them place `_WORK` buffers at most."""
_WORK: Final = 2000
_GOOD: Final = 1.02


class Placement(msgspec.Struct, frozen=True):
    """Where each buffer lies, the size of the arena, and the largest sum of bytes live at once, all in bytes."""

    offsets: tuple[int, ...]
    size: int
    live: int


def live_bytes(sizes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> int:
    """The largest sum of the sizes of buffers that are needed at one time (from `start` to `end`, both included)."""
    if not sizes:
        return 0
    moments = np.concatenate((np.asarray(starts, np.int64), np.asarray(ends, np.int64) + 1))
    changes = np.concatenate((np.asarray(sizes, np.int64), -np.asarray(sizes, np.int64)))
    times, places = np.unique(moments, return_inverse=True)
    sums = np.zeros(len(times), np.int64)
    np.add.at(sums, places, changes)
    return int(np.cumsum(sums).max())


def place(sizes: Sequence[int], starts: Sequence[int], ends: Sequence[int], alignment: int) -> Placement:
    """An offset for each buffer, a multiple of `alignment`, so that buffers needed at one time don't overlap."""
    live = live_bytes(sizes, starts, ends)
    size = -(-np.asarray(sizes, np.int64) // alignment) * alignment
    start, end = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    bound = live_bytes(size.tolist(), starts, ends)
    best: tuple[int, _Int, _Int] | None = None
    for order in _orders(size, start, end):
        placed = _greedy(size, start, end, order)
        total = int((placed + size).max(initial=0))
        if best is None or total < best[0]:
            best = total, placed, order
        if total <= bound:
            break
    total, offsets, order = best if best is not None else (0, size, size)
    for _ in range(min(_TRIES, _WORK // max(len(size), 1))):
        if total <= bound * _GOOD:
            break
        # What ends on top, for want of a better place, goes first.
        top = (placed + size)[order] >= int((placed + size).max())
        order = np.concatenate((order[top], order[~top]))
        placed = _greedy(size, start, end, order)
        if int((placed + size).max()) < total:
            total, offsets = int((placed + size).max()), placed
    return Placement(tuple(offsets.tolist()), total, live)


def _orders(size: _Int, start: _Int, end: _Int) -> Iterator[_Int]:
    """Orders of placement, that which is best most often first."""
    span = end - start + 1
    yield np.lexsort((start, -span, -size))  # the largest, then the longest needed
    yield np.lexsort((start, -size * span))  # the most bytes times steps
    yield np.lexsort((-size, -span))  # the longest needed, then the largest
    yield np.lexsort((-size, start))  # as they come


def _greedy(size: _Int, start: _Int, end: _Int, order: Any) -> _Int:
    """Offsets, buffer by buffer: each goes to the smallest gap that takes it, the lowest of equal ones."""
    count = len(size)
    offsets = np.zeros(count, np.int64)
    # What is placed already, in the order of the offsets.
    placed = np.empty(count, np.int64)
    low = np.empty(count, np.int64)
    for number, buffer in enumerate(order):
        known = placed[:number]
        near = known[(start[known] <= end[buffer]) & (end[known] >= start[buffer])]
        if len(near):
            begins = offsets[near]
            tops = np.maximum.accumulate(begins + size[near])
            gaps = begins - np.concatenate(((0,), tops[:-1]))
            fits = np.flatnonzero(gaps >= size[buffer])
            if len(fits):
                gap = fits[np.argmin(gaps[fits])]
                offsets[buffer] = tops[gap - 1] if gap else 0
            else:
                offsets[buffer] = tops[-1]
        position = int(np.searchsorted(low[:number], offsets[buffer], side="right"))
        low[position + 1 : number + 1] = low[position:number].copy()
        placed[position + 1 : number + 1] = known[position:].copy()
        low[position], placed[position] = offsets[buffer], buffer
    return offsets
