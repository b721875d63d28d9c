"""The program as it is written into an artifact: records that mirror `argosy.ir`, with no meaning of their own.

`ProgramRecord` is what `program.msgpack` holds; the same records in JSON are what `argosy read --format json`
shows. A plan uses the same records for the ops that it evaluates. `program_check` says which are valid.

Attribute values that JSON has exactly are written as they are: null, booleans, integers, text. Everything else is
an object with a `kind`. Floats are text, so that NaN, infinities and -0.0 survive JSON, and round-trip exactly.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from argosy.artifact.record import Codec, Record

__all__ = [
    "INLINE_LIMIT",
    "PARAMETER",
    "PROGRAM",
    "BytesValue",
    "ConstantRecord",
    "DTypeValue",
    "DimValue",
    "FloatValue",
    "FormulaStep",
    "FormulaValue",
    "InlineLiteral",
    "InstructionRecord",
    "LiteralRef",
    "LiteralValue",
    "ModuleRecord",
    "ModuleValue",
    "NamedType",
    "NamedValue",
    "ProgramRecord",
    "Ref",
    "SplatLiteral",
    "StringsLiteral",
    "SymbolRecord",
    "TupleValue",
    "TypeValue",
    "Value",
    "float_text",
    "literal_refs",
    "parse_float",
    "values_in",
]

INLINE_LIMIT: Final = 4096
"""Bytes up to which a literal lies in the program itself: a weight would take a page of its own."""

PARAMETER: Final = -1
"""The instruction index of a reference to a module's parameter."""

Ref: TypeAlias = tuple[int, int]
"""A value: (instruction index, result index), or (PARAMETER, parameter index)."""


class FloatValue(Record, frozen=True, tag_field="kind", tag="float"):
    """A float as `float_text` writes it."""

    text: str


class BytesValue(Record, frozen=True, tag_field="kind", tag="bytes"):
    """Bytes (base64 in JSON)."""

    data: bytes


class DTypeValue(Record, frozen=True, tag_field="kind", tag="dtype"):
    """An element type by name."""

    name: str


class DimValue(Record, frozen=True, tag_field="kind", tag="dim"):
    """A symbolic dim in its text form; a dim that is known is a plain integer."""

    text: str


class TypeValue(Record, frozen=True, tag_field="kind", tag="type"):
    """A type in its text form."""

    text: str


class TupleValue(Record, frozen=True, tag_field="kind", tag="tuple"):
    """A sequence of values."""

    items: tuple[Value, ...] = ()


class ModuleValue(Record, frozen=True, tag_field="kind", tag="module"):
    """A module by its index; it is larger than that of the module which holds this value."""

    index: int


class LiteralRef(Record, frozen=True, tag_field="kind", tag="weight"):
    """A literal kept as the weight of that hash; `dims` of a packed sub-byte type count elements."""

    sha256: str
    dtype: str
    dims: tuple[int, ...] = ()


class InlineLiteral(Record, frozen=True, tag_field="kind", tag="literal"):
    """A literal of at most INLINE_LIMIT bytes, little-endian, sub-byte types packed as ONNX packs them."""

    dtype: str
    data: bytes
    dims: tuple[int, ...] = ()


class SplatLiteral(Record, frozen=True, tag_field="kind", tag="splat"):
    """A literal whose elements are all equal; `data` is one of them, in one byte for a sub-byte type."""

    dtype: str
    data: bytes
    dims: tuple[int, ...] = ()


class StringsLiteral(Record, frozen=True, tag_field="kind", tag="strings"):
    """A literal of text."""

    items: tuple[str, ...] = ()
    dims: tuple[int, ...] = ()


class ConstantRecord(Record, frozen=True):
    """A number inside a formula."""

    value: bool | int | FloatValue


class FormulaStep(Record, frozen=True):
    """A scalar primitive on references (inputs first, then earlier steps) and constants."""

    primitive: str
    args: tuple[int | ConstantRecord, ...]
    dtype: str = ""


class FormulaValue(Record, frozen=True, tag_field="kind", tag="formula"):
    """A scalar function of `arity` inputs; its value is the last step's."""

    arity: int
    steps: tuple[FormulaStep, ...]


LiteralValue: TypeAlias = LiteralRef | InlineLiteral | SplatLiteral | StringsLiteral
Value: TypeAlias = (
    bool
    | int
    | str
    | FloatValue
    | BytesValue
    | DTypeValue
    | DimValue
    | TypeValue
    | TupleValue
    | ModuleValue
    | LiteralRef
    | InlineLiteral
    | SplatLiteral
    | StringsLiteral
    | FormulaValue
    | None
)


class SymbolRecord(Record, frozen=True):
    """A symbol of dims; bounds are inclusive, `upper` None is unbounded."""

    name: str
    lower: int = 0
    upper: int | None = None


class NamedType(Record, frozen=True):
    """A parameter of a module: its name, and its type in text form."""

    name: str
    type: str


class NamedValue(Record, frozen=True):
    """A result of a module."""

    name: str
    value: Ref


class InstructionRecord(Record, frozen=True):
    """An op with operands (None is an absent one) and the types of its results in text form.

    `names` are the results' names in the source model (all, or none), `source` the node it came from.
    """

    op: str
    version: int
    operands: tuple[Ref | None, ...] = ()
    results: tuple[str, ...] = ()
    attributes: dict[str, Value] = msgspec.field(default_factory=dict)
    names: tuple[str, ...] = ()
    source: str = ""


class ModuleRecord(Record, frozen=True):
    """A closed function; instructions are in topological order."""

    name: str
    parameters: tuple[NamedType, ...] = ()
    instructions: tuple[InstructionRecord, ...] = ()
    results: tuple[NamedValue, ...] = ()


class ProgramRecord(Record, frozen=True):
    """A program: module 0 is the main one, the others are those it holds, outer before inner."""

    modules: tuple[ModuleRecord, ...]
    symbols: tuple[SymbolRecord, ...] = ()
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


PROGRAM: Final = Codec(ProgramRecord)

_QUIET_NAN: Final = 0x7FF8000000000000


def float_text(value: float) -> str:
    """The shortest text that gives back the same 64 bits: Python's repr; an odd NaN as `nan:` and its bits in hex."""
    if not math.isnan(value):
        return repr(value)
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return "nan" if bits == _QUIET_NAN else f"nan:{bits:016x}"


def parse_float(text: str) -> float:
    """The inverse of `float_text`; raises ValueError for any other text."""
    if text.startswith("nan"):
        bits = _QUIET_NAN if text == "nan" else int(text.removeprefix("nan:"), 16)
        value = float(struct.unpack("<d", bits.to_bytes(8, "little"))[0]) if bits < 1 << 64 else 0.0
    else:
        value = float(text)
    if float_text(value) != text:
        raise ValueError(text)
    return value


def values_in(value: Value) -> Iterator[Value]:
    """`value` and the values inside it."""
    yield value
    if isinstance(value, TupleValue):
        for item in value.items:
            yield from values_in(item)


def literal_refs(modules: tuple[ModuleRecord, ...]) -> Iterator[LiteralRef]:
    """Every reference to a weight in `modules`, in order, repeated ones too."""
    for module in modules:
        for instruction in module.instructions:
            for attribute in instruction.attributes.values():
                yield from (value for value in values_in(attribute) if isinstance(value, LiteralRef))
