"""From records to `argosy.ir`. Types are taken as written; what an op knows of its operands is not worked out again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from argosy.artifact.program import (
    PARAMETER,
    BytesValue,
    ConstantRecord,
    DimValue,
    DTypeValue,
    FloatValue,
    FormulaValue,
    InlineLiteral,
    InstructionRecord,
    LiteralRef,
    LiteralValue,
    ModuleRecord,
    ModuleValue,
    ProgramRecord,
    Ref,
    SplatLiteral,
    StringsLiteral,
    SymbolRecord,
    TupleValue,
    TypeValue,
    Value,
    parse_float,
)
from argosy.errors import ArgosyError, ArtifactError
from argosy.ir import module as ir
from argosy.ir.dim import DimLike, Symbol
from argosy.ir.dtype import dtype
from argosy.ir.formula import Constant as FormulaConstant
from argosy.ir.formula import Formula, Step
from argosy.ir.literal import Literal
from argosy.ir.op import OPS, Known, Op
from argosy.ir.parser import parse_dim, parse_type
from argosy.ir.program import Program
from argosy.ir.scalar import PRIMITIVES
from argosy.ir.types import Type

__all__ = ["Decoder", "WeightSource", "decode_program", "decode_symbols"]

WeightSource: TypeAlias = Callable[[LiteralRef], Literal]
"""Gives the literal that a reference names."""


def decode_symbols(records: Sequence[SymbolRecord]) -> dict[str, Symbol]:
    """Symbols by name."""
    return {record.name: Symbol(record.name, record.lower, record.upper) for record in records}


class Decoder:
    """Decodes the modules and ops of one program or plan. `where` names the file in errors.

    `knows` says what is known of an instruction's results, which only those ask who change a module.
    """

    def __init__(
        self,
        modules: Sequence[ModuleRecord],
        symbols: Mapping[str, Symbol],
        weights: WeightSource,
        where: str,
        knows: Callable[[Op, Sequence[ir.Value | None], tuple[Type, ...]], tuple[Known | None, ...]] | None = None,
    ) -> None:
        self._records = modules
        self._symbols = symbols
        self._weights = weights
        self._where = where
        self._knows = knows
        self._types: dict[str, Type] = {}

    def module(self, index: int) -> ir.Module:
        """Module number `index` with those inside it."""
        record = self._records[index]
        parameters = tuple(
            ir.Instruction(ir.Parameter(kind), (), (kind,), (None,), (entry.name,))
            for entry in record.parameters
            for kind in (self.type(entry.type),)
        )
        made: list[ir.Instruction] = []

        def value(ref: Ref) -> ir.Value:
            number, result = ref
            return ir.Value(parameters[result], 0) if number == PARAMETER else ir.Value(made[number], result)

        for entry in record.instructions:
            operands = tuple(None if ref is None else value(ref) for ref in entry.operands)
            types = tuple(self.type(text) for text in entry.results)
            op = self.op(entry)
            known = self._knows(op, operands, types) if self._knows else (None,) * len(types)
            made.append(ir.Instruction(op, operands, types, known, entry.names, entry.source))
        results = tuple(value(entry.value) for entry in record.results)
        return ir.Module(record.name, parameters, tuple(made), results, tuple(entry.name for entry in record.results))

    def type(self, text: str) -> Type:
        """A type from its text."""
        found = self._types.get(text)
        if found is None:
            found = self._types[text] = self._parsed(parse_type, text)
        return found

    def dim(self, text: str) -> DimLike:
        """A dim from its text."""
        return self._parsed(parse_dim, text)

    def _parsed(self, parse: Callable[[str, Mapping[str, Symbol]], Any], text: str) -> Any:
        try:
            return parse(text, self._symbols)
        except ArgosyError as error:
            raise ArtifactError(error.what, where=self._where, hint="copy or compile the artifact again") from None

    def op(self, record: InstructionRecord) -> Op:
        """The op of an instruction; raises ArtifactError where this version does not know it."""
        return self.op_from(record.op, record.version, record.attributes, record.source)

    def op_from(self, name: str, version: int, attributes: Mapping[str, Value], source: str) -> Op:
        """An op by name, version and attributes."""
        where = f"{self._where}: {source or name}"
        kind = OPS.get(name)
        if kind is None or version != kind.version:
            raise ArtifactError(
                f"the op {name!r}, version {version}, is unknown to this version of Argosy",
                where=where,
                hint="update Argosy, or compile the model again",
            )
        fields = _field_types(kind)
        if fields.keys() != attributes.keys():
            raise ArtifactError(f"{name} has the attributes {sorted(fields)}, found {sorted(attributes)}", where=where)
        values = {key: self.value(value) for key, value in attributes.items()}
        for key, expected in fields.items():
            if not _fits(values[key], expected):
                raise ArtifactError(
                    f"the attribute {key!r} of {name} is {values[key]!r}, expected {expected}", where=where
                )
        return kind(**values)

    def value(self, value: Value) -> Any:
        """An attribute's value."""
        match value:
            case FloatValue():
                return parse_float(value.text)
            case BytesValue():
                return value.data
            case DTypeValue():
                return dtype(value.name)
            case DimValue():
                return self.dim(value.text)
            case TypeValue():
                return self.type(value.text)
            case TupleValue():
                return tuple(self.value(item) for item in value.items)
            case ModuleValue():
                return self.module(value.index)
            case FormulaValue():
                return self._formula(value)
            case LiteralRef() | InlineLiteral() | SplatLiteral() | StringsLiteral():
                return self.literal(value)
            case _:
                return value

    def literal(self, value: LiteralValue) -> Literal:
        """A literal; weights come from the source."""
        match value:
            case StringsLiteral():
                texts = np.empty(len(value.items), object)
                texts[:] = value.items
                return Literal.of(texts.reshape(value.dims))
            case SplatLiteral():
                kind = dtype(value.dtype)
                return Literal(kind, value.dims, _typed(value.data, value.dtype), is_splat=True)
            case InlineLiteral():
                return Literal.packed(dtype(value.dtype), value.dims, np.frombuffer(value.data, np.uint8))
            case LiteralRef():
                return self._weights(value)

    def _formula(self, value: FormulaValue) -> Formula:
        for step in value.steps:
            if step.primitive not in PRIMITIVES or PRIMITIVES[step.primitive].arity != len(step.args):
                raise ArtifactError(f"a formula holds the unknown step {step.primitive!r}", where=self._where)
        return Formula(
            value.arity,
            tuple(
                Step(step.primitive, tuple(_arg(arg) for arg in step.args), dtype(step.dtype) if step.dtype else None)
                for step in value.steps
            ),
        )


_FIELD_TYPES: Final[dict[str, dict[str, Any]]] = {}


def _field_types(kind: type[Op]) -> dict[str, Any]:
    """Declared types of an op's attributes; resolved once for each op, since that is slow."""
    found = _FIELD_TYPES.get(kind.name)
    if found is None:
        hints = get_type_hints(kind)
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        found = _FIELD_TYPES[kind.name] = {entry.name: hints[entry.name] for entry in fields}
    return found


def _fits(value: Any, expected: Any) -> bool:
    """Whether an attribute's value is of its declared type: a class, a union, or a tuple of such."""
    arguments = get_args(expected)
    if get_origin(expected) in (Union, UnionType):
        return any(_fits(value, option) for option in arguments)
    if get_origin(expected) is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if expected in (Any, None, NoneType):
        return expected is Any or value is None
    if expected is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, expected)


def _arg(arg: int | ConstantRecord) -> int | FormulaConstant:
    if isinstance(arg, int):
        return arg
    return FormulaConstant(parse_float(arg.value.text) if isinstance(arg.value, FloatValue) else arg.value)


def _typed(data: bytes, name: str) -> Any:
    kind = dtype(name)
    raw = np.frombuffer(data, np.uint8)
    return raw if kind.bits < 8 else raw.view(kind.numpy)


def decode_program(record: ProgramRecord, weights: WeightSource, where: str) -> Program:
    """The program that `record` holds; raises ArtifactError, naming `where`, for ops and types that it can't be."""
    from argosy.ir.builder import known_results  # noqa: PLC0415 - a machine that only runs decodes no program

    decoder = Decoder(record.modules, decode_symbols(record.symbols), weights, where, known_results)
    return Program(decoder.module(0), MappingProxyType(dict(record.metadata)))
