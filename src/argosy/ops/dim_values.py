"""Dims as data: the shape of a tensor, and the values of dim expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import INT64, Array
from argosy.ir.module import Value
from argosy.ir.op import Known, Op, fresh, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.operands import present

__all__ = ["DimValues", "Shape", "object_array"]


@register
@dataclass(frozen=True, slots=True)
class Shape(Op):
    """The dims of `x` from axis `start` to before `end` as int64, counted and clamped as Python slices are."""

    name = "shape"
    start: int = 0
    end: int | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(INT64, (len(present(operands[0]).shape[self.start : self.end]),)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(INT64, (fresh("rank"),)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (np.array(np.shape(values[0])[self.start : self.end], np.int64),)

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        source = present(operands[0]).tensor.dims
        return None if source is None else (object_array(source[self.start : self.end]),)


@register
@dataclass(frozen=True, slots=True)
class DimValues(Op):
    """The values of dim expressions as int64: a 1-D tensor, or a scalar of the only one. No operands."""

    name = "dims"
    values: Dims
    scalar: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        if self.scalar and len(self.values) != 1:
            raise ModelError(f"a scalar is made of one dim, not of {len(self.values)}")
        return (TensorType(INT64, () if self.scalar else (len(self.values),)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        array = np.array(self.values, np.int64)
        return (array.reshape(()) if self.scalar else array,)

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        array = object_array(self.values)
        return (array.reshape(()) if self.scalar else array,)


def object_array(values: Dims) -> Array:
    """A 1-D object array of numbers and dims."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
