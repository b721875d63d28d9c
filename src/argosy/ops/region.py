"""Pooling over regions of interest: ONNX RoiAlign and MaxRoiPool."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import Array, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import differ
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import present

__all__ = ["MaxRegionPool", "RegionAlign"]


@dataclass(frozen=True, slots=True)
class _Samples:
    """Where the samples of one axis fall: two neighbours and their weights, each `[bins, samples]`."""

    lower: Array
    upper: Array
    lower_weight: Array
    upper_weight: Array

    @staticmethod
    def along(size: int, start: float, bin_size: float, bins: int, count: int) -> _Samples:
        """`count` evenly spaced samples in each of `bins` bins; those more than 1 outside have no weight."""
        inner = (np.arange(count) + 0.5) * bin_size / max(count, 1)
        places = start + np.arange(bins)[:, None] * bin_size + inner
        valid = (places >= -1.0) & (places <= size)
        inside = np.clip(places, 0.0, size - 1.0)
        lower = inside.astype(np.int64)
        upper = np.minimum(lower + 1, size - 1)
        fraction = inside - lower
        return _Samples(lower, upper, np.where(valid, 1 - fraction, 0.0), np.where(valid, fraction, 0.0))

    def matrix(self, size: int) -> Array:
        """The matrix `[bins, size]` that takes the mean of each bin's samples."""
        bins, count = self.lower.shape
        result = np.zeros((bins, size))
        rows = np.arange(bins)[:, None]
        np.add.at(result, (rows, self.lower), self.lower_weight)
        np.add.at(result, (rows, self.upper), self.upper_weight)
        return result / max(count, 1)


@register
@dataclass(frozen=True, slots=True)
class RegionAlign(Op):
    """Regions of `x [N, C, H, W]` sampled by bilinear interpolation, as `[regions, C, *output]`.

    Operands: x, regions `[regions, 4]` (x1, y1, x2, y2, times `scale`), the image of each region. Every bin
    of a region takes `samples` x `samples` places (0: as many as it has elements), and their mean, or with
    `kind` max the greatest of all weighted neighbours. `half_pixel` shifts regions by half an element.
    """

    name = "roi_align"
    kind: str
    output: tuple[int, int]
    scale: float = 1.0
    samples: int = 0
    half_pixel: bool = True

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, regions, images = (present(operand) for operand in operands)
        if self.kind not in ("average", "max"):
            raise ModelError(f"there is no pooling of regions by {self.kind!r}")
        if x.rank != 4 or regions.rank != 2 or differ(regions.shape[1], 4):
            raise ModelError(f"expected x [N, C, H, W] and regions [n, 4], found {x.type} and {regions.type}")
        if images.rank != 1 or differ(images.shape[0], regions.shape[0]):
            raise ModelError(f"expected one image for each region, found {images.type} for {regions.type}")
        return (TensorType(x.dtype, (regions.shape[0], x.shape[1], *self.output)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, regions, images = values
        dtype = dtype_of(x.dtype)
        wide = x.astype(dtype.compute.numpy, copy=False)
        result = np.zeros((len(regions), x.shape[1], *self.output), wide.dtype)
        for number, (region, image) in enumerate(zip(regions.astype(np.float64), images, strict=True)):
            if not 0 <= int(image) < len(x):
                raise ModelError(f"region {number} is of image {int(image)}, but there are {len(x)}")
            result[number] = self._pool(wide[int(image)], region * self.scale - (0.5 if self.half_pixel else 0.0))
        return (convert(result, dtype),)

    def _pool(self, image: Array, region: Array) -> Array:
        if not image.size:
            return np.zeros((image.shape[0], *self.output), image.dtype)
        if not np.isfinite(region).all():
            raise ModelError(f"a region is {region.tolist()}, expected finite numbers")
        axes = []
        for axis, (start, end) in enumerate(((region[1], region[3]), (region[0], region[2]))):
            length = end - start if self.half_pixel else max(end - start, 1.0)
            bins = self.output[axis]
            count = self.samples or max(math.ceil(length / bins), 0)
            axes.append(_Samples.along(image.shape[axis + 1], start, length / bins, bins, count))
        rows, columns = axes
        if self.kind == "average":
            left, right = rows.matrix(image.shape[1]), columns.matrix(image.shape[2])
            return left.astype(image.dtype) @ image @ right.astype(image.dtype).T
        return _greatest(image, rows, columns)


def _greatest(image: Array, rows: _Samples, columns: _Samples) -> Array:
    """The greatest of the four weighted neighbours of all samples of each bin."""
    result: Array | None = None
    if not rows.lower.size or not columns.lower.size:
        return np.zeros((image.shape[0], len(rows.lower), len(columns.lower)), image.dtype)
    for row, row_weight in ((rows.lower, rows.lower_weight), (rows.upper, rows.upper_weight)):
        for column, column_weight in ((columns.lower, columns.lower_weight), (columns.upper, columns.upper_weight)):
            # [C, bins, samples, bins, samples]
            value = image[:, row[:, :, None, None], column[None, None]]
            weighted = value * (row_weight[:, :, None, None] * column_weight[None, None]).astype(image.dtype)
            greatest = weighted.max(axis=(2, 4))
            result = greatest if result is None else np.maximum(result, greatest)
    return np.asarray(result)


@register
@dataclass(frozen=True, slots=True)
class MaxRegionPool(Op):
    """The greatest element of each bin of the regions `[n, 5]` (image, x1, y1, x2, y2, times `scale`, rounded).

    A region holds both its ends; a bin outside of the image gives 0.
    """

    name = "max_roi_pool"
    output: tuple[int, int]
    scale: float = 1.0

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, regions = (present(operand) for operand in operands)
        if x.rank != 4 or regions.rank != 2 or differ(regions.shape[1], 5):
            raise ModelError(f"expected x [N, C, H, W] and regions [n, 5], found {x.type} and {regions.type}")
        return (TensorType(x.dtype, (regions.shape[0], x.shape[1], *self.output)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, regions = values
        result = np.zeros((len(regions), x.shape[1], *self.output), x.dtype)
        for number, region in enumerate(regions.astype(np.float64)):
            image = int(region[0])
            if not 0 <= image < len(x):
                raise ModelError(f"region {number} is of image {image}, but there are {len(x)}")
            # C's round: halves away from zero.
            x1, y1, x2, y2 = (int(math.copysign(math.floor(abs(v) + 0.5), v)) for v in region[1:] * self.scale)
            rows = _bins(y1, y2, self.output[0], x.shape[2])
            columns = _bins(x1, x2, self.output[1], x.shape[3])
            for row, rows_here in enumerate(rows):
                for column, columns_here in enumerate(columns):
                    part = x[image, :, rows_here, columns_here]
                    if part.size:
                        result[number, :, row, column] = part.max(axis=(1, 2))
        return (result,)


def _bins(first: int, last: int, count: int, size: int) -> list[slice]:
    length = max(last - first + 1, 1) / count
    edges = ((math.floor(bin_ * length), math.ceil((bin_ + 1) * length)) for bin_ in range(count))
    return [slice(*(min(max(edge + first, 0), size) for edge in pair)) for pair in edges]
