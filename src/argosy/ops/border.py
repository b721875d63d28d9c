"""Types that cross the border of a body: what of them the outside can know.

A symbol that a body defines for itself (the length of a NonZero in it, the size of a value that grows from
one iteration to the next) means nothing outside, where the dim becomes a fresh one. Types that come from
several bodies are merged: dims that differ become fresh, differing ranks unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.op import fresh
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type, type_symbols

__all__ = ["Border", "fits", "symbol_names"]


def symbol_names(types: Iterable[Type]) -> frozenset[str]:
    """Names of the symbols in several types."""
    return frozenset(symbol.name for kind in types for symbol in type_symbols(kind))


def fits(kind: Type, other: Type) -> bool:
    """True where a value of type `other` may stand for one of type `kind`, dims apart."""
    if isinstance(kind, OptionalType):
        return fits(kind.element, other.element if isinstance(other, OptionalType) else other)
    if isinstance(kind, TensorType):
        return isinstance(other, TensorType) and other.dtype is kind.dtype
    if isinstance(kind, SequenceType):
        return isinstance(other, SequenceType) and fits(kind.element, other.element)
    return isinstance(other, MapType) and other.key is kind.key and fits(kind.value, other.value)


class Border:
    """One crossing. Local to one `infer`: equal dims inside become one fresh dim outside, so it remembers them."""

    def __init__(self, visible: frozenset[str]) -> None:
        self._visible = visible
        self._fresh: dict[tuple[DimLike, ...], DimLike] = {}

    def dim(self, *inside: DimLike) -> DimLike:
        """The dim outside for one that has one of several values inside."""
        first = inside[0]
        if all(dims.equal(first, other) for other in inside[1:]) and all(
            symbol.name in self._visible for symbol in dims.symbols_in(first)
        ):
            return first
        if inside not in self._fresh:
            ranges = [dims.bounds(dim) for dim in inside]
            lows = [low for low, _ in ranges]
            highs = [high for _, high in ranges]
            self._fresh[inside] = fresh(
                f"{len(self._fresh)}_",
                lower=max(min(0 if low is None else low for low in lows), 0),
                upper=None if None in highs else max(high for high in highs if high is not None),
            )
        return self._fresh[inside]

    def type(self, *inside: Type) -> Type:
        """The type outside for a value that has one of several types inside.

        Raises ModelError where these are of different kinds or element types.
        """
        first = inside[0]
        if any(type(other) is not type(first) for other in inside):
            raise _different(inside)
        if isinstance(first, TensorType):
            return self._tensor(*(kind for kind in inside if isinstance(kind, TensorType)))
        if isinstance(first, SequenceType):
            return SequenceType(self.type(*(kind.element for kind in inside if isinstance(kind, SequenceType))))
        if isinstance(first, OptionalType):
            return OptionalType(self.type(*(kind.element for kind in inside if isinstance(kind, OptionalType))))
        maps = [kind for kind in inside if isinstance(kind, MapType)]
        if any(kind.key is not maps[0].key for kind in maps):
            raise _different(inside)
        return MapType(maps[0].key, self.type(*(kind.value for kind in maps)))

    def _tensor(self, *inside: TensorType) -> TensorType:
        first = inside[0]
        if any(kind.dtype is not first.dtype for kind in inside):
            raise _different(inside)
        shapes = [kind.dims for kind in inside if kind.dims is not None]
        if len(shapes) < len(inside) or any(len(shape) != len(shapes[0]) for shape in shapes):
            return TensorType(first.dtype, None)
        return TensorType(first.dtype, tuple(self.dim(*alternatives) for alternatives in zip(*shapes, strict=True)))


def _different(inside: tuple[Type, ...]) -> ModelError:
    return ModelError(f"found {' and '.join(map(str, inside))}, expected one type")
