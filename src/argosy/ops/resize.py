"""Resizing by interpolation, one axis after the other: ONNX Resize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import Dim, DimLike, floordiv
from argosy.ir.dtype import STRING, Array, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import Dims, Type
from argosy.ops.demands import differ
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import ints, present, steering
from argosy.ops.shapes import normalize_axis

__all__ = ["COORDINATES", "NEAREST", "Resize", "scaled_size"]

MODES: Final = ("nearest", "linear", "cubic")
COORDINATES: Final = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
NEAREST: Final = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "floor_up_ceil_down")
"""Which neighbour of a fractional place is the nearest; the last is the rule before opset 11: up- or downscaling."""
ASPECTS: Final = ("stretch", "not_larger", "not_smaller")

_SIMPLE_DENOMINATOR: Final = 1000


def scaled_size(size: DimLike, scale: float) -> DimLike | None:
    """`floor(size * scale)`; None where the size is symbolic and the scale no simple fraction.

    A float32 scale that is the nearest one to a fraction with a small denominator means that fraction.
    """
    if not 0.0 < scale < np.inf:
        raise ModelError(f"a scale is {scale}, expected a positive number")
    fraction = Fraction(scale).limit_denominator(_SIMPLE_DENOMINATOR)
    if np.float32(fraction) == np.float32(scale):
        return floordiv(size * fraction.numerator, fraction.denominator)
    return None if isinstance(size, Dim) else int(np.floor(np.float32(size) * np.float32(scale)))


@dataclass(frozen=True, slots=True)
class _Axis:
    """How one axis is resized; `low` and `high` are the region of interest, as fractions of the axis."""

    axis: int
    size: int
    output: int
    scale: float
    low: float = 0.0
    high: float = 1.0


@register
@dataclass(frozen=True, slots=True)
class Resize(Op):
    """`x` at other sizes: every result is a weighted sum of the neighbours of the place that it comes from.

    Either `scales` or `sizes` are given, as an attribute or as an operand (x, [roi], [scales], [sizes]), with
    an entry for each of `axes` (all axes where None). `coordinates` says which place of `x` a result comes
    from, as ONNX's `coordinate_transformation_mode` does; `aspect` is its `keep_aspect_ratio_policy`.
    Places outside read the element at the edge, or with `exclude_outside` have no weight; in
    `tf_crop_and_resize` they give `extrapolation`. `antialias` widens linear and cubic kernels by 1/scale.
    Results of integer type are rounded and clipped.
    """

    name = "resize"
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    scales: tuple[float, ...] | None = None
    sizes: Dims | None = None
    axes: tuple[int, ...] | None = None
    roi: tuple[float, ...] | None = None
    nearest: str = "round_prefer_floor"
    cubic_a: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False
    aspect: str = "stretch"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, _, scales, sizes = (*operands, None, None, None)[:4]
        tensor = present(x).tensor
        self._check()
        if tensor.dtype is STRING and (self.mode != "nearest" or self.coordinates == "tf_crop_and_resize"):
            raise ModelError(f"strings can't be resized by {self.mode} in {self.coordinates}, expected nearest")
        axes = self._axes(tensor.rank)
        if self.scales is None and self.sizes is None:
            _check_list(scales, sizes, axes)
        known_sizes = steering(self.sizes, sizes)
        known_scales = steering(None, scales) if self.scales is None else self.scales
        dims = list(tensor.shape)
        wanted: list[DimLike | None] = [None] * len(axes)
        if known_sizes is not None:
            _check_count("sizes", known_sizes, axes)
            if self.aspect == "stretch":
                wanted = list(known_sizes)
            elif not any(isinstance(dim, Dim) for dim in (*known_sizes, *(dims[axis] for axis in axes))):
                plan = self._plan(tuple(dims), None, tuple(known_sizes), None)
                wanted = [entry.output for entry in plan]
        elif known_scales is not None:
            _check_count("scales", known_scales, axes)
            factors = [1.0 if isinstance(scale, Dim) else float(scale) for scale in known_scales]
            wanted = [scaled_size(dims[axis], factor) for axis, factor in zip(axes, factors, strict=True)]
        elif self.scales is None and self.sizes is None and scales is None and sizes is None:
            raise ModelError("neither scales nor sizes are given")
        for axis, dim in zip(axes, wanted, strict=True):
            dims[axis] = fresh(f"{axis}_") if dim is None else dim
        return (tensor.with_dims(tuple(dims)),)

    def _check(self) -> None:
        for what, value, allowed in (
            ("mode", self.mode, MODES),
            ("coordinate_transformation_mode", self.coordinates, COORDINATES),
            ("nearest_mode", self.nearest, NEAREST),
            ("keep_aspect_ratio_policy", self.aspect, ASPECTS),
        ):
            if value not in allowed:
                raise ModelError(f"{what} is {value!r}, expected one of {', '.join(allowed)}")

    def _axes(self, rank: int) -> tuple[int, ...]:
        return tuple(range(rank)) if self.axes is None else tuple(normalize_axis(axis, rank) for axis in self.axes)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, roi, scales, sizes = (*values, None, None, None)[:4]
        given_scales, given_sizes, region = self.scales, None, self.roi
        if self.sizes is not None or (given_scales is None and sizes is not None and np.size(sizes)):
            given_sizes = ints(self.sizes, sizes, "the output sizes")
        elif given_scales is None:
            given_scales = tuple(float(scale) for scale in np.ravel(scales))
        if region is None and roi is not None and np.size(roi):
            region = tuple(float(entry) for entry in np.ravel(roi))
        plan = self._plan(x.shape, given_scales, given_sizes, region)
        dtype = dtype_of(x.dtype)
        wide = dtype.compute.numpy if dtype.kind in ("float", "complex") else np.dtype(np.float64)
        result = x if self.mode == "nearest" else x.astype(wide)
        for entry in plan:
            # An axis that keeps its size is left alone, unless a region of it is asked for.
            if entry.size != entry.output or entry.scale != 1.0 or (entry.low, entry.high) != (0.0, 1.0):
                result = self._resize_axis(result, entry)
        if result.dtype == x.dtype:
            return (result,)
        if dtype.is_integer:
            limits = np.iinfo(x.dtype)
            return (np.clip(np.rint(result), limits.min, limits.max).astype(x.dtype),)
        return (convert(result, dtype),)

    def _plan(
        self,
        shape: Dims,
        scales: Sequence[float] | None,
        sizes: Sequence[Any] | None,
        roi: Sequence[float] | None,
    ) -> list[_Axis]:
        axes = self._axes(len(shape))
        before = [int(shape[axis]) for axis in axes]
        if sizes is not None:
            _check_count("sizes", sizes, axes)
            factors = [int(size) / old if old else 1.0 for size, old in zip(sizes, before, strict=True)]
            outputs = [int(size) for size in sizes]
            if self.aspect != "stretch":
                one = min(factors) if self.aspect == "not_larger" else max(factors)
                factors = [one] * len(axes)
                outputs = [int(one * old + 0.5) for old in before]
        else:
            _check_count("scales", scales or (), axes)
            factors = [float(scale) for scale in scales or ()]
            outputs = [int(scaled_size(old, scale) or 0) for old, scale in zip(before, factors, strict=True)]
        if self.coordinates != "tf_crop_and_resize":
            regions = [(0.0, 1.0)] * len(axes)
        elif roi is None or len(roi) != 2 * len(axes):
            raise ModelError(f"tf_crop_and_resize needs a region of {2 * len(axes)} numbers, found {roi}")
        else:
            regions = list(zip(roi[: len(axes)], roi[len(axes) :], strict=True))
        return [
            _Axis(axis, old, new, factor, *region)
            for axis, old, new, factor, region in zip(axes, before, outputs, factors, regions, strict=True)
        ]

    def _resize_axis(self, x: Array, entry: _Axis) -> Array:
        if not entry.size and entry.output:
            raise ModelError(f"axis {entry.axis} is empty and can't be resized to {entry.output}")
        places = self._places(entry)
        if self.mode == "nearest":
            index = _nearest(places, self.nearest, entry.scale)
            result = np.take(x, np.clip(index, 0, max(entry.size - 1, 0)), axis=entry.axis)
        else:
            result = self._interpolate(x, entry, places)
        outside = (places < 0) | (places > entry.size - 1)
        if self.coordinates == "tf_crop_and_resize" and outside.any():
            shaped = outside.reshape([-1 if axis == entry.axis else 1 for axis in range(x.ndim)])
            result = np.where(shaped, np.asarray(self.extrapolation, result.dtype), result)
        return result

    def _places(self, entry: _Axis) -> Array:
        """The (fractional) places on the axis of `x` that the results come from."""
        target = np.arange(entry.output, dtype=np.float64)
        width = entry.scale * entry.size
        if self.coordinates == "align_corners":
            return target * 0.0 if width == 1 else target * (entry.size - 1) / (width - 1)
        if self.coordinates == "asymmetric":
            return target / entry.scale
        if self.coordinates == "tf_half_pixel_for_nn":
            return (target + 0.5) / entry.scale
        if self.coordinates == "tf_crop_and_resize":
            last = entry.size - 1
            if width == 1:
                return target * 0.0 + (entry.high + entry.low) * last / 2
            return target * (entry.high - entry.low) * last / (width - 1) + entry.low * last
        if self.coordinates == "pytorch_half_pixel" and entry.output == 1:
            return target * 0.0
        places: Array = (target + 0.5) / entry.scale - 0.5
        if self.coordinates == "half_pixel_symmetric" and entry.size:
            places += entry.size / 2 * (1 - entry.output / width)
        return places

    def _interpolate(self, x: Array, entry: _Axis, places: Array) -> Array:
        # Of a place that is an element, that element counts as its right neighbour: the fraction is in (0, 1].
        base = np.ceil(places) - 1
        stretch = min(entry.scale, 1.0) if self.antialias else 1.0
        reach = 1 if self.mode == "linear" else 2
        first = int(np.floor(-reach / stretch)) + 1
        offsets = np.arange(first, 2 - first)
        distance = np.abs((offsets - (places - base)[:, None]) * stretch)
        weights = np.clip(1 - distance, 0, 1) if self.mode == "linear" else _cubic(distance, self.cubic_a)
        index = base.astype(np.int64)[:, None] + offsets
        if self.exclude_outside:
            weights = np.where((index < 0) | (index >= entry.size), 0.0, weights)
        if self.exclude_outside or self.antialias:
            total = weights.sum(axis=1, keepdims=True)
            weights = weights / np.where(total == 0, 1.0, total)
        index = np.clip(index, 0, entry.size - 1)
        shape = [-1 if axis == entry.axis else 1 for axis in range(x.ndim)]
        result = None
        for tap in range(len(offsets)):
            term = np.take(x, index[:, tap], axis=entry.axis)
            term *= weights[:, tap].astype(x.dtype).reshape(shape)
            result = term if result is None else np.add(result, term, out=result)
        return np.asarray(result)


def _check_list(scales: Value | None, sizes: Value | None, axes: Sequence[int]) -> None:
    """Raise ModelError where what gives the scales, or the sizes, is no list with one for each axis.

    Sizes count before scales, but where they are an empty list.
    """
    what, given = ("scales", scales) if sizes is None or sizes.shape == (0,) else ("sizes", sizes)
    if given is not None and (given.rank != 1 or differ(given.shape[0], len(axes))):
        raise ModelError(f"the {what} are {given.type}, expected one for each of {len(axes)} axes")


def _check_count(what: str, values: Sequence[Any], axes: Sequence[int]) -> None:
    if len(values) != len(axes):
        raise ModelError(f"{len(values)} {what} are given for {len(axes)} axes")


def _nearest(places: Array, rule: str, scale: float) -> Array:
    if rule == "floor_up_ceil_down":
        rule = "ceil" if scale < 1 else "floor"
    if rule == "round_prefer_floor":
        return np.ceil(places - 0.5).astype(np.int64)
    if rule == "round_prefer_ceil":
        return np.floor(places + 0.5).astype(np.int64)
    return (np.floor(places) if rule == "floor" else np.ceil(places)).astype(np.int64)


def _cubic(distance: Array, a: float) -> Array:
    """The cubic convolution kernel at distances >= 0.

    Source: R. G. Keys, "Cubic convolution interpolation for digital image processing", IEEE TASSP 29 (1981), eq. 4.
    """
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
