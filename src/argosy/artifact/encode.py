"""From `argosy.ir` to records: a program or an op as it is written, and the weights that it refers to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from argosy.artifact.program import (
    INLINE_LIMIT,
    PARAMETER,
    BytesValue,
    ConstantRecord,
    DimValue,
    DTypeValue,
    FloatValue,
    FormulaStep,
    FormulaValue,
    InlineLiteral,
    InstructionRecord,
    LiteralRef,
    LiteralValue,
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
    float_text,
)
from argosy.errors import InternalError
from argosy.ir import module as ir
from argosy.ir.dim import Dim, Symbol
from argosy.ir.dtype import DType
from argosy.ir.formula import Constant as FormulaConstant
from argosy.ir.formula import Formula
from argosy.ir.literal import Literal
from argosy.ir.op import Op
from argosy.ir.program import Program
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type, type_symbols

__all__ = ["Encoder", "encode_program", "encode_symbols"]


class Encoder:
    """Encodes modules and ops, numbering modules outer before inner and collecting weights by hash."""

    def __init__(self) -> None:
        self.weights: dict[str, Literal] = {}
        self.symbols: dict[str, Symbol] = {}
        self._modules: list[ModuleRecord | None] = []

    @property
    def modules(self) -> tuple[ModuleRecord, ...]:
        """The encoded modules, in the order of their indices."""
        return tuple(module for module in self._modules if module is not None)

    def module(self, module: ir.Module) -> int:
        """Encode a module and those inside it; its index."""
        index = len(self._modules)
        self._modules.append(None)
        numbers: dict[ir.Instruction, int] = {
            **dict.fromkeys(module.parameters, PARAMETER),
            **{instruction: number for number, instruction in enumerate(module.instructions)},
        }
        places = {parameter: place for place, parameter in enumerate(module.parameters)}

        def ref(value: ir.Value) -> Ref:
            number = numbers[value.instruction]
            return (number, places[value.instruction] if number == PARAMETER else value.index)

        self._modules[index] = ModuleRecord(
            module.name,
            tuple(NamedType(parameter.names[0], self.type(parameter.types[0])) for parameter in module.parameters),
            tuple(
                InstructionRecord(
                    instruction.op.name,
                    instruction.op.version,
                    tuple(None if operand is None else ref(operand) for operand in instruction.operands),
                    tuple(self.type(kind) for kind in instruction.types),
                    self.attributes(instruction.op),
                    _names(instruction),
                    instruction.source,
                )
                for instruction in module.instructions
            ),
            tuple(
                NamedValue(name, ref(value)) for name, value in zip(module.result_names, module.results, strict=True)
            ),
        )
        return index

    def type(self, kind: Type) -> str:
        """The text of a type; its symbols are noted."""
        for symbol in type_symbols(kind):
            self.symbols.setdefault(symbol.name, symbol)
        return str(kind)

    def attributes(self, op: Op) -> dict[str, Value]:
        """An op's attributes as values."""
        return {name: self.value(value) for name, value in op.attributes().items()}

    def value(self, value: Any) -> Value:
        """An attribute's value."""
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return FloatValue(float_text(value))
            case bytes():
                return BytesValue(value)
            case DType():
                return DTypeValue(value.name)
            case Dim():
                return DimValue(str(value))
            case Symbol():
                raise InternalError(f"the symbol {value} is no attribute value; use a dim")
            case TensorType() | SequenceType() | OptionalType() | MapType():
                return TypeValue(self.type(value))
            case tuple():
                return TupleValue(tuple(self.value(item) for item in value))
            case ir.Module():
                return ModuleValue(self.module(value))
            case Literal():
                return self.literal(value)
            case Formula():
                return _formula(value)
            case _:
                raise InternalError(f"an attribute of type {type(value).__name__} can't be written")

    def literal(self, literal: Literal) -> LiteralValue:
        """A literal: small ones and splats in place, others as a reference to a weight."""
        name, dims = literal.dtype.name, literal.shape
        if literal.dtype.kind == "string":
            return StringsLiteral(tuple(str(text) for text in literal.stored), dims)
        if literal.is_splat:
            return SplatLiteral(name, literal.stored.view(np.uint8).tobytes(), dims)
        if literal.nbytes <= INLINE_LIMIT:
            return InlineLiteral(name, literal.stored.view(np.uint8).tobytes(), dims)
        self.weights.setdefault(literal.digest, literal)
        return LiteralRef(literal.digest, name, dims)


def _names(instruction: ir.Instruction) -> tuple[str, ...]:
    if not any(instruction.names):
        return ()
    return instruction.names + ("",) * (len(instruction.types) - len(instruction.names))


def _formula(formula: Formula) -> FormulaValue:
    def arg(ref: int | FormulaConstant) -> int | ConstantRecord:
        if isinstance(ref, int):
            return ref
        return ConstantRecord(FloatValue(float_text(ref.value)) if isinstance(ref.value, float) else ref.value)

    return FormulaValue(
        formula.arity,
        tuple(
            FormulaStep(step.primitive, tuple(arg(ref) for ref in step.args), step.dtype.name if step.dtype else "")
            for step in formula.steps
        ),
    )


def encode_symbols(symbols: Iterable[Symbol]) -> tuple[SymbolRecord, ...]:
    """Symbols as records, by name."""
    return tuple(SymbolRecord(s.name, s.lower, s.upper) for s in sorted(symbols, key=lambda s: s.name))


def encode_program(program: Program) -> tuple[ProgramRecord, dict[str, Literal]]:
    """A program as records, and the weights that it refers to, by hash."""
    encoder = Encoder()
    encoder.module(program.main)
    record = ProgramRecord(encoder.modules, encode_symbols(encoder.symbols.values()), dict(program.metadata))
    return record, encoder.weights
