"""Ops of no meaning, whose attributes and results may be anything: what the text form must carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.ir import Env, Module, Op, TensorType, Type, Value, dtype, fresh

__all__ = ["TEST_OPS", "Anything", "Bodies", "Counted", "Steered"]


@dataclass(frozen=True, slots=True)
class Anything(Op):
    """Any attributes, any operands, results of the types that it says."""

    name = "test_anything"
    version = 3
    value: Any
    results: tuple[Type, ...] = ()
    other: Any = 0

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return self.results


@dataclass(frozen=True, slots=True)
class Counted(Op):
    """Results whose dims depend on data."""

    name = "test_counted"
    upper: int = 7

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        rows = fresh("rows", lower=1, upper=self.upper)
        return TensorType(dtype("int64"), (rows, 2)), TensorType(dtype("bool"), (rows, fresh("columns")))


@dataclass(frozen=True, slots=True)
class Bodies(Op):
    """Holds modules, one alone and others in a tuple; gives what the first gives."""

    name = "test_bodies"
    body: Module
    others: tuple[Module, ...] = ()

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return tuple(value.type for value in self.body.results)

    def modules(self) -> tuple[Module, ...]:
        return (self.body, *self.others)

    def evaluate_in(self, env: Env, *values: Any) -> tuple[Any, ...]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Steered(Op):
    """A result as long as the first element of its operand, a constant, says."""

    name = "test_steered"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        literal = operands[0].constant if operands[0] else None
        assert literal is not None
        return (TensorType(dtype("float32"), (int(literal.array()[0]),)),)


TEST_OPS: tuple[type[Op], ...] = (Anything, Counted, Bodies)
