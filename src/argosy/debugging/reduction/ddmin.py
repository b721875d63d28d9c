"""Delta debugging: a small part of a list that still does what the whole list does.

The algorithm is `ddmin` of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (IEEE TSE 28(2),
2002), with one more part to try, the half in the middle: a cause that lies across the cut of two halves is in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["minimise"]

T = TypeVar("T")


def minimise(items: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """A part of `items`, in their order, for which `holds` and from which no single item can be left out.

    `items` hold themselves, which is not tried again. One cause among n items takes at most 3 log2(n) tries.
    """
    count = 2
    while len(items) > 1:
        parts = _split(items, count)
        middle = [items[len(items) // 4 : -(len(items) // 4)]] if count == 2 and len(items) > 3 else []
        found = next((part for part in (*parts, *middle) if holds(part)), None)
        if found is not None:
            items, count = found, 2
            continue
        # The rest without one part; with two parts that is the other one.
        rests = (_without(parts, index) for index in range(len(parts))) if count > 2 else iter(())
        found = next((rest for rest in rests if holds(rest)), None)
        if found is not None:
            items, count = found, max(count - 1, 2)
        elif count < len(items):
            count = min(2 * count, len(items))
        else:
            break
    return items


def _split(items: Sequence[T], count: int) -> list[Sequence[T]]:
    """`count` parts that differ in length by one at most."""
    ends = [len(items) * index // count for index in range(count + 1)]
    return [items[begin:end] for begin, end in itertools.pairwise(ends)]


def _without(parts: Sequence[Sequence[T]], index: int) -> Sequence[T]:
    return [item for position, part in enumerate(parts) if position != index for item in part]
