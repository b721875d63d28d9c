"""What tells ops and modules apart: equal signatures, equal meaning, whatever the names and sources of the parts."""

from __future__ import annotations

import dataclasses
from functools import cache

from argosy.ir.module import Module, Value
from argosy.ir.op import Known, Op, op_class

__all__ = ["module_signature", "op_signature"]


def op_signature(op: Op) -> object:
    """The op, and its floats as text: 0.0 and -0.0 compare equal. Formulas and literals see to that themselves."""
    fields = _float_fields(op.name)
    return (op, *[repr(getattr(op, name)) for name in fields]) if fields else op


@cache
def _float_fields(name: str) -> tuple[str, ...]:
    """Names of the attributes of an op that are floats or tuples of them."""
    return tuple(entry.name for entry in dataclasses.fields(op_class(name)) if "float" in str(entry.type))  # type: ignore[arg-type]


def module_signature(module: Module) -> object:
    """Equal for modules that do the same with their parameters in the same steps, types and known values included.

    Modules inside it are told apart by identity.
    """
    numbers: dict[Value, int] = {}
    parts: list[object] = [module.name]
    for parameter in module.parameters:
        parts.append((parameter.types, _known_signature(parameter.known[0])))
        numbers[parameter.result()] = len(numbers)
    for instruction in module.instructions:
        operands = tuple([None if operand is None else numbers[operand] for operand in instruction.operands])
        parts.append((op_signature(instruction.op), operands, instruction.types))
        for result in instruction.results:
            numbers[result] = len(numbers)
    parts.append(tuple([numbers[value] for value in module.results]))
    return tuple(parts)


def _known_signature(known: Known | None) -> object:
    return None if known is None else (known.shape, tuple([(type(value), value) for value in known.flat]))
