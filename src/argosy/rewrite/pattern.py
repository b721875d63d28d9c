"""Patterns: what a part of a program looks like, written in the shape of the program.

    pointwise("add", any_("x"), constant("c"))
    op(Transpose, op(Transpose, any_("x")).bind("inner")).bind("outer")

A pattern is matched against a value, from the user to what it reads. Each named part captures the value
that it met; a name that occurs twice must meet the same value both times. Commutative primitives match
their operands in either order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self, TypeAlias, TypeVar

from argosy.errors import InternalError
from argosy.ir.module import Instruction, Value
from argosy.ir.op import Op
from argosy.ops.pointwise import Pointwise

__all__ = [
    "Alternative",
    "AnyValue",
    "Captures",
    "ConstantValue",
    "KnownValue",
    "OpPattern",
    "Pattern",
    "any_",
    "constant",
    "head",
    "known",
    "one_of",
    "op",
    "op_of",
    "pointwise",
]

Captures: TypeAlias = Mapping[str, Value]
Uses: TypeAlias = Callable[[Value], int]
K = TypeVar("K", bound=Op)

COMMUTATIVE: Final = frozenset(
    ("add", "mul", "min", "max", "and", "or", "xor", "bitand", "bitor", "bitxor", "eq"),
)
"""Primitives whose two arguments may be swapped (which NaN and which zero comes out is left open by their rules)."""


def head(instruction: Instruction) -> str:
    """What an instruction is, in a word: its op, and for a formula of one primitive that primitive too."""
    made_by = instruction.op
    if isinstance(made_by, Pointwise):
        primitive = made_by.formula.primitive
        return made_by.name if primitive is None else f"{made_by.name}:{primitive}"
    return made_by.name


def op_of(value: Value, kind: type[K]) -> K:
    """The op that makes `value`, where a pattern has made sure of its kind."""
    made_by = value.instruction.op
    if not isinstance(made_by, kind):
        raise InternalError(f"expected {kind.name}, found {made_by.name}", where=value.instruction.source)
    return made_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Base of all patterns: a name to capture under, and whether the value must have one use only."""

    name: str = ""
    once: bool = False

    def bind(self, name: str) -> Self:
        """The same pattern, capturing the value that it meets."""
        return dataclasses.replace(self, name=name)

    def used_once(self) -> Self:
        """The same pattern, for values that nothing else reads."""
        return dataclasses.replace(self, once=True)

    def match(self, value: Value | None, uses: Uses, found: Captures) -> Iterator[Captures]:
        """The ways in which `value` fits, each as `found` with what this pattern captures."""
        if value is None or (self.once and uses(value) != 1):
            return
        if self.name:
            bound = found.get(self.name)
            if bound is None:
                found = {**found, self.name: value}
            elif bound != value:
                return
        yield from self.inside(value, uses, found)

    def inside(self, value: Value, uses: Uses, found: Captures) -> Iterator[Captures]:
        """`match` without the name and the count of uses: what a kind of pattern asks of the value."""
        raise NotImplementedError

    @property
    def heads(self) -> frozenset[str] | None:
        """The heads (see `head`) of the instructions whose values can fit; None for any."""
        return None

    @property
    def parts(self) -> tuple[Pattern, ...]:
        """The patterns inside this one."""
        return ()

    def captured(self) -> tuple[str, ...]:
        """The names that this pattern and those inside it bind."""
        inside = tuple(name for part in self.parts for name in part.captured())
        return (self.name, *inside) if self.name else inside

    def counts_uses(self) -> bool:
        """Whether this pattern, or one inside it, asks how often a value is used."""
        return self.once or any(part.counts_uses() for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyValue(Pattern):
    """Any value at all."""

    def inside(self, value: Value, uses: Uses, found: Captures) -> Iterator[Captures]:
        yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValue(Pattern):
    """A literal; `uniform` asks that all its elements are one number by construction (a splat or one element)."""

    uniform: bool = False

    def inside(self, value: Value, uses: Uses, found: Captures) -> Iterator[Captures]:
        literal = value.constant
        if literal is not None and (not self.uniform or literal.is_splat or literal.size == 1):
            yield found

    @property
    def heads(self) -> frozenset[str]:
        return frozenset(("constant",))


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownValue(Pattern):
    """A value known while compiling, as numbers and dims."""

    def inside(self, value: Value, uses: Uses, found: Captures) -> Iterator[Captures]:
        if value.known is not None:
            yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class OpPattern(Pattern):
    """Result `index` of an op whose operands fit `operands` (None: whatever they are; the rest must be absent)."""

    op_heads: frozenset[str]
    operands: tuple[Pattern, ...] | None = None
    commutative: bool = False
    index: int = 0

    def inside(self, value: Value, uses: Uses, found: Captures) -> Iterator[Captures]:
        instruction = value.instruction
        if value.index != self.index:
            return
        if head(instruction) not in self.op_heads and instruction.op.name not in self.op_heads:
            return
        if self.operands is None:
            yield found
            return
        given = instruction.operands
        if len(given) < len(self.operands) or any(extra is not None for extra in given[len(self.operands) :]):
            return
        yield from _match_all(self.operands, given, uses, found)
        if self.commutative and given[0] != given[1]:
            yield from _match_all(self.operands, (given[1], given[0]), uses, found)

    @property
    def heads(self) -> frozenset[str]:
        return self.op_heads

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return self.operands or ()


def _match_all(
    patterns: tuple[Pattern, ...], values: tuple[Value | None, ...], uses: Uses, found: Captures
) -> Iterator[Captures]:
    if not patterns:
        yield found
        return
    for captures in patterns[0].match(values[0], uses, found):
        yield from _match_all(patterns[1:], values[1:], uses, captures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(Pattern):
    """Whatever fits one of `choices`, tried in order."""

    choices: tuple[Pattern, ...]

    def inside(self, value: Value, uses: Uses, found: Captures) -> Iterator[Captures]:
        for choice in self.choices:
            yield from choice.match(value, uses, found)

    @property
    def heads(self) -> frozenset[str] | None:
        together: frozenset[str] = frozenset()
        for choice in self.choices:
            heads = choice.heads
            if heads is None:
                return None
            together |= heads
        return together

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return self.choices


def any_(name: str = "") -> AnyValue:
    """Any value."""
    return AnyValue(name=name)


def constant(name: str = "", *, uniform: bool = False) -> ConstantValue:
    """A literal; with `uniform`, one whose elements are all one number."""
    return ConstantValue(name=name, uniform=uniform)


def known(name: str = "") -> KnownValue:
    """A value known while compiling."""
    return KnownValue(name=name)


def op(kind: type[Op] | str, *operands: Pattern, index: int = 0) -> OpPattern:
    """Result `index` of an op; with no operand patterns, whatever the operands are."""
    word = kind if isinstance(kind, str) else kind.name
    return OpPattern(op_heads=frozenset((word,)), operands=operands or None, index=index)


def pointwise(primitive: str, *operands: Pattern) -> OpPattern:
    """A formula of one primitive, or of one of several of the same arity: `"min|max"`. Any formula: `op(Pointwise)`."""
    words = primitive.split("|")
    return OpPattern(
        op_heads=frozenset(f"{Pointwise.name}:{word}" for word in words),
        operands=operands or None,
        commutative=len(operands) == 2 and all(word in COMMUTATIVE for word in words),
    )


def one_of(*choices: Pattern) -> Alternative:
    """Whatever fits one of the patterns."""
    return Alternative(choices=choices)
