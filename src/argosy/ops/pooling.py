"""Pooling: the greatest element, the average or the p-norm of every window."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import INT64, Array, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import present
from argosy.ops.window import AUTO_PADS, check_windows, extents, output_sizes, pad_spatial, resolve_pads, windows

__all__ = ["Pool"]

_KINDS: Final = ("max", "average", "lp")


@register
@dataclass(frozen=True, slots=True)
class Pool(Op):
    """Every window of `x [N, C, *spatial]` reduced to one element: max, average, or lp (the p-norm).

    Pads and `auto_pad` are those of a convolution. Padding never is the greatest and adds 0 to a norm; to an
    average it adds nothing, or 0 where `count_include_pad`. What hangs over the end because of `ceil_mode` is
    not counted either way. With `with_indices` (max only) a second result says where each greatest element
    is: its position in the flattened `x`, the spatial axes last-fastest, or first-fastest where
    `column_major`. The first of equals counts.
    """

    name = "pool"
    kind: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: Dims
    dilations: tuple[int, ...]
    auto_pad: str = "explicit"
    ceil_mode: bool = False
    count_include_pad: bool = False
    p: int = 2
    with_indices: bool = False
    column_major: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x = present(operands[0])
        if self.kind not in _KINDS or self.auto_pad not in AUTO_PADS:
            raise ModelError(f"there is no pooling {self.kind!r} with auto_pad {self.auto_pad!r}")
        if not (x.dtype.is_float or (self.kind == "max" and x.dtype.is_integer)):
            raise ModelError(f"{self.kind} pooling is not defined for {x.dtype}")
        if self.kind == "lp" and self.p < 1:
            raise ModelError(f"p is {self.p}, expected a positive number")
        if x.rank < 3:
            raise ModelError(f"pooling needs rank 3 or more, found {x.type}")
        check_windows(x.rank - 2, self.kernel, self.strides, self.dilations, self.pads)
        sizes = output_sizes(
            self.auto_pad,
            x.shape[2:],
            extents(self.kernel, self.dilations),
            self.strides,
            self.pads,
            ceil_mode=self.ceil_mode,
        )
        return self._types(x, (*x.shape[:2], *sizes))

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return self._types(present(operands[0]), None)

    def _types(self, x: Value, dims: Dims | None) -> tuple[Type, ...]:
        values = TensorType(x.dtype, dims)
        return (values, TensorType(INT64, dims)) if self.with_indices else (values,)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = values[0]
        dtype = dtype_of(x.dtype)
        wide = x.astype(dtype.compute.numpy, copy=False)
        extent = extents(self.kernel, self.dilations)
        pads = tuple(map(int, resolve_pads(self.auto_pad, x.shape[2:], extent, self.strides, self.pads)))
        outputs = tuple(
            max(int(size), 0)
            for size in output_sizes(self.auto_pad, x.shape[2:], extent, self.strides, pads, ceil_mode=self.ceil_mode)
        )
        reach = [
            (size - 1) * stride + int(span) for size, stride, span in zip(outputs, self.strides, extent, strict=True)
        ]
        if 0 in outputs or not x.size:
            empty = np.zeros((*x.shape[:2], *outputs), x.dtype)
            return (empty, empty.astype(np.int64)) if self.with_indices else (empty,)
        if self.kind == "max":
            padded = pad_spatial(wide, pads[: len(outputs)], reach, _least(wide.dtype))
            if self.with_indices:
                best, places = self._greatest_with_place(padded, x.shape, pads, outputs)
                return (convert(best, dtype), places)
            return (convert(self._accumulate(padded, outputs, np.maximum), dtype),)
        if self.kind == "lp":
            padded = pad_spatial(_power(np.abs(wide), self.p), pads[: len(outputs)], reach, 0)
            total = self._accumulate(padded, outputs, np.add)
            return (convert(_root(total, self.p), dtype),)
        padded = pad_spatial(wide, pads[: len(outputs)], reach, 0)
        total = self._accumulate(padded, outputs, np.add)
        total /= self._counts(x.shape[2:], pads, outputs).astype(total.dtype)
        return (convert(total, dtype),)

    def _accumulate(self, padded: Array, outputs: Sequence[int], combine: Callable[..., Array]) -> Array:
        """All windows reduced by `combine`, one axis after the other: as many steps as the kernel is long."""
        rank = len(outputs)
        result = padded
        for axis, (taps, stride, dilation, size) in enumerate(
            zip(self.kernel, self.strides, self.dilations, outputs, strict=True)
        ):
            front = (slice(None),) * (padded.ndim - rank + axis)
            whole = result
            result = whole[(*front, _places(0, stride, size))].copy()
            for tap in range(1, taps):
                combine(result, whole[(*front, _places(tap * dilation, stride, size))], out=result)
        return result

    def _counts(self, sizes: Sequence[int], pads: Sequence[int], outputs: Sequence[int]) -> Array:
        """How many elements of each window count in an average; at least 1."""
        rank = len(sizes)
        result = np.ones((1,) * rank, np.int64)
        for axis, taps in enumerate(self._taps(outputs)):
            begin, end = pads[axis], pads[axis] + sizes[axis]
            low, high = (0, end + pads[rank + axis]) if self.count_include_pad else (begin, end)
            count = ((taps >= low) & (taps < high)).sum(axis=1)
            result = result * count.reshape([-1 if other == axis else 1 for other in range(rank)])
        return np.maximum(result, 1)

    def _taps(self, outputs: Sequence[int]) -> list[Array]:
        """For each axis, the padded positions `[output, tap]` that the windows read."""
        return [
            np.arange(size)[:, None] * stride + np.arange(taps) * dilation
            for size, stride, taps, dilation in zip(outputs, self.strides, self.kernel, self.dilations, strict=True)
        ]

    def _greatest_with_place(
        self, padded: Array, shape: Sequence[int], pads: Sequence[int], outputs: Sequence[int]
    ) -> tuple[Array, Array]:
        spatial = shape[2:]
        rank = len(spatial)
        order = range(rank) if self.column_major else reversed(range(rank))
        weights, weight = [0] * rank, 1
        for axis in order:
            weights[axis], weight = weight, weight * spatial[axis]
        taps = [taps - pads[axis] for axis, taps in enumerate(self._taps(outputs))]
        view = windows(padded, self.kernel, self.strides, self.dilations, outputs)
        best = np.full((*shape[:2], *outputs), _least(padded.dtype), padded.dtype)
        place = np.full(best.shape, -1, np.int64)
        for offset in itertools.product(*map(range, self.kernel)):
            here: Array = np.zeros((1,) * rank, np.int64)
            inside: Array = np.ones((1,) * rank, np.bool_)
            for axis, tap in enumerate(offset):
                position = taps[axis][:, tap].reshape([-1 if other == axis else 1 for other in range(rank)])
                here = here + position * weights[axis]
                inside = inside & (position >= 0) & (position < spatial[axis])
            at: tuple[Any, ...] = (slice(None), slice(None), *offset)
            value = view[at]
            better = inside & ((value > best) | (place < 0) | ((value != value) & (best == best)))  # noqa: PLR0124 - NaN
            best = np.where(better, value, best)
            place = np.where(better, here, place)
        planes = np.arange(shape[0] * shape[1]).reshape(*shape[:2], *(1,) * rank) * weight
        return best, place + planes


def _places(start: int, stride: int, size: int) -> slice:
    return slice(start, start + (size - 1) * stride + 1, stride)


def _least(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _power(values: Array, p: int) -> Array:
    if p == 1:
        return values
    return values * values if p == 2 else np.power(values, p)


def _root(values: Array, p: int) -> Array:
    if p == 1:
        return values
    return np.sqrt(values) if p == 2 else np.power(values, 1.0 / p)
