"""Which keys a mask hides from all queries of a tile, whatever their scores: those need not be gone through.

What a model does to a score is read as far as it is said by places: comparisons of rows and keys (causal masks,
windows, lengths), written as a choice, as a number that is added, or as a triangle. Each gives a bound on the keys that
a row sees; what is not understood gives none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir.access import Access
from argosy.ir.dim import Dim, DimLike, Symbol, dim_min, lone_symbol, substitute, symbol_dim
from argosy.ir.formula import Constant as Number
from argosy.ir.module import Constant, Value
from argosy.ops.index import Range, Triangle
from argosy.ops.pointwise import Pointwise
from argosy.rewrite.attention import Attention
from argosy.rewrite.view_chain import view_access
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.lowering.accesses import axes_access, broadcast_access, present

__all__ = ["UNSEEN", "Hidden", "Said", "hidden_keys", "hides"]

UNSEEN: Final = -5e4
"""A greatest score of so little may be that of a row that sees nothing."""
_HIDDEN: Final = -1e8
_LEAST_SHORT: Final = -65504.0
"""The least float16, which models in it add to what is hidden."""


def hides(number: float) -> bool:
    """Whether a score of so little, or one that it is added to, has a power of 0 beside any that is seen.

    Scores of 1e7 are 1 apart in float32, those of 1e4 are 8 apart in float16: no softmax of such means anything.
    """
    return number <= _HIDDEN or number == _LEAST_SHORT


@dataclass(frozen=True, slots=True)
class Said:
    """A condition on places: that a term is positive, or `and`, `or` or `not` of others."""

    term: DimLike | None = None
    primitive: str = ""
    parts: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class Hidden:
    """The keys from each of `first` up to each of `limit` may be seen by some row of a tile, others are seen by none.

    Where rows that see nothing are not NaN, but the mean of all values,
    as what hides is a number, it is `finite`. `said` are conditions that places say.
    """

    first: tuple[DimLike, ...] = ()
    limit: tuple[DimLike, ...] = ()
    finite: bool = False
    said: tuple[tuple[Value, Said], ...] = ()


def hidden_keys(
    elements: Elements, attention: Attention, access: Access, row: tuple[DimLike, DimLike, DimLike], key: DimLike
) -> Hidden:
    """The bounds on keys for a tile. `access` reads the softmax's operand at a row and a key.

    `row` is the index of a row, of the first and of the last row of the tile.
    """
    rows, keys = attention.scores.result().shape[-2:]
    reader = _Reader(elements, attention, ((row[0], rows), (key, keys)))
    first: list[DimLike] = []
    limit: list[DimLike] = []
    finite = False
    for term, its in reader.hiding(_Term(present(attention.softmax, 0), access)):
        bound = _bound(elements, term, row, key)
        if bound is not None:
            (limit if bound[0] else first).append(bound[1])
            finite |= its
    return Hidden(tuple(first), tuple(limit), finite, tuple(reader.said.items()))


def _bound(
    elements: Elements, term: DimLike, row: tuple[DimLike, DimLike, DimLike], key: DimLike
) -> tuple[bool, DimLike] | None:
    """From where keys are hidden (True), or up to where (False), if those are where a term is positive."""
    own, place = lone_symbol(key), lone_symbol(row[0])
    if own is None:
        return None
    by_key, rest = _slope(term, own)
    by_row, rest = (0, rest) if place is None or rest is None else _slope(rest, place)
    if by_key not in (1, -1) or by_row is None or rest is None:
        return None
    if elements.text.roots_of(rest):
        return None
    # All rows of the tile hide a key where the one for which the term is least does.
    value = (row[1] if by_row > 0 else row[2]) * by_row + rest
    return (True, 1 - value) if by_key > 0 else (False, value)


def _slope(term: DimLike, symbol: Symbol) -> tuple[int | None, DimLike | None]:
    """The step of a term that grows evenly with a symbol, and what is left without it."""
    rest = substitute(term, {symbol.name: 0})
    step = substitute(term, {symbol.name: 1}) - rest
    if not isinstance(step, int):
        return None, None
    return (step, rest) if symbol_dim(symbol) * step + rest == term else (None, None)


@dataclass(frozen=True, slots=True)
class _Term:
    """A value at an access; or the result of a step of the formula that makes it."""

    value: Value
    access: Access
    step: int = -1

    @property
    def primitive(self) -> str:
        """The primitive of the step; else the name of the op."""
        op = self.value.instruction.op
        return op.formula.steps[self.step].primitive if isinstance(op, Pointwise) else op.name


class _Reader:
    """Reads what is done to scores, by places."""

    def __init__(self, elements: Elements, attention: Attention, sizes: Sequence[tuple[DimLike, DimLike]]) -> None:
        self._elements = elements
        self._sizes = sizes
        self.said: dict[Value, Said] = {}
        self._scores = {attention.scores}
        while changed := [
            step
            for step in attention.steps - self._scores
            if any(operand is not None and operand.instruction in self._scores for operand in step.operands)
        ]:
            self._scores |= set(changed)

    def hiding(self, term: _Term | Number) -> Iterator[tuple[DimLike, bool]]:
        """Terms that are positive only where a score is hidden, and whether by a number."""
        if isinstance(term, Number):
            return
        term = self._seen(term)
        if not isinstance(term.value.instruction.op, Pointwise) or not self._is_score(term):
            return
        args = self._args(term)
        if term.primitive == "select":
            condition, yes, no = args
            for choice, other, when in ((yes, no, True), (no, yes, False)):
                number = self._number(choice)
                if number is not None and hides(number) and self._is_score(other):
                    yield from ((found, number != -float("inf")) for found in self._where(condition, when=when))
                    yield from self.hiding(other)
        elif term.primitive == "add":
            for score, mask in (args, args[::-1]):
                if self._is_score(score) and not self._is_score(mask):
                    yield from self._low(mask)
                    yield from self.hiding(score)
        elif term.primitive in ("convert", "mul", "div"):
            scores = [arg for arg in args if isinstance(arg, _Term) and self._is_score(arg)]
            numbers = [self._number(arg) for arg in args if arg not in scores]
            if len(scores) == 1 and all(number is not None and number > 0 for number in numbers):
                yield from self.hiding(scores[0])

    def _low(self, term: _Term | Number) -> Iterator[tuple[DimLike, bool]]:
        """Terms that are positive only where a mask that is added hides."""
        if isinstance(term, Number):
            return
        term = self._seen(term)
        if term.primitive == "select":
            condition, yes, no = self._args(term)
            for choice, when in ((yes, True), (no, False)):
                number = self._number(choice)
                if number is not None and hides(number):
                    yield from ((found, number != -float("inf")) for found in self._where(condition, when=when))
        elif term.primitive == "triangle":
            number = self._number(_Term(present(term.value.instruction, 0), term.access))
            if number is not None and hides(number):
                yield from ((found, number != -float("inf")) for found in self._triangle(term, when=True))
        elif term.primitive == "convert":
            yield from self._low(self._args(term)[0])
        elif term.primitive == "mul":
            args = self._args(term)
            for mask, by in (args, args[::-1]):
                number = self._number(by)
                if number is not None and hides(number):  # 0 or 1 times it
                    yield from ((found, number != -float("inf")) for found in self._where(mask, when=True))
        elif term.primitive in ("add", "min"):
            for part in self._args(term):
                yield from self._low(part)

    def _say(self, term: _Term | Number) -> Said | None:
        """A condition as places say it; None where they do not."""
        if isinstance(term, Number):
            return None
        term = self._seen(term)
        if not isinstance(term.value.instruction.op, Pointwise):
            return None
        if term.primitive in ("lt", "le"):
            ahead = self._ahead(term)
            return None if ahead is None else Said(ahead)
        if term.primitive not in ("and", "or", "not"):
            return None
        parts = tuple(part for arg in self._args(term) if (part := self._say(arg)) is not None)
        return Said(None, term.primitive, parts) if len(parts) == len(self._args(term)) else None

    def _ahead(self, term: _Term) -> DimLike | None:
        """A term that is positive where a comparison holds."""
        left, right = (self._index(arg) for arg in self._args(term))
        if left is None or right is None:
            return None
        return right - left + (1 if term.primitive == "le" else 0)

    def _where(self, term: _Term | Number, *, when: bool) -> Iterator[DimLike]:
        """Terms that are positive only where a condition, or a number that is 0 or 1, is as asked."""
        if isinstance(term, Number):
            return
        term = self._seen(term)
        if term.step == -1 and (said := self._say(term)) is not None:
            self.said[term.value] = said
        name = term.primitive
        if name == "triangle":
            whole = self._number(_Term(present(term.value.instruction, 0), term.access))
            if whole == 1:
                yield from self._triangle(term, when=when)
            return
        if not isinstance(term.value.instruction.op, Pointwise):
            return
        args = self._args(term)
        if name in ("lt", "le"):
            ahead = self._ahead(term)
            if ahead is not None:
                yield ahead if when else 1 - ahead
        elif name == "not":
            yield from self._where(args[0], when=not when)
        elif name == ("or" if when else "and"):
            for part in args:
                yield from self._where(part, when=when)
        elif name == "convert":
            yield from self._where(args[0], when=when)
        elif name == "sub" and self._number(args[0]) == 1:
            yield from self._where(args[1], when=not when)
        elif name == "eq":
            number = self._number(args[1])
            if number in (0, 1):
                yield from self._where(args[0], when=when is bool(number))
        elif name == "select":
            numbers = [self._number(arg) for arg in args[1:]]
            if numbers in ([1, 0], [0, 1]):
                yield from self._where(args[0], when=when is bool(numbers[0]))

    def _triangle(self, term: _Term, *, when: bool) -> Iterator[DimLike]:
        """A term that is positive where a triangle has its elements, or has none."""
        instruction = term.value.instruction
        op = instruction.op
        if not isinstance(op, Triangle):
            return
        diagonal: DimLike | None = 0
        if len(instruction.operands) > 1 and instruction.operands[1] is not None:
            by = instruction.operands[1]
            diagonal = self._index(_Term(by, axes_access(term.access.extents, by.shape, [0] * by.rank)))
        if diagonal is None:
            return
        row, key = map(self._within, term.access.indices[-2:])
        ahead = key - row - diagonal
        kept = ahead + 1 if op.upper else 1 - ahead
        yield kept if when else 1 - kept

    def _index(self, term: _Term | Number) -> DimLike | None:
        """An integer as an expression of places; None where it is none."""
        if isinstance(term, Number):
            return int(term.value) if float(term.value).is_integer() else None
        term = self._seen(term)
        instruction = term.value.instruction
        known = term.value.known
        if known is not None and known.size == 1:
            entry = known.reshape(-1)[0]
            return entry if isinstance(entry, Dim) else int(entry)
        number = self._number(term)
        if number is not None:
            return int(number) if float(number).is_integer() else None
        if isinstance(instruction.op, Range):
            start, delta = (
                self._index(_Term(present(instruction, place), axes_access(term.access.extents, (), ())))
                for place in (0, 2)
            )
            if start is None or not isinstance(delta, int):
                return None
            place = term.access.indices[0]
            return self._within(place) * delta + start
        if isinstance(instruction.op, Pointwise) and term.primitive in ("add", "sub", "convert", "neg"):
            parts = [part for arg in self._args(term) if (part := self._index(arg)) is not None]
            if len(parts) != len(self._args(term)):
                return None
            signs = {"add": (1, 1), "sub": (1, -1), "neg": (-1,), "convert": (1,)}[term.primitive]
            total: DimLike = 0
            for part, sign in zip(parts, signs, strict=True):
                total = part * sign + total
            return total
        return self._read(term)

    def _within(self, place: DimLike) -> DimLike:
        """A place on an axis that only the run knows to repeat or not: rows and keys are never beyond their own."""
        for inside, size in self._sizes:
            if not isinstance(size, int) and place == dim_min(inside, size - 1):
                return inside
        return place

    def _read(self, term: _Term) -> DimLike | None:
        """An integer that is the same for all rows and keys, as it is read."""
        if not term.value.dtype.is_integer or self._elements.text.roots_of_all(term.access.indices):
            return None
        if isinstance(term.value.instruction.op, Pointwise):
            return None
        found = self._elements.of(term.value, term.access)
        return self._elements.local(f"{found}.to({self._elements.text.index_type})", lower=-(1 << 31))

    def _seen(self, term: _Term) -> _Term:
        """What a view shows."""
        while not isinstance(term.value.instruction.op, Pointwise):
            step = view_access(term.value.instruction)
            if step is None or step.conditions:
                break
            inner = present(term.value.instruction, 0)
            term = _Term(inner, self._elements.compose(term.access, step))
        return term

    @staticmethod
    def _args(term: _Term) -> list[_Term | Number]:
        """The operands of a step."""
        instruction = term.value.instruction
        op = instruction.op
        if not isinstance(op, Pointwise):
            return []
        found: list[_Term | Number] = []
        for arg in op.formula.steps[term.step].args:
            if isinstance(arg, Number):
                found.append(arg)
            elif arg < op.formula.arity:
                operand = present(instruction, arg)
                found.append(_Term(operand, broadcast_access(operand, term.value, term.access)))
            else:
                found.append(_Term(term.value, term.access, arg - op.formula.arity))
        return found

    def _is_score(self, term: _Term | Number) -> bool:
        """Whether a term depends on the scores."""
        if isinstance(term, Number):
            return False
        if not isinstance(term.value.instruction.op, Pointwise):
            return term.value.instruction in self._scores
        return any(self._is_score(arg) for arg in self._args(term))

    def _number(self, term: _Term | Number) -> float | None:
        """A number that is the same everywhere."""
        if isinstance(term, Number):
            return float(term.value)
        term = self._seen(term)
        op = term.value.instruction.op
        if isinstance(op, Constant) and (op.literal.size == 1 or op.literal.is_splat):
            return float(op.literal.item())
        if isinstance(op, Pointwise) and term.primitive in ("convert", "neg"):
            inner = self._number(self._args(term)[0])
            return None if inner is None else -inner if term.primitive == "neg" else inner
        return None
