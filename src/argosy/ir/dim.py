"""Dimensions: integers, or integer expressions over bounded symbols, kept in a normal form.

A dim is a Python int or a `Dim`. A `Dim` is a polynomial with integer coefficients over *atoms*; an atom
is a `Symbol` or one of `floordiv`, `ceildiv`, `mod`, `min`, `max` applied to two dims. Every operation
returns the normal form (and a plain int where nothing symbolic is left), so two dims that are the same
polynomial over the same atoms compare equal. `compare` adds what the bounds of the symbols tell; where
neither decides, the answer is "unknown" and the caller must decline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias, Union

import msgspec

from argosy.errors import InternalError, ModelError
from argosy.ir import interval
from argosy.ir.interval import Interval
from argosy.ir.lexer import RESERVED, is_word, quote

__all__ = [
    "FUNCTIONS",
    "Atom",
    "Call",
    "Dim",
    "DimLike",
    "Symbol",
    "bounds",
    "ceildiv",
    "dim_max",
    "dim_min",
    "equal",
    "evaluate",
    "floordiv",
    "lone_symbol",
    "mod",
    "substitute",
    "symbol_dim",
    "symbols_in",
]


class Symbol(msgspec.Struct, frozen=True):
    """A named unknown size with a lower and an optional upper bound, both inclusive."""

    name: str
    lower: int = 0
    upper: int | None = None

    def __str__(self) -> str:
        return self.name if is_word(self.name) and self.name not in RESERVED else f"${quote(self.name)}"


class Call(msgspec.Struct, frozen=True):
    """A non-polynomial operation on two dims, used as an atom."""

    function: str
    left: DimLike
    right: DimLike

    def __str__(self) -> str:
        return f"{self.function}({self.left}, {self.right})"


Atom: TypeAlias = Symbol | Call
Monomial: TypeAlias = tuple[Atom, ...]


class Dim(msgspec.Struct, frozen=True):
    """A polynomial: pairs of a monomial (sorted atoms; empty for the constant) and its coefficient."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: DimLike) -> DimLike:
        return _combine(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: DimLike) -> DimLike:
        return _combine(self, other, -1)

    def __rsub__(self, other: int) -> DimLike:
        return _combine(other, self, -1)

    def __neg__(self) -> DimLike:
        return _combine(0, self, -1)

    def __mul__(self, other: DimLike) -> DimLike:
        sums: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = tuple(sorted((*left, *right), key=str))
                sums[monomial] = sums.get(monomial, 0) + a * b
        return _normal(sums)

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> DimLike:
        return floordiv(self, other)

    def __rfloordiv__(self, other: int) -> DimLike:
        return floordiv(other, self)

    def __mod__(self, other: DimLike) -> DimLike:
        return mod(self, other)

    def __rmod__(self, other: int) -> DimLike:
        return mod(other, self)

    def __str__(self) -> str:
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            factors = [str(atom) for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+"
            parts.append(f"{sign} {'*'.join(factors)}")
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else text.replace("- ", "-", 1)

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise InternalError(f"the truth of the symbolic dim {self} was asked", hint="compare with dim.equal")

    def __index__(self) -> int:
        raise InternalError(f"the symbolic dim {self} was used as a number", hint="bind it first")


DimLike: TypeAlias = Union[int, Dim]  # noqa: UP007 - a forward reference in an annotation above


def symbol_dim(symbol: Symbol) -> DimLike:
    """The dim that is just `symbol`; a symbol bounded to one value is that value."""
    if symbol.upper is not None and symbol.upper == symbol.lower:
        return symbol.lower
    return Dim((((symbol,), 1),))


def lone_symbol(dim: DimLike) -> Symbol | None:
    """The symbol, where `dim` is nothing but one."""
    if isinstance(dim, Dim) and len(dim.terms) == 1:
        monomial, coefficient = dim.terms[0]
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], Symbol):
            return monomial[0]
    return None


def _terms(dim: DimLike) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(dim, Dim):
        return dim.terms
    return (((), dim),) if dim else ()


def _sort_key(item: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    # Higher degrees first, the constant last, names within a degree: the order in which people write.
    return (-len(item[0]), tuple(str(atom) for atom in item[0]))


def _normal(sums: dict[Monomial, int]) -> DimLike:
    kept = [(monomial, c) for monomial, c in sums.items() if c]
    if not kept:
        return 0
    if len(kept) == 1:
        return Dim(tuple(kept)) if kept[0][0] else kept[0][1]
    return Dim(tuple(sorted(kept, key=_sort_key)))


def _combine(left: DimLike, right: DimLike, sign: int) -> DimLike:
    sums = dict(_terms(left))
    for monomial, coefficient in _terms(right):
        sums[monomial] = sums.get(monomial, 0) + sign * coefficient
    return _normal(sums)


def _call(function: str, left: DimLike, right: DimLike) -> DimLike:
    return Dim((((Call(function, left, right),), 1),))


def _split_divisible(dim: DimLike, divisor: int) -> tuple[DimLike, DimLike]:
    """`(q, r)` with `dim = q*divisor + r`, where `r` keeps the terms that `divisor` does not divide."""
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in _terms(dim):
        whole, left = (
            divmod(coefficient, divisor)
            if not monomial
            else ((coefficient // divisor, 0) if coefficient % divisor == 0 else (0, coefficient))
        )
        if whole:
            quotient[monomial] = whole
        if left:
            rest[monomial] = left
    return _normal(quotient), _normal(rest)


def _exact_quotient(left: DimLike, right: DimLike) -> DimLike | None:
    """`left / right` where a single-term `right` divides every term of `left`, else None."""
    divisor = _terms(right)
    if len(divisor) != 1:
        return 1 if left == right else None
    atoms, by = divisor[0]
    sums: dict[Monomial, int] = {}
    for monomial, coefficient in _terms(left):
        kept = list(monomial)
        for atom in atoms:
            if atom not in kept:
                return None
            kept.remove(atom)
        if coefficient % by:
            return None
        sums[tuple(kept)] = coefficient // by
    return _normal(sums)


def _divide(function: str, left: DimLike, right: DimLike, divide: Callable[[int, int], int]) -> DimLike:
    if isinstance(right, int):
        if right == 0:
            raise ModelError(f"the dim {left} is divided by zero")
        if isinstance(left, int):
            return divide(left, right)
        if right > 0:
            quotient, rest = _split_divisible(left, right)
            return quotient + (divide(rest, right) if isinstance(rest, int) else _call(function, rest, right))
    elif left == 0:
        return 0
    exact = _exact_quotient(left, right)
    return exact if exact is not None else _call(function, left, right)


def floordiv(left: DimLike, right: DimLike) -> DimLike:
    """`left` divided by `right`, rounded down. Dividing by zero raises ModelError.

    A symbolic divisor counts as different from zero: `N // N` is 1. Where it turns out to be zero in a run,
    evaluation raises, unless the quotient was exact.
    """
    return _divide("floordiv", left, right, int.__floordiv__)


def ceildiv(left: DimLike, right: DimLike) -> DimLike:
    """`left` divided by `right`, rounded up. Divisors as in `floordiv`."""
    return _divide("ceildiv", left, right, lambda a, b: -(-a // b))


def mod(left: DimLike, right: DimLike) -> DimLike:
    """`left - floordiv(left, right) * right`: the remainder with the sign of `right`. Divisors as in `floordiv`."""
    if isinstance(right, int):
        if right == 0:
            raise ModelError(f"the dim {left} is divided by zero")
        if isinstance(left, int):
            return left % right
        if right > 0:
            rest = _split_divisible(left, right)[1]
            return rest % right if isinstance(rest, int) else _call("mod", rest, right)
    if left == 0 or _exact_quotient(left, right) is not None:
        return 0
    return _call("mod", left, right)


def _extreme(function: str, left: DimLike, right: DimLike, pick: Callable[[int, int], int]) -> DimLike:
    if isinstance(left, int) and isinstance(right, int):
        return pick(left, right)
    difference = left - right
    low, high = bounds(difference)
    if low is not None and low >= 0:
        return left if function == "max" else right
    if high is not None and high <= 0:
        return right if function == "max" else left
    for whole, part in ((left, right), (right, left)):
        atom = _lone_call(whole)
        if atom is not None and atom.function in ("min", "max") and part in (atom.left, atom.right):
            # max(max(a, b), b) = max(a, b), and max(min(a, b), b) = b; the same for min
            return whole if atom.function == function else part
    first, second = sorted((left, right), key=str)
    return _call(function, first, second)


def _lone_call(dim: DimLike) -> Call | None:
    """The atom of a dim that is nothing but a call."""
    if isinstance(dim, Dim) and len(dim.terms) == 1 and dim.terms[0][1] == 1 and len(dim.terms[0][0]) == 1:
        atom = dim.terms[0][0][0]
        return atom if isinstance(atom, Call) else None
    return None


def dim_min(left: DimLike, right: DimLike) -> DimLike:
    """The smaller of two dims."""
    return _extreme("min", left, right, min)


def dim_max(left: DimLike, right: DimLike) -> DimLike:
    """The larger of two dims."""
    return _extreme("max", left, right, max)


FUNCTIONS: Final[dict[str, Callable[[DimLike, DimLike], DimLike]]] = {
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "mod": mod,
    "min": dim_min,
    "max": dim_max,
}


def bounds(dim: DimLike) -> Interval:
    """Interval that holds every value of `dim`."""
    if isinstance(dim, int):
        return dim, dim
    total: Interval = (0, 0)
    for monomial, coefficient in dim.terms:
        term: Interval = (coefficient, coefficient)
        for atom in monomial:
            term = interval.multiply(term, _atom_bounds(atom))
        total = interval.add(total, term)
    return total


@lru_cache(maxsize=4096)
def _atom_bounds(atom: Atom) -> Interval:
    if isinstance(atom, Symbol):
        return atom.lower, atom.upper
    return interval.call(atom.function, bounds(atom.left), bounds(atom.right))


def equal(left: DimLike, right: DimLike) -> bool | None:
    """True or False where that is certain for every value of the symbols, else None."""
    if left is right or left == right:
        return True
    difference = left - right
    if isinstance(difference, int):
        return False
    low, high = bounds(difference)
    if (low is not None and low > 0) or (high is not None and high < 0):
        return False
    return None


def symbols_in(dim: DimLike) -> set[Symbol]:
    """The symbols that `dim` is made of."""
    found: set[Symbol] = set()
    for monomial, _ in _terms(dim):
        for atom in monomial:
            if isinstance(atom, Symbol):
                found.add(atom)
            else:
                found |= symbols_in(atom.left) | symbols_in(atom.right)
    return found


def substitute(dim: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """`dim` with the named symbols replaced; others stay."""
    if isinstance(dim, int):
        return dim
    total: DimLike = 0
    for monomial, coefficient in dim.terms:
        product: DimLike = coefficient
        for atom in monomial:
            if isinstance(atom, Symbol):
                factor = values.get(atom.name)
                product = product * (factor if factor is not None else symbol_dim(atom))
            else:
                left, right = substitute(atom.left, values), substitute(atom.right, values)
                product = product * FUNCTIONS[atom.function](left, right)
        total = total + product
    return total


def evaluate(dim: DimLike, values: Mapping[str, int]) -> int:
    """The number that `dim` is under `values`; raises ModelError naming the symbols without a value."""
    if isinstance(dim, int):
        return dim
    result = substitute(dim, values)
    if isinstance(result, Dim):
        missing = ", ".join(sorted(symbol.name for symbol in symbols_in(result)))
        raise ModelError(f"the dim {dim} needs a value for {missing}")
    return result
