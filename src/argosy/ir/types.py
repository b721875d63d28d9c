"""Types of values: tensors, sequences, optionals and maps.

A tensor type has an element type and dims; `dims` is None where not even the rank is known, which
happens only in programs whose rank depends on data (ONNX allows it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from argosy.ir.dim import DimLike, Symbol, symbols_in
from argosy.ir.dtype import DType

__all__ = [
    "MAX_RANK",
    "Dims",
    "MapType",
    "OptionalType",
    "SequenceType",
    "TensorType",
    "Type",
    "UnrankedError",
    "map_dims",
    "type_symbols",
]

Dims: TypeAlias = tuple[DimLike, ...]

MAX_RANK: Final = 32
"""Axes that a tensor may have: with as many, all of numpy works."""


class UnrankedError(Exception):
    """Shape inference asked for the dims of a tensor without a known rank; `Op.result_types` catches it."""


class TensorType(msgspec.Struct, frozen=True):
    """A tensor of `dtype` with `dims`, or of unknown rank where `dims` is None."""

    dtype: DType
    dims: Dims | None

    @property
    def shape(self) -> Dims:
        """The dims; raises UnrankedError where the rank is unknown."""
        if self.dims is None:
            raise UnrankedError
        return self.dims

    @property
    def rank(self) -> int:
        """Number of dims; raises UnrankedError where it is unknown."""
        return len(self.shape)

    def with_dims(self, dims: Dims | None) -> TensorType:
        """The same element type with other dims."""
        return TensorType(self.dtype, dims)

    def with_dtype(self, dtype: DType) -> TensorType:
        """The same dims with another element type."""
        return TensorType(dtype, self.dims)

    def __str__(self) -> str:
        if self.dims is None:
            return f"{self.dtype}[*]"
        return f"{self.dtype}[{', '.join(str(dim) for dim in self.dims)}]"


class SequenceType(msgspec.Struct, frozen=True):
    """A sequence of values of one type."""

    element: Type

    def __str__(self) -> str:
        return f"sequence({self.element})"


class OptionalType(msgspec.Struct, frozen=True):
    """A value that may be absent."""

    element: Type

    def __str__(self) -> str:
        return f"optional({self.element})"


class MapType(msgspec.Struct, frozen=True):
    """A map from keys of one element type to values of one type."""

    key: DType
    value: Type

    def __str__(self) -> str:
        return f"map({self.key}, {self.value})"


Type: TypeAlias = TensorType | SequenceType | OptionalType | MapType


def map_dims(kind: Type, change: Callable[[DimLike], DimLike]) -> Type:
    """The type with `change` applied to every dim in it."""
    if isinstance(kind, TensorType):
        return kind if kind.dims is None else TensorType(kind.dtype, tuple(change(dim) for dim in kind.dims))
    if isinstance(kind, SequenceType):
        return SequenceType(map_dims(kind.element, change))
    if isinstance(kind, OptionalType):
        return OptionalType(map_dims(kind.element, change))
    return MapType(kind.key, map_dims(kind.value, change))


def type_symbols(kind: Type) -> set[Symbol]:
    """All symbols in the dims of a type."""
    while not isinstance(kind, TensorType):
        kind = kind.value if isinstance(kind, MapType) else kind.element
    found: set[Symbol] = set()
    for dim in kind.dims or ():
        if not isinstance(dim, int):
            found |= symbols_in(dim)
    return found
