"""Linear quantisation: `quantize` and `dequantize`, with a scale for all, for an axis, or for blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import ceildiv, equal
from argosy.ir.dtype import FLOAT32, FLOAT64, INT32, Array, DType, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import demand_repeats, differ
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import present
from argosy.ops.shapes import normalize_axis

__all__ = ["Dequantize", "Quantize"]


def _check(x: Value, scale: Value, zero_point: Value | None, axis: int, block_size: int) -> None:
    """Raise ModelError where the scale or the zero point does not fit `x`."""
    if not scale.dtype.is_float and scale.dtype is not INT32:
        raise ModelError(f"the scale has type {scale.dtype}, expected a float type")
    _check_shape("scale", x, scale, axis, block_size)
    if zero_point is not None:
        _check_shape("zero point", x, zero_point, axis, block_size)


def _check_shape(what: str, x: Value, parameter: Value, axis: int, block_size: int) -> None:
    shape = parameter.shape
    if len(shape) == 0 or (len(shape) == 1 and equal(shape[0], 1)):
        return
    if len(shape) == 1 and equal(shape[0], 1) is None and not (block_size and x.rank == 1):
        demand_repeats(shape[0], x.shape[normalize_axis(axis, x.rank)], axis)
        return
    axis = normalize_axis(axis, x.rank)
    if not block_size:
        if len(shape) != 1:
            raise ModelError(f"the {what} is {parameter.type}; expected rank 0 or 1, or a block_size")
        if differ(shape[0], x.shape[axis]):
            raise ModelError(f"the {what} has {shape[0]} elements, axis {axis} of x has {x.shape[axis]}")
        return
    if len(shape) != x.rank:
        raise ModelError(f"the {what} is {parameter.type}; with a block_size it must have the rank of x, {x.rank}")
    for place, (found, size) in enumerate(zip(shape, x.shape, strict=True)):
        wanted = ceildiv(size, block_size) if place == axis else size
        if differ(found, wanted):
            raise ModelError(f"the {what} has {found} elements on axis {place}, expected {wanted}")


def _spread(parameter: Array, shape: tuple[int, ...], axis: int, block_size: int) -> Array:
    """A scale or zero point that broadcasts against a tensor of `shape`."""
    if parameter.size == 1:
        return parameter.reshape(())
    if not block_size:
        return parameter.reshape([-1 if place == axis % len(shape) else 1 for place in range(len(shape))])
    axis %= len(shape)
    spread = np.repeat(parameter, min(block_size, shape[axis]), axis=axis)
    cut: tuple[Any, ...] = (*[slice(None)] * axis, slice(shape[axis]))
    return spread[cut]


@register
@dataclass(frozen=True, slots=True)
class Quantize(Op):
    """`saturate(round(x / scale) + zero_point)` in `dtype`. Operands: x, scale, [zero_point].

    x and the quotient are rounded to the type `precision` (None: that of the scale), then to the nearest integer,
    ties to even; what is out of range takes the nearest value, NaN the greatest. Eight-bit floats take the
    quotient itself; without `saturate` an overflow becomes infinity or NaN. A scale of rank 1 belongs to
    `axis`; with `block_size` every `block_size` elements of `axis` share one.
    """

    name = "quantize"
    dtype: DType
    axis: int = 1
    block_size: int = 0
    saturate: bool = True
    precision: DType | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, scale, zero_point = (*operands, None)[:3]
        source = present(x)
        if not (self.dtype.is_float and self.dtype.bits <= 8) and not self.dtype.is_integer:
            raise ModelError(f"there is no quantisation to {self.dtype}")
        if zero_point is not None and zero_point.dtype is not self.dtype:
            raise ModelError(f"the zero point has type {zero_point.dtype}, the result {self.dtype}")
        _check(source, present(scale), zero_point, self.axis, self.block_size)
        return (TensorType(self.dtype, source.shape),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(self.dtype, present(operands[0]).tensor.dims),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, scale, zero_point = (*values, None)[:3]
        precise = self.precision or dtype_of(scale.dtype)
        if not precise.is_float or precise.bits < 16:
            precise = FLOAT32
        wide = precise.compute.numpy
        divisor = _spread(convert(scale, precise).astype(wide), x.shape, self.axis, self.block_size)
        quotient = convert(x, precise).astype(wide, copy=False) / divisor
        if precise.compute is not precise:
            quotient = convert(quotient, precise).astype(wide)
        if zero_point is None or (self.dtype.is_float and self.dtype.bits == 8):
            offset = np.zeros((), wide)
        else:
            offset = _spread(convert(zero_point, FLOAT32).astype(wide), x.shape, self.axis, self.block_size)
        if self.dtype.is_float:
            return (self._to_float(quotient + offset),)
        bits, low = self.dtype.bits, 0
        if self.dtype.kind == "int":
            bits, low = bits - 1, -(2 ** (bits - 1))
        high = 2**bits - 1
        # fmin and fmax take the other argument for NaN.
        bounded = np.fmax(np.fmin(np.rint(quotient) + offset, wide.type(high)), wide.type(low))
        return (convert(np.asarray(bounded), self.dtype),)

    def _to_float(self, quotient: Array) -> Array:
        if self.saturate:
            largest = float(ml_dtypes.finfo(self.dtype.numpy).max)  # type: ignore[no-untyped-call]
            quotient = np.clip(quotient, -largest, largest)
        return quotient.astype(self.dtype.numpy)


@register
@dataclass(frozen=True, slots=True)
class Dequantize(Op):
    """`(x - zero_point) * scale` in `dtype`. Operands: x, scale, [zero_point]; axis and blocks as in `Quantize`.

    Integers are subtracted as such; the product is computed in float32, with a scale of float64 in that.
    """

    name = "dequantize"
    dtype: DType
    axis: int = 1
    block_size: int = 0

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, scale, zero_point = (*operands, None)[:3]
        source = present(x)
        if not (source.dtype.is_integer or (source.dtype.is_float and source.dtype.bits <= 8)):
            raise ModelError(f"a tensor of {source.dtype} is not quantised")
        if zero_point is not None and zero_point.dtype is not source.dtype:
            raise ModelError(f"the zero point has type {zero_point.dtype}, x has {source.dtype}")
        _check(source, present(scale), zero_point, self.axis, self.block_size)
        return (TensorType(self.dtype, source.shape),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(self.dtype, present(operands[0]).tensor.dims),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, scale, zero_point = (*values, None)[:3]
        wide = scale.dtype if scale.dtype == FLOAT64.numpy else FLOAT32.numpy
        whole = convert(x, INT32) if dtype_of(x.dtype).is_integer else x.astype(wide)
        if zero_point is not None:
            offset = convert(zero_point, INT32).astype(whole.dtype) if whole.dtype.kind == "i" else zero_point
            whole = whole - _spread(offset.astype(whole.dtype), x.shape, self.axis, self.block_size)
        factor = _spread(scale.astype(wide), x.shape, self.axis, self.block_size)
        return (convert(np.asarray(whole.astype(wide) * factor), self.dtype),)
