"""Which program records are valid: what a decoder may rely on before it builds IR from them.

Types are checked by decoding; here are the rules between fields: indices in range, operands before their
use, no cycle between modules, bounded depths and counts, literals that have the bytes their dims say. The text of
types and dims is only bounded here; `argosy.ir` parses it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from argosy.artifact.program import (
    INLINE_LIMIT,
    PARAMETER,
    PROGRAM,
    BytesValue,
    DimValue,
    DTypeValue,
    FloatValue,
    FormulaValue,
    InlineLiteral,
    InstructionRecord,
    LiteralRef,
    ModuleRecord,
    ModuleValue,
    NamedType,
    NamedValue,
    ProgramRecord,
    Ref,
    SplatLiteral,
    StringsLiteral,
    SymbolRecord,
    TupleValue,
    TypeValue,
    Value,
    parse_float,
    values_in,
)
from argosy.artifact.record import check_dims, check_dtype, check_hash, check_mapping, check_text, refuse
from argosy.ir.dtype import DTYPES

__all__ = ["attributes_modules", "check_attributes", "check_modules", "check_program", "check_symbols", "read_program"]

MAX_NESTING: Final = 16
"""Depth of tuples within tuples in an attribute."""
MAX_MODULE_DEPTH: Final = 64
"""Depth of modules within modules."""
MAX_ELEMENTS: Final = 1 << 58
"""Elements of a literal, empty dims not counted: sizes in bytes stay below 63 bits, as numpy needs them."""


def read_program(raw: bytes, *, where: str, exact: bool = True) -> ProgramRecord:
    """The valid program in MessagePack `raw`; raises ArtifactError naming the spot where it is not valid."""
    program = PROGRAM.from_msgpack(raw, where=where, exact=exact)
    check_program(program, where)
    return program


def check_program(program: ProgramRecord, where: str) -> None:
    """Raise ArtifactError, naming the spot, unless `program` is valid."""
    check_symbols(program.symbols, where)
    check_mapping(program.metadata, f"{where}: metadata")
    if not program.modules:
        raise refuse(where, "the program has no modules")
    held = check_modules(program.modules, where)
    for index in range(1, len(program.modules)):
        if index not in held:
            raise refuse(_module_place(where, program.modules, index), "no instruction holds this module")
    main = program.modules[0]
    names: tuple[tuple[str, Sequence[NamedType | NamedValue]], ...] = (
        ("input", main.parameters),
        ("output", main.results),
    )
    for what, rows in names:
        seen: set[str] = set()
        for row in rows:
            check_text(row.name, where, f"the name of an {what}")
            if row.name in seen:
                raise refuse(where, f"two {what}s are called {row.name[:80]!r}")
            seen.add(row.name)


def check_symbols(symbols: Sequence[SymbolRecord], where: str) -> None:
    """Refuse symbols with one name or with impossible bounds."""
    seen: set[str] = set()
    for symbol in symbols:
        check_text(symbol.name, where, "the name of a symbol")
        spot = f"{where}: symbol {symbol.name[:80]!r}"
        if symbol.name in seen:
            raise refuse(spot, "it is listed twice")
        seen.add(symbol.name)
        upper = symbol.lower if symbol.upper is None else symbol.upper
        if not -(1 << 63) <= symbol.lower <= upper < 1 << 63:
            raise refuse(spot, f"its bounds are {symbol.lower} and {symbol.upper}")


def check_modules(modules: Sequence[ModuleRecord], where: str) -> set[int]:
    """Check every module; returns the indices of the modules that some instruction of another holds."""
    # A module holds only modules after it, so there is no cycle, and depths follow from the last to the first. It is
    # held once: sharing would let a few modules decode to a tree of exponential size.
    depths = [0] * len(modules)
    held: set[int] = set()
    for index in reversed(range(len(modules))):
        inner = _check_module(modules, index, where)
        shared = held.intersection(inner)
        if shared or len(set(inner)) < len(inner):
            raise refuse(_module_place(where, modules, index), "it holds a module that is held already")
        depths[index] = 1 + max((depths[other] for other in inner), default=0)
        if depths[index] > MAX_MODULE_DEPTH:
            raise refuse(_module_place(where, modules, index), f"modules nest deeper than {MAX_MODULE_DEPTH}")
        held.update(inner)
    return held


def _module_place(where: str, modules: Sequence[ModuleRecord], index: int) -> str:
    return f"{where}: module {index} {modules[index].name[:80]!r}"


def _check_module(modules: Sequence[ModuleRecord], index: int, where: str) -> list[int]:
    """Check module `index`; returns the indices of the modules that it holds, repeated ones too."""
    module = modules[index]
    place = _module_place(where, modules, index)
    check_text(module.name, place, "its name", empty=True)
    for position, parameter in enumerate(module.parameters):
        check_text(parameter.name, f"{place}, parameter {position}", "its name", empty=True)
        check_text(parameter.type, f"{place}, parameter {position}", "its type")
    inner: list[int] = []
    for position, instruction in enumerate(module.instructions):
        spot = f"{place}, instruction {position} ({instruction.op[:80]})"
        _check_instruction(instruction, spot)
        for number, operand in enumerate(instruction.operands):
            if operand is not None:
                _check_ref(module, operand, position, f"{spot}, operand {number}")
        for other in attributes_modules(instruction.attributes):
            if not index < other < len(modules):
                raise refuse(spot, f"it holds module {other}, which is not one of those after module {index}")
            inner.append(other)
    for position, result in enumerate(module.results):
        check_text(result.name, f"{place}, result {position}", "its name", empty=True)
        _check_ref(module, result.value, len(module.instructions), f"{place}, result {position}")
    return inner


def _check_instruction(instruction: InstructionRecord, spot: str) -> None:
    check_text(instruction.op, spot, "the name of its op")
    if not 1 <= instruction.version < 1 << 31:
        raise refuse(spot, f"the version of its op is {instruction.version}")
    for text in instruction.results:
        check_text(text, spot, "the type of a result")
    if instruction.names and len(instruction.names) != len(instruction.results):
        raise refuse(spot, f"{len(instruction.names)} names for {len(instruction.results)} results")
    for text in instruction.names:
        check_text(text, spot, "the name of a result", empty=True)
    check_text(instruction.source, spot, "its source", empty=True)
    check_attributes(instruction.attributes, spot)


def _check_ref(module: ModuleRecord, ref: Ref, before: int, spot: str) -> None:
    """Refuse a reference to anything but a parameter or a result of an instruction before `before`."""
    instruction, result = ref
    if instruction == PARAMETER:
        count = len(module.parameters)
        if not 0 <= result < count:
            raise refuse(spot, f"it is parameter {result} of {count}")
        return
    if not 0 <= instruction < before:
        raise refuse(spot, f"it is a result of instruction {instruction}, which does not precede it")
    count = len(module.instructions[instruction].results)
    if not 0 <= result < count:
        raise refuse(spot, f"it is result {result} of instruction {instruction}, which has {count}")


def attributes_modules(attributes: Mapping[str, Value]) -> list[int]:
    """Indices of the modules in checked attributes, in order, repeated ones too."""
    return [
        value.index
        for attribute in attributes.values()
        for value in values_in(attribute)
        if isinstance(value, ModuleValue)
    ]


def check_attributes(attributes: Mapping[str, Value], spot: str) -> None:
    """Check names and values; indices of modules are left to the caller, who knows how many there are."""
    for name, value in attributes.items():
        check_text(name, spot, "the name of an attribute")
        _check_value(value, f"{spot}, attribute {name[:80]!r}", 0)


def _check_value(value: Value, spot: str, depth: int) -> None:
    if value is None or isinstance(value, (bool, ModuleValue)):
        return
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise refuse(spot, "an integer is out of range")
    elif isinstance(value, str):
        check_text(value, spot, "a text", empty=True)
    elif isinstance(value, TupleValue):
        if depth >= MAX_NESTING:
            raise refuse(spot, f"tuples nest deeper than {MAX_NESTING}")
        for item in value.items:
            _check_value(item, spot, depth + 1)
    elif isinstance(value, FloatValue):
        _check_float(value, spot)
    elif isinstance(value, (DimValue, TypeValue)):
        check_text(value.text, spot, "a dim or type")
    elif isinstance(value, DTypeValue):
        check_dtype(value.name, spot)
    elif isinstance(value, FormulaValue):
        _check_formula(value, spot)
    elif not isinstance(value, BytesValue):
        _check_literal(value, spot)


def _check_float(value: FloatValue, spot: str) -> None:
    try:
        parse_float(value.text)
    except (ValueError, OverflowError) as error:
        raise refuse(spot, f"{value.text[:80]!r} is not a float in its shortest form") from error


def _check_formula(formula: FormulaValue, spot: str) -> None:
    if not 0 <= formula.arity < 1 << 16 or not formula.steps:
        raise refuse(spot, f"a formula of {formula.arity} inputs and {len(formula.steps)} steps")
    for position, step in enumerate(formula.steps):
        check_text(step.primitive, spot, "the name of a primitive")
        if step.dtype:
            check_dtype(step.dtype, spot)
        for arg in step.args:
            if isinstance(arg, int):
                if not 0 <= arg < formula.arity + position:
                    raise refuse(spot, f"step {position} of the formula reads value {arg}, which does not precede it")
            elif isinstance(arg.value, FloatValue):
                _check_float(arg.value, spot)
            elif not -(1 << 63) <= arg.value < 1 << 64:
                raise refuse(spot, "an integer is out of range")


def _check_literal(literal: LiteralRef | InlineLiteral | SplatLiteral | StringsLiteral, spot: str) -> None:
    check_dims(literal.dims, spot)
    count = math.prod(literal.dims)
    if math.prod(dim for dim in literal.dims if dim) > MAX_ELEMENTS:
        raise refuse(spot, f"a literal of the dims {list(literal.dims)}")
    if isinstance(literal, StringsLiteral):
        if len(literal.items) != count:
            raise refuse(spot, f"{len(literal.items)} texts for {count} elements")
        return
    check_dtype(literal.dtype, spot)
    if isinstance(literal, LiteralRef):
        check_hash(literal.sha256, spot)
        return
    dtype = DTYPES[literal.dtype]
    if dtype.kind == "string" or len(literal.data) > INLINE_LIMIT:
        raise refuse(spot, f"a literal of {literal.dtype} with {len(literal.data)} bytes is not written inline")
    if isinstance(literal, SplatLiteral):
        count = 1
    if len(literal.data) != dtype.byte_size(count):
        raise refuse(spot, f"{len(literal.data)} bytes for {count} elements of {literal.dtype}")
