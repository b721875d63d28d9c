"""What a value must be for a program to take it: bounds, or certain numbers, and who asks for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from argosy.ir.dtype import DType

__all__ = ["Need", "meet"]

_USUAL: Final = {"float": (-1.0, 1.0), "complex": (-1.0, 1.0)}
_USUAL_INTEGERS: Final = (0, 1)


@dataclass(frozen=True, slots=True)
class Need:
    """Elements from `low` to `high`, both included, None where there is no such bound.

    `values` are the elements in row-major order where bounds can't say it, as of a shape. `reason` says who needs it,
    in words. A need that is not `strong` is a wish: code runs without it, but a part of it never does.
    """

    low: float | None
    high: float | None
    reason: str
    values: tuple[float, ...] | None = None
    strong: bool = True

    def within(self, low: float | None, high: float | None) -> Need:
        """Other bounds for the same reason, which certain values can't stand for."""
        return replace(self, low=low, high=high, values=None)

    def bounds(self, dtype: DType) -> tuple[float, float] | None:
        """The least and greatest number to generate for it in `dtype`; None where there is no such number.

        A side that is open is where it usually is, but at least 1 away from the other.
        """
        usual = _USUAL.get(dtype.kind, _USUAL_INTEGERS)
        low = self.low if self.low is not None else min(usual[0], usual[0] if self.high is None else self.high - 1)
        high = self.high if self.high is not None else max(usual[1], low + 1)
        if dtype.is_integer:
            least = 0 if dtype.kind == "uint" else -(1 << (dtype.bits - 1))
            low = max(math.ceil(low), least)
            high = min(math.floor(high), least + (1 << dtype.bits) - 1)
        elif not dtype.is_float:
            return None
        return (low, high) if low <= high else None


def meet(first: Need | None, second: Need) -> Need:
    """Both needs at once. Where nothing does for both, one of them: a strong one, else one without negative numbers."""
    if first is None:
        return second
    if first.values is not None or second.values is not None:
        return first if first.values is not None else second
    lows = [need.low for need in (first, second) if need.low is not None]
    highs = [need.high for need in (first, second) if need.high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low > high:
        if first.strong != second.strong:
            return first if first.strong else second
        negative = first.low is None or first.low < 0
        return second if negative and second.low is not None and second.low >= 0 else first
    for need in (first, second):
        if (need.low, need.high) == (low, high):
            return need
    return Need(low, high, f"{first.reason}, {second.reason}", strong=first.strong or second.strong)
