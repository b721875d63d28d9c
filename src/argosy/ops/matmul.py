"""Matrix products: `dot` (numpy's matmul rule) and the arithmetic that every product shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import Array, DType, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.demands import differ
from argosy.ops.numpy_scalar import convert
from argosy.ops.shapes import broadcast

__all__ = ["Dot", "carried", "carrier", "matmul", "product_dtype"]

_EXACT_FLOAT32: Final = 2**24
_EXACT_FLOAT64: Final = 2**53


def product_dtype(left: Value, right: Value, dtype: DType | None) -> DType:
    """Element type of a product: `dtype` where it is given, else the common type of the operands.

    Raises ModelError where the operands differ without a `dtype`, or mix floats with integers.
    """
    if dtype is None and left.dtype is not right.dtype:
        raise ModelError(f"a product needs operands of one element type, found {left.dtype} and {right.dtype}")
    result = left.dtype if dtype is None else dtype
    for operand in (left, right):
        if not (operand.dtype.is_float or operand.dtype.is_integer or operand.dtype.kind == "complex"):
            raise ModelError(f"a product of {operand.dtype} is not defined")
        if operand.dtype.is_float != result.is_float:
            raise ModelError(f"a product of {left.dtype} and {right.dtype} has no result of type {result}")
    return result


def carrier(dtype: DType, depth: int, left: Array, right: Array) -> np.dtype[Any]:
    """The numpy type in which products of elements of `left` and `right`, `depth` of them to a sum, are summed.

    Short floats are multiplied and summed in float32. Integer sums wrap in `dtype`; where the largest possible
    sum is exact in a float type it is that type, for which BLAS is fast.
    """
    if not dtype.is_integer:
        return np.result_type(dtype_of(left.dtype).compute.numpy, dtype_of(right.dtype).compute.numpy)
    largest = depth * _magnitude(left) * _magnitude(right)
    if largest < _EXACT_FLOAT32:
        return np.dtype(np.float32)
    return np.dtype(np.float64) if largest < _EXACT_FLOAT64 else dtype.numpy


def carried(values: Array, wide: np.dtype[Any]) -> Array:
    """`values` in the type that `carrier` chose; sub-byte integers go by way of int8, as ml_dtypes needs."""
    if values.dtype.kind == "V" and dtype_of(values.dtype).is_integer:
        values = values.astype(np.int8)
    return values.astype(wide, copy=False)


def matmul(left: Array, right: Array, dtype: DType) -> Array:
    """`numpy.matmul` in the type that `carrier` chooses for a result of type `dtype`; not yet rounded to it."""
    wide = carrier(dtype, left.shape[-1], left, right)
    return np.asarray(np.matmul(carried(left, wide), carried(right, wide)))


def _magnitude(values: Array) -> int:
    if not values.size:
        return 0
    numbers = values.astype(np.int8) if values.dtype.kind == "V" else values
    return max(int(numbers.max()), -int(numbers.min()))


@register
@dataclass(frozen=True, slots=True)
class Dot(Op):
    """`a @ b` by numpy's rule: the last axis of `a` against the last but one of `b`, the axes before broadcast.

    An operand of rank 1 is a row on the left, a column on the right, and its axis leaves the result.
    `dtype` is the element type of the result and of the sums; None means that of the operands.
    """

    name = "dot"
    dtype: DType | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        left, right = _two(operands)
        result = product_dtype(left, right, self.dtype)
        a, b = left.shape, right.shape
        if not a or not b:
            raise ModelError(f"a matrix product needs operands of rank 1 or more, found {left.type} and {right.type}")
        if differ(a[-1], b[-1] if len(b) == 1 else b[-2]):
            raise ModelError(f"the shapes {list(a)} and {list(b)} do not fit a matrix product")
        batch: Dims = broadcast(a[:-2], b[:-2])
        rows = a[-2:-1]
        columns = b[-1:] if len(b) > 1 else ()
        return (TensorType(result, (*batch, *rows, *columns)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(product_dtype(*_two(operands), self.dtype), None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        left, right = values
        dtype = self.dtype or dtype_of(left.dtype)
        return (convert(matmul(left, right, dtype), dtype),)


def _two(operands: tuple[Value | None, ...]) -> tuple[Value, Value]:
    left, right = operands
    if left is None or right is None:
        raise ModelError("a matrix product needs two operands")
    return left, right
