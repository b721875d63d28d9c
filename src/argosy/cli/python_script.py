"""A program as a Python script that builds it with `ir.Builder`: to be changed, cut down and run.

The script needs the base package only. Its constants are written out where they are short, else as base64 text.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from argosy.errors import InternalError, UsageError
from argosy.ir.dim import Dim, lone_symbol
from argosy.ir.dtype import DType
from argosy.ir.formula import Constant as Number
from argosy.ir.formula import Formula
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.program import Program
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type

__all__ = ["INLINE_BYTES", "python_script"]

INLINE_BYTES: Final = 64 << 20
"""Most bytes of constants that a script takes along."""
_SHORT: Final = 8

_HEAD: Final = '''\
"""Builds a program of Argosy; written by `argosy read --format python`."""

import base64

import numpy as np

from argosy.ir.builder import Builder
from argosy.ir.dim import Symbol, lone_symbol
from argosy.ir.dtype import dtype
from argosy.ir.formula import Constant as Number, Formula, Step
from argosy.ir.literal import Literal
from argosy.ir.module import Constant
from argosy.ir.op import op_class
from argosy.ir.parser import parse_dim, parse_type
from argosy.ir.program import Program

symbols = {}


def dim(text):
    return parse_dim(text, symbols)


def type_of(text):
    return parse_type(text, symbols)


def stored(element, shape, text, splat=False):
    """A constant from its stored bytes."""
    raw, kind = np.frombuffer(base64.b64decode(text), np.uint8), dtype(element)
    return Literal(kind, shape, raw if kind.bits < 8 else raw.view(kind.numpy), is_splat=splat)


def define(name, value, axis):
    """Give the dim that `value` brings in the name that it has in this script."""
    symbols[name] = lone_symbol(value.shape[axis])

'''


def python_script(program: Program) -> str:
    """The script; running it leaves the program in its variable `program`. Raises UsageError for huge constants."""
    held = sum(literal.nbytes for literal in program.literals)
    if held > INLINE_BYTES:
        raise UsageError(
            f"the constants are {held >> 20} MiB, over the {INLINE_BYTES >> 20} MiB that a script takes along",
            hint="--format text names constants by their hash",
        )
    writer = _Script()
    lines = [
        f"symbols[{name!r}] = Symbol({name!r}, {symbol.lower}, {symbol.upper})"
        for name, symbol in program.symbols.items()
    ]
    lines += ["", ""] if lines else [""]
    main = writer.module(program.main)
    return "\n".join(
        [
            _HEAD + "\n".join(lines),
            *writer.functions,
            f"program = Program({main}(None), {dict(program.metadata)!r})",
            'if __name__ == "__main__":',
            "    from argosy.ir.printer import print_program",
            "",
            "    print(print_program(program), end='')",
        ]
    )


class _Script:
    """Collects a function for each module, inner ones first."""

    def __init__(self) -> None:
        self.functions: list[str] = []

    def module(self, module: Module) -> str:
        """Write the function that builds `module`; its name."""
        variables: dict[tuple[Instruction, int], str] = {}
        bound = {symbol for p in module.parameters for symbol in _lone(p.types[0])}
        lines = [f"    b = Builder({module.name!r}, namer=namer)"]
        for parameter in module.parameters:
            variables[parameter, 0] = f"v{len(variables)}"
            kind = self.value(parameter.types[0])
            lines.append(f"    {variables[parameter, 0]} = b.parameter({parameter.names[0]!r}, {kind})")
        for instruction in module.instructions:
            lines += self._instruction(instruction, variables, bound)
        results = ", ".join(
            f"({name!r}, {variables[value.instruction, value.index]})"
            for name, value in zip(module.result_names, module.results, strict=True)
        )
        lines.append(f"    return b.module([{results}])")
        name = f"build_{len(self.functions)}"
        self.functions.append("\n".join([f"def {name}(namer):", *lines, "", ""]))
        return name

    def _instruction(
        self, instruction: Instruction, variables: dict[tuple[Instruction, int], str], bound: set[str]
    ) -> Iterator[str]:
        operands = [_operand(operand, variables) for operand in instruction.operands]
        results = []
        for index in range(len(instruction.types)):
            variables[instruction, index] = f"v{len(variables)}"
            results.append(variables[instruction, index])
        names = f", names={instruction.names!r}" if any(instruction.names) else ""
        source = f", source={instruction.source!r}" if instruction.source else ""
        call = f"b.add_all({', '.join([self._op(instruction), *operands])}{names}{source})"
        yield f"    {''.join(f'{result}, ' for result in results)}= {call}" if results else f"    {call}"
        for index, kind in enumerate(instruction.types):
            for symbol, axis in _lone(kind).items():
                if symbol not in bound:
                    bound.add(symbol)
                    yield f"    define({symbol!r}, {results[index]}, {axis})"

    def _op(self, instruction: Instruction) -> str:
        op = instruction.op
        if isinstance(op, Constant):
            return f"Constant({_literal(op.literal)})"
        fields = ", ".join(f"{name}={self.value(value)}" for name, value in op.attributes().items())
        return f"op_class({op.name!r})({fields})"

    def value(self, value: Any) -> str:
        """An attribute's value as Python."""
        match value:
            case float():
                return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
            case None | bool() | int() | str():
                return repr(value)
            case tuple():
                return f"({', '.join(self.value(item) for item in value)}{',' if len(value) == 1 else ''})"
            case Dim():
                return f"dim({str(value)!r})"
            case DType():
                return f"dtype({value.name!r})"
            case Formula():
                return _formula(value)
            case Literal():
                return _literal(value)
            case Module():
                return f"{self.module(value)}(b.namer)"
            case TensorType() | SequenceType() | OptionalType() | MapType():
                return f"type_of({str(value)!r})"
        raise InternalError(f"an attribute holds {value!r}, a {type(value).__name__}, which a script can't hold")


def _operand(value: Value | None, variables: dict[tuple[Instruction, int], str]) -> str:
    return "None" if value is None else variables[value.instruction, value.index]


def _lone(kind: Type) -> dict[str, int]:
    """Symbols that stand alone among the dims of a type, with the axis of each."""
    if not isinstance(kind, TensorType):
        return {}
    found = ((lone_symbol(dim), axis) for axis, dim in enumerate(kind.dims or ()))
    return {symbol.name: axis for symbol, axis in found if symbol is not None}


def _formula(formula: Formula) -> str:
    steps = []
    for step in formula.steps:
        args = [_number(ref) if isinstance(ref, Number) else str(ref) for ref in step.args]
        element = "" if step.dtype is None else f", dtype({step.dtype.name!r})"
        steps.append(f"Step({step.primitive!r}, ({', '.join(args)}{',' if len(args) == 1 else ''}){element})")
    return f"Formula({formula.arity}, ({', '.join(steps)}{',' if len(steps) == 1 else ''}))"


def _number(constant: Number) -> str:
    value = constant.value
    plain = not isinstance(value, float) or math.isfinite(value)
    return f"Number({value!r})" if plain else f"Number(float({str(value)!r}))"


def _literal(literal: Literal) -> str:
    if literal.dtype.kind == "string":
        return f"Literal.of(np.array({literal.array().reshape(-1).tolist()!r}, object).reshape({literal.shape!r}))"
    plain = literal.dtype.kind in ("int", "uint", "bool", "float") and literal.dtype.numpy.kind in "iubf"
    if plain and literal.size <= _SHORT and not literal.is_splat and np.isfinite(literal.array()).all():
        values = literal.array()
        shaped = f"np.array({values.tolist()!r})" + (f".reshape({literal.shape!r})" if not values.size else "")
        return f"Literal.of({shaped}, dtype({literal.dtype.name!r}))"
    text = base64.b64encode(np.ascontiguousarray(literal.stored).view(np.uint8).tobytes()).decode()
    splat = ", splat=True" if literal.is_splat else ""
    return f"stored({literal.dtype.name!r}, {literal.shape!r}, {text!r}{splat})"
