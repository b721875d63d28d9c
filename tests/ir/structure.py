"""Structural equality of programs, told field by field: what a round trip must keep."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from argosy.ir import Instruction, Literal, Module, Program, Value

__all__ = ["literals_in", "same_module", "same_program", "same_value"]


def same_program(left: Program, right: Program) -> bool:
    return dict(left.metadata) == dict(right.metadata) and same_module(left.main, right.main)


def same_module(left: Module, right: Module) -> bool:
    """Same names, instructions and wiring."""
    if (left.name, left.result_names) != (right.name, right.result_names):
        return False
    number: dict[Instruction, int] = {}
    for module in (left, right):
        number.update((entry, at) for at, entry in enumerate((*module.parameters, *module.instructions)))

    def wires(values: tuple[Value | None, ...]) -> list[tuple[int, int] | None]:
        return [None if value is None else (number[value.instruction], value.index) for value in values]

    if len(left.parameters) != len(right.parameters) or len(left.instructions) != len(right.instructions):
        return False
    pairs = zip((*left.parameters, *left.instructions), (*right.parameters, *right.instructions), strict=True)
    return wires(left.results) == wires(right.results) and all(
        wires(a.operands) == wires(b.operands)
        and same_value(a.op, b.op)
        and a.types == b.types
        and [value.name for value in a.results] == [value.name for value in b.results]
        and a.source == b.source
        and all(same_known(x, y) for x, y in zip(a.known, b.known, strict=True))
        for a, b in pairs
    )


def same_known(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return left.shape == right.shape and all(same_value(a, b) for a, b in zip(left.flat, right.flat, strict=True))


def same_value(left: Any, right: Any) -> bool:
    """Equality that tells 1 from True and 1.0, and 0.0 from -0.0, and takes NaN for itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    if isinstance(left, tuple):
        return len(left) == len(right) and all(same_value(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Module):
        return same_module(left, right)
    if isinstance(left, Literal):
        return (left.dtype, left.shape, left.is_splat) == (right.dtype, right.shape, right.is_splat) and (
            left.stored.tolist() == right.stored.tolist()
            if left.dtype.kind == "string"
            else left.stored.tobytes() == right.stored.tobytes()
        )
    if isinstance(left, msgspec.Struct):
        return all(same_value(getattr(left, name), getattr(right, name)) for name in left.__struct_fields__)
    if dataclasses.is_dataclass(left):
        return all(
            same_value(getattr(left, entry.name), getattr(right, entry.name)) for entry in dataclasses.fields(left)
        )
    return bool(left == right)


def literals_in(value: Any) -> Iterator[Literal]:
    """Every literal in a program, in attributes and bodies too."""
    if isinstance(value, Program):
        yield from literals_in(value.main)
    elif isinstance(value, Literal):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from literals_in(element)
    elif isinstance(value, Module):
        for instruction in (*value.parameters, *value.instructions):
            yield from literals_in(tuple(instruction.op.attributes().values()))
