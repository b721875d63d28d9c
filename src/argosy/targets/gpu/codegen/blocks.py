"""Sizes of blocks: powers of two, as Triton needs them."""

from __future__ import annotations

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike

__all__ = ["at_most", "power_of_two", "size_hint"]


def power_of_two(size: int) -> int:
    """The least power of two that is not below `size`."""
    return 1 << max(size - 1, 0).bit_length()


def size_hint(size: DimLike, default: int = 1 << 12) -> int:
    """A size to choose a block for: the size itself, its upper bound where that is small, else `default`."""
    if isinstance(size, int):
        return size
    upper = dims.bounds(size)[1]
    return default if upper is None else min(upper, default)


def at_most(size: DimLike, limit: int) -> int:
    """The least power of two that covers `size`, but no more than `limit`."""
    return min(power_of_two(size_hint(size)), limit)
