"""Geometry of sliding windows, shared by convolution and pooling: padding rules, output sizes, window views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import DimLike, bounds, ceildiv, dim_max, dim_min, floordiv
from argosy.ir.dtype import Array
from argosy.ir.types import Dims
from argosy.ops.demands import demand_room

__all__ = ["AUTO_PADS", "check_windows", "extents", "output_sizes", "pad_spatial", "resolve_pads", "windows"]

AUTO_PADS: Final = ("explicit", "same_upper", "same_lower")
"""How pads come about: as given, or so that the output has ceil(size / stride) elements.

Of an odd total, `same_upper` puts the larger half at the end, `same_lower` at the beginning.
"""
_MOST: Final = 1 << 31
"""Above every kernel, stride, dilation or pad, so that none overflows where sizes are multiplied by it."""


def extents(kernel: Dims, dilations: Sequence[int]) -> Dims:
    """Elements that a window spans on each axis, gaps included."""
    return tuple((size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True))


def check_windows(rank: int, kernel: Dims, strides: Sequence[int], dilations: Sequence[int], pads: Dims) -> None:
    """Raise ModelError where the attributes do not fit `rank` spatial axes or are out of range."""
    for what, values, count, least in (
        ("kernel_shape", kernel, rank, 1),
        ("strides", strides, rank, 1),
        ("dilations", dilations, rank, 1),
        ("pads", pads, 2 * rank, 0),
    ):
        if len(values) != count:
            raise ModelError(f"{what} has {len(values)} entries, expected {count} for {rank} spatial axes")
        if any(isinstance(value, int) and not least <= value < _MOST for value in values):
            raise ModelError(f"{what} is {list(values)}, expected {least} or more, below {_MOST}")
    for axis, size in enumerate(kernel, 2):
        demand_room(size - 1, axis)


def resolve_pads(auto_pad: str, sizes: Dims, extent: Dims, strides: Sequence[int], pads: Dims) -> Dims:
    """The pads, all begins and then all ends, for windows of `extent` over `sizes`."""
    if auto_pad == "explicit":
        return pads
    begins: list[DimLike] = []
    ends: list[DimLike] = []
    for size, span, stride in zip(sizes, extent, strides, strict=True):
        total = dim_max((ceildiv(size, stride) - 1) * stride + span - size, 0)
        half = floordiv(total, 2)
        begins.append(half if auto_pad == "same_upper" else total - half)
        ends.append(total - half if auto_pad == "same_upper" else half)
    return (*begins, *ends)


def output_sizes(
    auto_pad: str, sizes: Dims, extent: Dims, strides: Sequence[int], pads: Dims, *, ceil_mode: bool = False
) -> Dims:
    """How many windows fit on each axis; raises ModelError where certainly none does.

    With `ceil_mode` the last window may hang over the end, but must not start in the padding there.
    """
    if auto_pad != "explicit":
        return tuple(ceildiv(size, stride) for size, stride in zip(sizes, strides, strict=True))
    rank = len(sizes)
    result: list[DimLike] = []
    for axis, (size, span, stride) in enumerate(zip(sizes, extent, strides, strict=True)):
        begin, end = pads[axis], pads[rank + axis]
        room = size + begin + end - span
        high = bounds(room)[1]
        if high is not None and high < 0 and not ceil_mode:
            raise ModelError(
                f"a window of {span} does not fit into {begin} + {size} + {end} elements (axis {axis + 2})"
            )
        if not ceil_mode:
            demand_room(room, axis + 2)
            result.append(floordiv(room, stride) + 1)
            continue
        count = ceildiv(room, stride) + 1
        over = end + stride - span
        if not isinstance(over, int) or over > 0:
            count = dim_min(count, ceildiv(size + begin, stride))
        result.append(count)
    return tuple(result)


def pad_spatial(x: Array, begins: Sequence[int], sizes: Sequence[int], value: Any) -> Array:
    """`x` (spatial axes last) inside an array of spatial `sizes` filled with `value`, at `begins`.

    What would stick out at the end is cut off. `x` itself where nothing changes.
    """
    spatial = x.shape[x.ndim - len(sizes) :]
    if not any(begins) and tuple(sizes) == spatial:
        return x
    result = np.full((*x.shape[: x.ndim - len(sizes)], *sizes), value, x.dtype)
    ends = [min(begin + size, limit) for begin, size, limit in zip(begins, spatial, sizes, strict=True)]
    inside: tuple[Any, ...] = (..., *(slice(begin, end) for begin, end in zip(begins, ends, strict=True)))
    kept: tuple[Any, ...] = (..., *(slice(0, end - begin) for begin, end in zip(begins, ends, strict=True)))
    result[inside] = x[kept]
    return result


def windows(
    x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], outputs: Sequence[int]
) -> Array:
    """A view of `x` (spatial axes last) with axes `[..., *kernel, *outputs]`: every window's elements.

    `x` must reach to the last element of the last window.
    """
    rank = len(kernel)
    steps = x.strides[x.ndim - rank :]
    inner = [step * dilation for step, dilation in zip(steps, dilations, strict=True)]
    outer = [step * stride for step, stride in zip(steps, strides, strict=True)]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[: x.ndim - rank], *kernel, *outputs),
        (*x.strides[: x.ndim - rank], *inner, *outer),
        writeable=False,
    )
