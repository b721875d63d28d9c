"""Maps from keys to numbers or strings: host values. A map is a dict whose numbers are numpy scalars, keys Python's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import equal
from argosy.ir.dtype import STRING, Array, DType
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import MapType, SequenceType, TensorType, Type
from argosy.ops.operands import present

__all__ = ["MapConstruct", "MapEntries"]


@register
@dataclass(frozen=True, slots=True)
class MapEntries(Op):
    """The keys (of type `key`) and values (`value`) of a map as two vectors, in the ascending order of the keys.

    Where `limit` is given, integer keys outside 0 .. limit - 1 are an error.
    """

    name = "map_entries"
    key: DType
    value: DType
    limit: int | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        kind = present(operands[0]).type
        scalars = isinstance(kind, MapType) and isinstance(kind.value, TensorType) and not kind.value.dims
        if not scalars or (kind.key, kind.value.dtype) != (self.key, self.value):  # type: ignore[union-attr]
            raise ModelError(f"found {kind}, expected a map from {self.key} to {self.value}")
        if self.limit is not None and not self.key.is_integer:
            raise ModelError(f"the keys are {self.key}, expected integers")
        count = (fresh("entries"),)
        return (TensorType(self.key, count), TensorType(self.value, count))

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        keys = sorted(values[0])
        if self.limit is not None and keys and (keys[0] < 0 or keys[-1] >= self.limit):
            raise ModelError(f"the map has keys from {keys[0]} to {keys[-1]}, expected 0 to {self.limit - 1}")
        return (_vector(keys, self.key), _vector([values[0][key] for key in keys], self.value))


def _vector(entries: list[Any], dtype: DType) -> Array:
    if dtype is not STRING:
        return np.array(entries, dtype.numpy)
    result = np.empty(len(entries), object)
    result[:] = entries
    return result


@register
@dataclass(frozen=True, slots=True)
class MapConstruct(Op):
    """A sequence with one map for each row of `values`; a vector is one row. Operands: keys[n], values[rows, n].

    Of equal keys the last counts.
    """

    name = "map_construct"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        keys, values = (present(operand) for operand in operands)
        if keys.rank != 1 or values.rank not in (1, 2):
            raise ModelError(f"found keys {keys.type} and values {values.type}, expected [n] and [rows, n]")
        if equal(keys.shape[0], values.shape[-1]) is False:
            raise ModelError(f"{keys.shape[0]} keys are given for {values.shape[-1]} values in a row")
        return self.infer_unranked(*operands)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        keys, values = (present(operand) for operand in operands)
        return (SequenceType(MapType(keys.dtype, TensorType(values.dtype, ()))),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        keys = np.asarray(values[0]).tolist()
        rows = np.atleast_2d(np.asarray(values[1]))
        if rows.ndim != 2 or rows.shape[1] != len(keys):
            raise ModelError(f"{len(keys)} keys are given for values of the shape {list(np.shape(values[1]))}")
        return ([dict(zip(keys, row, strict=True)) for row in rows],)
