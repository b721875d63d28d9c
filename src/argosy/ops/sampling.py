"""Sampling a tensor at places between its elements: ONNX GridSample, and what DeformConv shares with it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import Array, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import differ
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import present

__all__ = ["GridSample", "sample_linear"]

_MODES: Final = ("nearest", "linear", "cubic")
_PADDINGS: Final = ("zeros", "border", "reflection")
_CUBIC_A: Final = -0.75

_Taps: TypeAlias = "list[tuple[Array, Array | None]]"
"""For one axis: the indices to read, and their weights (None: 1)."""


def _gather(x: Array, taps: Sequence[_Taps], outside: Callable[[Array, int], tuple[Array, Array | None]]) -> Array:
    """Weighted sums over all combinations of the axes' taps.

    `x` is [N, C, *spatial], a tap's index [N, L]; the result is [N, C, L]. `outside` brings an index into an
    axis and may say with a mask where nothing is read.
    """
    spatial = x.shape[2:]
    flat = x.reshape(*x.shape[:2], math.prod(spatial))
    total = None
    for chosen in itertools.product(*taps):
        place: Array = np.zeros((), np.int64)
        weight: Array | None = None
        for axis, (index, factor) in enumerate(chosen):
            inside, mask = outside(index, spatial[axis])
            place = place * spatial[axis] + inside
            for part in (factor, None if mask is None else mask.astype(x.dtype)):
                if part is not None:
                    weight = part if weight is None else weight * part
        value = np.take_along_axis(flat, place[:, None], axis=2)
        if weight is not None:
            value = value * weight[:, None].astype(x.dtype, copy=False)
        total = value if total is None else total + value
    return np.asarray(total)


def _linear_taps(places: Array) -> _Taps:
    base = np.floor(places)
    fraction = places - base
    index = base.astype(np.int64)
    return [(index, 1 - fraction), (index + 1, fraction)]


def _cubic_taps(places: Array) -> _Taps:
    """The cubic convolution kernel (R. G. Keys, 1981, eq. 4) at the four neighbours."""
    base = np.floor(places)
    t = places - base
    index, a = base.astype(np.int64), _CUBIC_A

    def far(d: Array) -> Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    def near(d: Array) -> Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    return [(index - 1, far(t + 1)), (index, near(t)), (index + 1, near(1 - t)), (index + 2, far(2 - t))]


def _zeros_outside(index: Array, size: int) -> tuple[Array, Array | None]:
    return np.clip(index, 0, size - 1), (index >= 0) & (index < size)


def sample_linear(x: Array, places: Sequence[Array]) -> Array:
    """`x [N, C, *spatial]` at fractional `places`, an array [N, L] for each axis, as [N, C, L]; 0 outside."""
    return _gather(x, [_linear_taps(axis) for axis in places], _zeros_outside)


@register
@dataclass(frozen=True, slots=True)
class GridSample(Op):
    """`x [N, C, *spatial]` at the places that `grid [N, *out, axes]` holds, as `[N, C, *out]`.

    A place is given from -1 to 1, the last axis first. With `align_corners` these are the centres of the
    outermost elements, else their outer edges. `mode` is nearest (ties to even), linear or cubic;
    `padding` says what lies outside: zeros, border or reflection. Short floats are computed in float32,
    integers in float64 and truncated; nearest takes elements of any type as they are.
    """

    name = "grid_sample"
    mode: str = "linear"
    padding: str = "zeros"
    align_corners: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, grid = (present(operand) for operand in operands)
        if self.mode not in _MODES or self.padding not in _PADDINGS:
            raise ModelError(f"there is no sampling {self.mode!r} with padding {self.padding!r}")
        if x.rank != grid.rank or x.rank < 3 or differ(grid.shape[-1], x.rank - 2):
            raise ModelError(f"the grid is {grid.type}, which does not fit {x.type}")
        if differ(x.shape[0], grid.shape[0]):
            raise ModelError(f"the batch of x is {x.shape[0]}, that of the grid {grid.shape[0]}")
        if (self.mode != "nearest" and x.dtype.kind in ("string", "bool")) or not grid.dtype.is_float:
            raise ModelError(
                f"there is no sampling {self.mode!r} of {x.dtype} at places of {grid.dtype}",
                hint="places are floats; strings and bools are only sampled by nearest",
            )
        return (TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:-1])),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        x, grid = (present(operand) for operand in operands)
        if not grid.tensor.dims:
            return (TensorType(x.dtype, None),)
        return (TensorType(x.dtype, (grid.shape[0], fresh("channels"), *grid.shape[1:-1])),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, grid = values
        dtype = dtype_of(x.dtype)
        points = grid.astype(dtype_of(grid.dtype).compute.numpy, copy=False)
        spatial = x.shape[2:]
        shape = (*x.shape[:2], *grid.shape[1:-1])
        if 0 in shape or 0 in spatial:
            return (_zeros(shape, x),)
        places = [
            self._place(points[..., len(spatial) - 1 - axis].reshape(x.shape[0], -1), size)
            for axis, size in enumerate(spatial)
        ]
        if self.mode == "nearest":
            return (self._nearest(x, [axis.astype(np.int64) for axis in places]).reshape(shape),)
        wide = x.astype(np.float64 if dtype.is_integer else dtype.compute.numpy, copy=False)
        taps = [_linear_taps(axis) if self.mode == "linear" else _cubic_taps(axis) for axis in places]
        return (convert(_gather(wide, taps, self._outside).reshape(shape), dtype),)

    def _nearest(self, x: Array, places: list[Array]) -> Array:
        """The elements at whole places [N, L] of each axis as [N, C, L], of any type."""
        place: Array = np.zeros((), np.int64)
        inside: Array | None = None
        for given, size in zip(places, x.shape[2:], strict=True):
            index, mask = self._outside(given, size)
            place = place * size + index
            inside = mask if inside is None or mask is None else inside & mask
        flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
        found = np.take_along_axis(flat, place[:, None], axis=2)
        return found if inside is None else np.where(inside[:, None], found, _zeros((), x))

    def _place(self, points: Array, size: int) -> Array:
        """Places in elements of an axis of `size`, near enough for an integer."""
        places = (points + 1) / 2 * (size - 1) if self.align_corners else ((points + 1) * size - 1) / 2
        if self.mode == "nearest":
            places = np.rint(places)
        if self.padding == "reflection":
            places = _reflect(places, *self._edges(size))
        # Elements beyond the border are looked up one by one, as PyTorch does; far off all are alike. NaN is place 0.
        return np.clip(np.nan_to_num(places), -8.0, size + 8.0)

    def _edges(self, size: int) -> tuple[float, float]:
        return (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)

    def _outside(self, index: Array, size: int) -> tuple[Array, Array | None]:
        if self.padding == "zeros":
            return _zeros_outside(index, size)
        if self.padding == "reflection":
            index = _reflect(index.astype(np.float64), *self._edges(size)).astype(np.int64)
        return np.clip(index, 0, size - 1), None


def _zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Zeros, or empty strings, of the type of `like`."""
    return np.full(shape, "", object) if like.dtype == object else np.zeros(shape, like.dtype)


def _reflect(places: Array, low: float, high: float) -> Array:
    """Places outside [low, high] folded back at the borders until they are inside."""
    width = high - low
    if width <= 0:
        return np.full_like(places, low)
    beyond = np.where(places < low, low - places, places - high)
    turns = np.floor(beyond / width)
    rest = beyond - turns * width
    from_low = (places < low) == (turns % 2 == 0)
    folded = np.where(from_low, low + rest, high - rest)
    return np.where((places < low) | (places > high), folded, places).astype(places.dtype)
