"""Access maps: which element of a source a consumer reads at each point of its iteration space.

A chain of views (reshape, transpose, broadcast, slice, squeeze, pad) moves elements and changes none. Its
map gives an index expression for every axis of the source, over symbols that stand for the consumer's axes,
and conditions under which the source is read at all; elsewhere the consumer sees the padding's value.

    transpose((N, 4), (1, 0)) then pad by 1:   source[@1, @0 - 1]  where 0 <= @0 - 1 < 4

Maps of single views are made by the functions below and composed from the consumer to the source:
`pad_map.compose(transpose_map)`. Index expressions are dims (`argosy.ir.dim`), simplified by what is known
of the extents, symbolic ones too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import InternalError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike, Symbol, equal, substitute, symbol_dim
from argosy.ir.dtype import Array
from argosy.ir.types import Dims

__all__ = ["Access", "Condition", "axis_index", "broadcast", "identity", "pad", "reshape", "slice_by", "transpose"]

_PREFIX: Final = "@"
"""Begins the names of axis symbols; no dim of a program can be called so."""


def axis_index(axis: int, extent: DimLike) -> DimLike:
    """The index along `axis` of an iteration space: a symbol in [0, extent), or 0 where there is one place only."""
    high = dims.bounds(extent)[1]
    return symbol_dim(Symbol(f"{_PREFIX}{axis}", 0, None if high is None else max(high - 1, 0)))


@dataclass(frozen=True, slots=True)
class Condition:
    """`lower <= index < upper`."""

    index: DimLike
    lower: DimLike
    upper: DimLike

    def __str__(self) -> str:
        return f"{self.lower} <= {self.index} < {self.upper}"


@dataclass(frozen=True, slots=True)
class Access:
    """A map from an iteration space with `extents` to a tensor of dims `source`.

    `indices` has an expression for each axis of the source; it is meant where all of `conditions` hold.
    """

    extents: Dims
    source: Dims
    indices: Dims
    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if len(self.indices) != len(self.source):
            raise InternalError(f"{len(self.indices)} indices for a source of rank {len(self.source)}")

    def compose(self, inner: Access) -> Access:
        """First this map, then `inner`, whose iteration space is this map's source."""
        if len(inner.extents) != len(self.source) or any(
            equal(mine, its) is False for mine, its in zip(self.source, inner.extents, strict=True)
        ):
            raise InternalError(f"a map onto {list(self.source)} composed with one from {list(inner.extents)}")
        space = _Space(self.extents)
        values = {f"{_PREFIX}{axis}": index for axis, index in enumerate(self.indices)}
        indices = tuple(space.substitute(index, values) for index in inner.indices)
        conditions = list(self.conditions)
        for condition in inner.conditions:
            index = space.substitute(condition.index, values)
            if not space.within(index, condition.lower, condition.upper):
                conditions.append(Condition(index, condition.lower, condition.upper))
        return Access(self.extents, inner.source, indices, tuple(conditions))

    @property
    def is_identity(self) -> bool:
        """Whether every point reads the element at its own place."""
        if self.conditions or len(self.extents) != len(self.source):
            return False
        pairs = zip(self.indices, self.extents, self.source, strict=True)
        return all(
            index == axis_index(axis, extent) and bool(equal(extent, size))
            for axis, (index, extent, size) in enumerate(pairs)
        )

    def apply(self, source: Array, symbols: Mapping[str, int] | None = None, fill: Any = 0) -> Array:
        """What the consumer sees of `source`, in numpy; `symbols` binds those of the extents and expressions."""
        values: dict[str, Any] = dict(symbols or {})
        shape = [dims.evaluate(extent, values) for extent in self.extents]
        for axis, grid in enumerate(np.indices(shape, sparse=True)):
            values[f"{_PREFIX}{axis}"] = grid
        valid: Any = np.ones(shape, np.bool_)
        for condition in self.conditions:
            index = _numbers(condition.index, values)
            valid = valid & (index >= _numbers(condition.lower, values)) & (index < _numbers(condition.upper, values))
        if not valid.any():
            return np.full(shape, fill, source.dtype)
        places = []
        for index, size in zip(self.indices, source.shape, strict=True):
            grid = np.broadcast_to(_numbers(index, values), shape)
            # Only where conditions may fail may an index be outside.
            places.append(np.clip(grid, 0, size - 1) if self.conditions else grid)
        return np.where(valid, source[tuple(places)], np.asarray(fill, source.dtype))

    def __str__(self) -> str:
        text = f"source[{', '.join(map(str, self.indices))}]"
        return f"{text} where {' and '.join(map(str, self.conditions))}" if self.conditions else text


def identity(shape: Dims) -> Access:
    """Every point reads the element at its own place."""
    return Access(shape, shape, _axes(shape))


def transpose(source: Dims, permutation: Sequence[int]) -> Access:
    """Axis i of the result is axis `permutation[i]` of the source."""
    extents = tuple(source[axis] for axis in permutation)
    indices: list[DimLike] = [0] * len(source)
    for place, axis in enumerate(permutation):
        indices[axis] = axis_index(place, extents[place])
    return Access(extents, source, tuple(indices))


def broadcast(source: Dims, result: Dims) -> Access | None:
    """Repetition along leading axes and axes of size 1; None where it is unknown whether an axis repeats."""
    offset = len(result) - len(source)
    indices: list[DimLike] = []
    for axis, size in enumerate(source):
        if equal(size, result[offset + axis]):
            indices.append(axis_index(offset + axis, result[offset + axis]))
        elif isinstance(size, int) and size == 1:
            indices.append(0)
        else:
            return None
    return Access(result, source, tuple(indices))


def slice_by(source: Dims, result: Dims, starts: Sequence[DimLike], steps: Sequence[int]) -> Access:
    """Place i of axis a is place `starts[a] + i * steps[a]` of the source; starts count from the front."""
    indices = (start + step * index for start, step, index in zip(starts, steps, _axes(result), strict=True))
    return Access(result, source, tuple(indices))


def pad(source: Dims, result: Dims, before: Sequence[DimLike]) -> Access:
    """`before[a]` places in front of axis a, and as many behind as `result` has room for (negative ones cut off)."""
    space = _Space(result)
    indices = tuple(index - amount for index, amount in zip(_axes(result), before, strict=True))
    conditions = tuple(
        Condition(index, 0, size)
        for index, size in zip(indices, source, strict=True)
        if not space.within(index, 0, size)
    )
    return Access(result, source, indices, conditions)


def reshape(source: Dims, result: Dims) -> Access:
    """The same elements in row-major order under other dims, axes of size 1 and equal outer axes seen through."""
    indices: list[DimLike] = [0] * len(source)
    if any(isinstance(size, int) and size == 0 for size in (*source, *result)):
        return Access(result, source, tuple(indices))  # nothing is read
    space = _Space(result)
    axes = _axes(result)
    for inner, outer in _groups(source, result):
        place: DimLike = 0
        for axis in outer:
            place = place * result[axis] + axes[axis]
        for axis in reversed(inner):
            if axis == inner[0]:
                indices[axis] = place
            else:
                place, indices[axis] = space.divide(place, source[axis])
    return Access(result, source, tuple(indices))


def _axes(shape: Dims) -> Dims:
    return tuple(axis_index(axis, extent) for axis, extent in enumerate(shape))


def _groups(source: Dims, result: Dims) -> list[tuple[list[int], list[int]]]:
    """Axes of both sides, without those of size 1, in groups with equal numbers of elements, from the front."""
    inner = [axis for axis, size in enumerate(source) if not (isinstance(size, int) and size == 1)]
    outer = [axis for axis, size in enumerate(result) if not (isinstance(size, int) and size == 1)]
    tail: list[tuple[list[int], list[int]]] = []
    while inner and outer and equal(source[inner[-1]], result[outer[-1]]):
        tail.append(([inner.pop()], [outer.pop()]))
    groups: list[tuple[list[int], list[int]]] = []
    while inner and outer:
        left, right = [inner.pop(0)], [outer.pop(0)]
        mine, its = source[left[0]], result[right[0]]
        while not equal(mine, its):
            low, high = dims.bounds(mine - its)
            if inner and high is not None and high < 0:
                left.append(inner.pop(0))
                mine = mine * source[left[-1]]
            elif outer and low is not None and low > 0:
                right.append(outer.pop(0))
                its = its * result[right[-1]]
            else:  # which side is smaller is not known, so the rest is one group
                left, right, inner, outer = left + inner, right + outer, [], []
                break
        groups.append((left, right))
    if inner:
        groups.append((inner, []))
    return groups + tail[::-1]


class _Space:
    """An iteration space: what the extents tell about expressions over its axes."""

    def __init__(self, extents: Dims) -> None:
        self._last: dict[str, DimLike] = {f"{_PREFIX}{axis}": extent - 1 for axis, extent in enumerate(extents)}

    def highest(self, index: DimLike) -> DimLike | None:
        """The value of an expression at the last place of every axis, where it grows along all of them."""
        if not isinstance(index, Dim):
            return index
        if any(coefficient < 0 and monomial and self._moves(monomial) for monomial, coefficient in index.terms):
            return None
        if any(
            not isinstance(atom, Symbol) for monomial, _ in index.terms for atom in monomial if self._moves((atom,))
        ):
            return None
        return substitute(index, self._last)

    def _moves(self, monomial: Sequence[dims.Atom]) -> bool:
        """Whether a product of atoms depends on an axis."""
        return any(symbol.name in self._last for atom in monomial for symbol in _symbols(atom))

    def within(self, index: DimLike, lower: DimLike, upper: DimLike) -> bool:
        """Whether `lower <= index < upper` at every point, for certain."""
        least = dims.bounds(index - lower)[0]
        top = self.highest(index)
        if least is None or least < 0 or top is None:
            return False
        room = dims.bounds(upper - 1 - top)[0]
        return room is not None and room >= 0

    def divide(self, index: DimLike, by: DimLike) -> tuple[DimLike, DimLike]:
        """Quotient and remainder of an index that is not negative."""
        quotient, rest = _divisible(index, by)
        if self.within(rest, 0, by):
            return quotient, rest
        return dims.floordiv(index, by), dims.mod(index, by)

    def substitute(self, index: DimLike, values: Mapping[str, DimLike]) -> DimLike:
        """Like `dim.substitute`, simplifying divisions by what the extents tell."""
        if not isinstance(index, Dim):
            return index
        total: DimLike = 0
        for monomial, coefficient in index.terms:
            product: DimLike = coefficient
            for atom in monomial:
                product = product * self._atom(atom, values)
            total = total + product
        return _recombined(total)

    def _atom(self, atom: dims.Atom, values: Mapping[str, DimLike]) -> DimLike:
        if isinstance(atom, Symbol):
            value = values.get(atom.name)
            return symbol_dim(atom) if value is None else value
        left, right = self.substitute(atom.left, values), self.substitute(atom.right, values)
        if atom.function in ("floordiv", "mod"):
            return self.divide(left, right)[atom.function == "mod"]
        return dims.FUNCTIONS[atom.function](left, right)


def _recombined(index: DimLike) -> DimLike:
    """`x` for every `d * floordiv(x, d) + mod(x, d)` in an expression."""
    if not isinstance(index, Dim):
        return index
    for monomial, coefficient in index.terms:
        for atom in monomial:
            if not isinstance(atom, Symbol) and atom.function == "mod":
                rest = list(monomial)
                rest.remove(atom)
                factor = Dim(((tuple(rest), coefficient),)) if rest else coefficient
                quotient = Dim((((dims.Call("floordiv", atom.left, atom.right),), 1),)) * factor * atom.right
                if isinstance(quotient, Dim) and set(quotient.terms) <= set(index.terms):
                    remainder = Dim((((atom,), 1),)) * factor
                    return _recombined(index - quotient - remainder + atom.left * factor)
    return index


def _symbols(atom: dims.Atom) -> set[Symbol]:
    return {atom} if isinstance(atom, Symbol) else dims.symbols_in(atom.left) | dims.symbols_in(atom.right)


def _divisible(index: DimLike, by: DimLike) -> tuple[DimLike, DimLike]:
    """`(q, r)` with `index = q * by + r`, where `q` takes the terms that `by`, a number or one term, divides."""
    if not isinstance(index, Dim):
        return divmod(index, by) if isinstance(by, int) and by > 0 else (0, index)
    if isinstance(by, Dim) and len(by.terms) != 1:
        return 0, index
    factors, number = by.terms[0] if isinstance(by, Dim) else ((), by)
    quotient: DimLike = 0
    rest: DimLike = 0
    for monomial, coefficient in index.terms:
        kept = list(monomial)
        divides = coefficient % number == 0
        for factor in factors:
            divides = divides and factor in kept
            if divides:
                kept.remove(factor)
        term = Dim(((monomial, coefficient),)) if monomial else coefficient
        if divides:
            quotient = quotient + (Dim(((tuple(kept), coefficient // number),)) if kept else coefficient // number)
        else:
            rest = rest + term
    return quotient, rest


_ON_NUMBERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b,
    "min": np.minimum,
    "max": np.maximum,
}


def _numbers(index: DimLike, values: Mapping[str, Any]) -> Any:
    """An expression over numbers and grids of indices."""
    if not isinstance(index, Dim):
        return index
    total: Any = 0
    for monomial, coefficient in index.terms:
        factors = [
            values[atom.name]
            if isinstance(atom, Symbol)
            else _ON_NUMBERS[atom.function](_numbers(atom.left, values), _numbers(atom.right, values))
            for atom in monomial
        ]
        total = total + coefficient * math.prod(factors)
    return total
