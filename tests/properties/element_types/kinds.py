"""Types as ONNX's schemas spell them, and arrays brought into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, TypeProto, helper

from argosy.ir.dtype import DTYPES, Array, DType, dtype_of

__all__ = ["Kind", "as_element", "element"]

_NAMES = {
    "float": "float32", "double": "float64", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn", "float6e2m3": "float6_e2m3fn", "float6e3m2": "float6_e3m2fn",
}  # fmt: skip

_SCHEMA_NAMES = {name: schema for schema, name in _NAMES.items()}


def element(name: str) -> DType:
    """An element type by the name that schemas use."""
    return DTYPES[_NAMES.get(name, name)]


@dataclass(frozen=True, slots=True)
class Kind:
    """`tensor(T)`, `seq(tensor(T))`, `optional(…)`: the containers from outside in, and the element type's name."""

    containers: tuple[str, ...]
    name: str

    @staticmethod
    def of(text: str) -> Kind:
        """A type of a schema."""
        parts = text.replace(")", "").split("(")
        return Kind(tuple(part for part in parts[:-1] if part != "tensor"), parts[-1])

    @staticmethod
    def of_value(value: Any) -> Kind:
        """The type of an array, or of a list of arrays (of float32 where it is empty)."""
        if isinstance(value, list):
            inner = Kind.of_value(value[0]) if value else Kind((), "float")
            return Kind(("seq", *inner.containers), inner.name)
        name = dtype_of(np.asarray(value).dtype).name
        return Kind((), _SCHEMA_NAMES.get(name, name))

    @property
    def dtype(self) -> DType:
        """The element type."""
        return element(self.name)

    @property
    def number(self) -> int:
        """The element type's number in TensorProto."""
        return int(TensorProto.DataType.Value(self.name.upper()))

    def __str__(self) -> str:
        return f"{'('.join((*self.containers, self.name))}{')' * len(self.containers)}"

    def proto(self, value: Any) -> TypeProto:
        """The type of the input that `value` is for."""
        inner = value
        while isinstance(inner, list):
            inner = inner[0] if inner else None
        shape = None if inner is None or "seq" in self.containers else np.shape(inner)
        kind = helper.make_tensor_type_proto(self.number, shape)
        for container in reversed(self.containers):
            kind = (
                helper.make_sequence_type_proto(kind) if container == "seq" else helper.make_optional_type_proto(kind)
            )
        return kind


@np.errstate(all="ignore")  # what is too large becomes infinity
def as_element(value: Any, dtype: DType) -> Any:
    """The numbers of an array (or list of arrays) in an element type, brought into what it holds.

    The magnitude is taken where it has no sign; numbers beyond it become its greatest.
    """
    if isinstance(value, list):
        return [as_element(item, dtype) for item in value]
    if value is None:
        return None
    array = np.asarray(value)
    if dtype.kind == "string":
        own = dtype_of(array.dtype)
        numbers = array if own.compute is own else array.astype(own.compute.numpy)
        return numbers if numbers.dtype == object else numbers.astype(str).astype(object)
    if array.dtype == object or array.dtype.kind in "US":
        array = np.array([len(text) for text in array.reshape(-1)], np.int64).reshape(array.shape)
    if dtype.kind == "bool":
        return array.astype(np.float64) != 0 if array.dtype.kind != "c" else array != 0
    wide: Array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    if dtype.kind == "complex":
        return (wide if wide.dtype.kind == "c" else wide + 0.5j * wide).astype(dtype.numpy)
    if wide.dtype.kind == "c":
        wide = wide.real
    if dtype.is_integer:
        return _integers(array, wide, dtype)
    if dtype.name == "float8_e8m0fnu":
        return np.exp2(np.round(np.log2(np.clip(np.abs(wide), 0.125, 8)))).astype(dtype.numpy)
    if dtype.bits < 16:
        most = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
        wide = np.clip(wide, -most, most)
    return wide.astype(dtype.numpy)


def _integers(array: Array, wide: Array, dtype: DType) -> Array:
    least = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    most = least + (1 << dtype.bits) - 1
    if array.dtype.kind in "iu":
        exact = np.clip(array.astype(np.int64) if array.dtype != np.uint64 else array, max(least, -(1 << 62)), None)
        return np.minimum(exact, min(most, 1 << 62)).astype(dtype.numpy)
    rounded = np.nan_to_num(np.rint(wide if least else np.abs(wide)), nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(rounded, max(least, -(2.0**62)), min(most, 2.0**62)).astype(np.int64).astype(dtype.numpy)
