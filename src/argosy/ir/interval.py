"""Intervals of integers, either side of which may be missing: the arithmetic behind the bounds of dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = ["Interval", "add", "call", "multiply"]

Interval: TypeAlias = tuple[int | None, int | None]
"""Lower and upper bound, both inclusive; None where there is none."""

# A bound as a pair that compares as numbers do, infinities included: (0, n), or (±1, 0) for ±infinity.
_Extended: TypeAlias = tuple[int, int]


def add(left: Interval, right: Interval) -> Interval:
    """All sums."""
    low = None if left[0] is None or right[0] is None else left[0] + right[0]
    high = None if left[1] is None or right[1] is None else left[1] + right[1]
    return low, high


def multiply(left: Interval, right: Interval) -> Interval:
    """All products."""
    products = [_product(a, b) for a in _ends(left) for b in _ends(right)]
    low, high = min(products), max(products)
    return None if low[0] else low[1], None if high[0] else high[1]


def _ends(interval: Interval) -> tuple[_Extended, _Extended]:
    low, high = interval
    return (-1, 0) if low is None else (0, low), (1, 0) if high is None else (0, high)


def _product(left: _Extended, right: _Extended) -> _Extended:
    if not (left[0] or right[0]):
        return 0, left[1] * right[1]
    a, b = left[0] or left[1], right[0] or right[1]
    if a == 0 or b == 0:
        return 0, 0  # the end of an interval that holds no other value: nothing there grows
    return (1, 0) if (a > 0) == (b > 0) else (-1, 0)


def call(function: str, left: Interval, right: Interval) -> Interval:
    """All values of `floordiv`, `ceildiv`, `mod`, `min` or `max`; divisors that may not be positive tell nothing."""
    return _CALLS[function](left, right)


def _maximum(left: Interval, right: Interval) -> Interval:
    lows = [low for low in (left[0], right[0]) if low is not None]
    return max(lows, default=None), None if left[1] is None or right[1] is None else max(left[1], right[1])


def _minimum(left: Interval, right: Interval) -> Interval:
    highs = [high for high in (left[1], right[1]) if high is not None]
    return None if left[0] is None or right[0] is None else min(left[0], right[0]), min(highs, default=None)


def _remainder(_: Interval, right: Interval) -> Interval:
    if right[0] is None or right[0] <= 0:
        return None, None
    return 0, None if right[1] is None else right[1] - 1


def _quotient(left: Interval, right: Interval, divide: Callable[[int, int], int]) -> Interval:
    smallest, largest = right
    if smallest is None or smallest <= 0:
        return None, None
    low = high = None
    if left[0] is not None:  # nearest to zero with the largest divisor, farthest with the smallest
        low = divide(left[0], smallest) if left[0] < 0 else 0 if largest is None else divide(left[0], largest)
    if left[1] is not None:
        high = divide(left[1], smallest) if left[1] > 0 else 0 if largest is None else divide(left[1], largest)
    return low, high


_CALLS: Final[dict[str, Callable[[Interval, Interval], Interval]]] = {
    "floordiv": lambda left, right: _quotient(left, right, int.__floordiv__),
    "ceildiv": lambda left, right: _quotient(left, right, lambda a, b: -(-a // b)),
    "mod": _remainder,
    "min": _minimum,
    "max": _maximum,
}
