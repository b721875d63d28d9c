"""Convolution: a matrix product over the windows of the input; and its transpose."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import DimLike, dim_max, floordiv, mod
from argosy.ir.dtype import Array, DType, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.demands import demand_room, differ
from argosy.ops.matmul import carried, carrier, product_dtype
from argosy.ops.numpy_scalar import convert
from argosy.ops.window import AUTO_PADS, check_windows, extents, output_sizes, pad_spatial, resolve_pads, windows

__all__ = ["Conv", "ConvTranspose"]

_PATCH_ELEMENTS: Final = 2**21
"""Elements of the windows gathered at a time: a few MiB, so that they stay near the processor."""
_SHIFT_LIMIT: Final = 128
"""Largest kernel for which a depthwise convolution adds shifted images; above it gathers windows."""


def _operands(operands: tuple[Value | None, ...], what: str) -> tuple[Value, Value, Value | None]:
    x, weight = operands[:2]
    if x is None or weight is None:
        raise ModelError(f"{what} needs an input and a weight")
    return x, weight, operands[2] if len(operands) > 2 else None


def _check_operands(
    x: Value, weight: Value, bias: Value | None, result: DType, channels: DimLike, outputs: DimLike
) -> None:
    """Raise ModelError where ranks, channels or the bias contradict each other."""
    if x.rank != weight.rank or x.rank < 3:
        raise ModelError(f"expected an input and a weight of one rank, 3 or more; found {x.type} and {weight.type}")
    if differ(x.shape[1], channels):
        raise ModelError(f"the input has {x.shape[1]} channels, the weight {list(weight.shape)} is for {channels}")
    if bias is not None:
        if bias.dtype is not result:
            raise ModelError(f"the bias has type {bias.dtype}, expected {result}")
        if bias.rank != 1 or differ(bias.shape[0], outputs):
            raise ModelError(f"the bias is {bias.type}, expected [{outputs}]")


@register
@dataclass(frozen=True, slots=True)
class Conv(Op):
    """Convolution of `x [N, C, *spatial]` with `weight [M, C/group, *kernel]`, plus `bias [M]` where it is given.

    `pads` are all begins, then all ends; with an `auto_pad` other than "explicit" (see `window.AUTO_PADS`) they
    follow from the sizes and the attribute is ignored. Padding counts as zero. `dtype` is the element type
    of the result and of integer sums; None means that of the operands.
    """

    name = "conv"
    strides: tuple[int, ...]
    pads: Dims
    dilations: tuple[int, ...]
    group: int = 1
    auto_pad: str = "explicit"
    dtype: DType | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, weight, bias = _operands(operands, self.name)
        result = product_dtype(x, weight, self.dtype)
        if self.auto_pad not in AUTO_PADS:
            raise ModelError(f"auto_pad is {self.auto_pad!r}, expected one of {', '.join(AUTO_PADS)}")
        outputs, channels = weight.shape[:2] if weight.rank > 1 else (0, 0)
        _check_operands(x, weight, bias, result, channels * self.group, outputs)
        if self.group < 1 or differ(mod(outputs, self.group), 0):
            raise ModelError(f"{outputs} output channels do not divide into {self.group} groups")
        kernel = weight.shape[2:]
        check_windows(x.rank - 2, kernel, self.strides, self.dilations, self.pads)
        sizes = output_sizes(self.auto_pad, x.shape[2:], extents(kernel, self.dilations), self.strides, self.pads)
        return (TensorType(result, (x.shape[0], outputs, *sizes)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        x, weight, _ = _operands(operands, self.name)
        return (TensorType(product_dtype(x, weight, self.dtype), None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, weight, *rest = values
        bias = rest[0] if rest else None
        dtype = self.dtype or dtype_of(x.dtype)
        wide = carrier(dtype, math.prod(weight.shape[1:]), x, weight)
        result = self._convolve(carried(x, wide), carried(weight, wide))
        if bias is not None:
            if dtype.is_integer and wide.kind == "f":
                result = convert(result, dtype)
            result += bias.astype(result.dtype).reshape(-1, *(1 for _ in weight.shape[2:]))
        return (convert(result, dtype),)

    def _convolve(self, x: Array, weight: Array) -> Array:
        kernel = weight.shape[2:]
        extent = extents(kernel, self.dilations)
        pads = resolve_pads(self.auto_pad, x.shape[2:], extent, self.strides, self.pads)
        outputs = [int(size) for size in output_sizes(self.auto_pad, x.shape[2:], extent, self.strides, pads)]
        result = np.zeros((x.shape[0], weight.shape[0], *outputs), x.dtype)
        if not result.size or not weight.size:
            return result
        reach = [
            (size - 1) * stride + int(span) for size, stride, span in zip(outputs, self.strides, extent, strict=True)
        ]
        padded = pad_spatial(x, [int(pad) for pad in pads[: len(kernel)]], reach, 0)
        view = windows(padded, kernel, self.strides, self.dilations, outputs)
        if weight.shape[1] == 1 and self.group > 1 and math.prod(kernel) <= _SHIFT_LIMIT:
            _convolve_depthwise(view, weight, self.group, result)
        else:
            _convolve_groups(view, weight, self.group, result)
        return result


def _convolve_depthwise(view: Array, weight: Array, group: int, result: Array) -> None:
    """One input channel to a group: add up the images shifted by each kernel offset, into `result`."""
    batch, (kernel, outputs) = view.shape[0], (weight.shape[2:], result.shape[2:])
    ones = [1] * len(outputs)
    target = result.reshape(batch, group, -1, *outputs)
    product = np.empty_like(target)
    for offset in itertools.product(*map(range, kernel)):
        place: tuple[Any, ...] = (..., *offset, *[slice(None)] * len(outputs))
        tap: tuple[Any, ...] = (slice(None), 0, *offset)
        factor = weight[tap].reshape(group, -1, *ones)
        np.multiply(view[place][:, :, None], factor, out=product)
        target += product


def _convolve_groups(view: Array, weight: Array, group: int, result: Array) -> None:
    """A matrix product for each group over the gathered windows, some rows of the output at a time, into `result`."""
    batch, rank = view.shape[0], result.ndim - 2
    outputs = result.shape[2:]
    matrix = weight.reshape(group, weight.shape[0] // group, -1)
    depth = matrix.shape[2]
    target = result.reshape(batch, group, -1, *outputs)
    per_row = depth * group * math.prod(outputs[1:])
    rows = min(outputs[0], max(1, _PATCH_ELEMENTS // per_row))
    images = max(1, _PATCH_ELEMENTS // (per_row * rows)) if rows == outputs[0] else 1
    for first in range(0, batch, images):
        for row in range(0, outputs[0], rows):
            block: tuple[Any, ...] = (slice(first, first + images), *[slice(None)] * (rank + 1), slice(row, row + rows))
            part = view[block]
            patches = part.reshape(part.shape[0], group, depth, -1)
            product = np.matmul(matrix, patches)
            target[first : first + images, :, :, row : row + rows] = product.reshape(
                part.shape[0], group, -1, part.shape[2 + rank], *outputs[1:]
            )


@register
@dataclass(frozen=True, slots=True)
class ConvTranspose(Op):
    """The transpose of a convolution: `x [N, C, *spatial]`, `weight [C, M/group, *kernel]`, `bias [M]` optional.

    Every input element adds its multiple of the kernel to the output, `strides` apart. The output has
    `stride*(size-1) + extent + output_padding - pads` elements on an axis, or `output_shape` where that is
    given (then, and with an `auto_pad`, the pads follow from it; "same_*" means `stride*size`).
    """

    name = "conv_transpose"
    strides: tuple[int, ...]
    pads: Dims
    dilations: tuple[int, ...]
    group: int = 1
    auto_pad: str = "explicit"
    output_padding: tuple[int, ...] = ()
    output_shape: Dims | None = None
    dtype: DType | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, weight, bias = _operands(operands, self.name)
        result = product_dtype(x, weight, self.dtype)
        channels, outputs = weight.shape[:2] if weight.rank > 1 else (0, 0)
        if self.group < 1 or differ(mod(channels, self.group), 0):
            raise ModelError(f"{channels} input channels do not divide into {self.group} groups")
        outputs = outputs * self.group
        _check_operands(x, weight, bias, result, channels, outputs)
        spatial = x.rank - 2
        check_windows(spatial, weight.shape[2:], self.strides, self.dilations, self.pads)
        for what, given in (("output_padding", self.output_padding), ("output_shape", self.output_shape)):
            if given and len(given) != spatial:
                raise ModelError(f"{what} has {len(given)} entries, expected {spatial}")
        sizes, _ = self.geometry(x.shape[2:], weight.shape[2:])
        for axis, size in enumerate(sizes, 2):
            if isinstance(size, int) and size < 0:
                raise ModelError(f"the result would have {size} elements on axis {axis}")
            demand_room(size, axis)
        return (TensorType(result, (x.shape[0], outputs, *sizes)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        x, weight, _ = _operands(operands, self.name)
        return (TensorType(product_dtype(x, weight, self.dtype), None),)

    def geometry(self, sizes: Dims, kernel: Dims) -> tuple[Dims, Dims]:
        """Output sizes, and the begins of the pads."""
        rank = len(sizes)
        extra = self.output_padding or (0,) * rank
        full = tuple(
            (size - 1) * stride + span + more
            for size, stride, span, more in zip(
                sizes, self.strides, extents(kernel, self.dilations), extra, strict=True
            )
        )
        wanted = self.output_shape
        if wanted is None and self.auto_pad != "explicit":
            wanted = tuple(size * stride for size, stride in zip(sizes, self.strides, strict=True))
        if wanted is None:
            outputs = tuple(
                total - begin - end for total, begin, end in zip(full, self.pads[:rank], self.pads[rank:], strict=True)
            )
            return outputs, self.pads[:rank]
        begins = []
        for total, target in zip(full, wanted, strict=True):
            cut = dim_max(total - target, 0)
            half = floordiv(cut, 2)
            begins.append(half if self.auto_pad == "same_upper" else cut - half)
        return tuple(wanted), tuple(begins)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, weight, *rest = values
        bias = rest[0] if rest else None
        dtype = self.dtype or dtype_of(x.dtype)
        kernel = weight.shape[2:]
        sizes, begins = (tuple(map(int, part)) for part in self.geometry(x.shape[2:], kernel))
        wide = carrier(dtype, weight.shape[0] * math.prod(kernel), x, weight)
        canvas = self._scatter(
            carried(x, wide), carried(weight, wide), [b + s for b, s in zip(begins, sizes, strict=True)]
        )
        inside: tuple[Any, ...] = (..., *(slice(b, b + size) for b, size in zip(begins, sizes, strict=True)))
        kept = canvas[inside]
        if bias is not None:
            kept = kept + bias.astype(kept.dtype).reshape(-1, *(1 for _ in kernel))
        return (convert(np.ascontiguousarray(kept), dtype),)

    def _scatter(self, x: Array, weight: Array, reach: Sequence[int]) -> Array:
        """The whole output before the pads are cut off, at least `reach` long: a product for each kernel offset."""
        batch, channels, *sizes = x.shape
        kernel = weight.shape[2:]
        canvas_sizes = [
            max(limit, (size - 1) * stride + (taps - 1) * dilation + 1)
            for limit, size, stride, taps, dilation in zip(
                reach, sizes, self.strides, kernel, self.dilations, strict=True
            )
        ]
        canvas = np.zeros((batch, self.group, weight.shape[1], *canvas_sizes), x.dtype)
        if x.size and weight.size:
            columns = x.reshape(batch, self.group, channels // self.group, -1)
            matrices = weight.reshape(self.group, channels // self.group, *weight.shape[1:])
            for offset in itertools.product(*map(range, kernel)):
                tap: tuple[Any, ...] = (..., *offset)
                matrix = matrices[tap].transpose(0, 2, 1)
                product = np.matmul(matrix, columns).reshape(batch, self.group, -1, *sizes)
                places: tuple[Any, ...] = (..., *map(_every, offset, self.dilations, self.strides, sizes))
                canvas[places] += product
        return canvas.reshape(batch, self.group * weight.shape[1], *canvas_sizes)


def _every(offset: int, dilation: int, stride: int, size: int) -> slice:
    """The places that one kernel offset adds to on one axis."""
    start = offset * dilation
    return slice(start, start + (size - 1) * stride + 1, stride)
