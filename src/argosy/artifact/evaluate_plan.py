"""The plan that evaluates a module op by op: what a target without code of its own runs.

What depends on weights alone becomes a prepare module, run once at load; the rest is one straight block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.artifact.encode import Encoder, encode_symbols
from argosy.artifact.plan import (
    BindingRecord,
    BufferRecord,
    EvaluateStep,
    InputDim,
    PlanRecord,
    PrepareRecord,
    ShapeEntry,
    ShapeStep,
    Step,
    StraightBlock,
)
from argosy.ir.builder import Builder
from argosy.ir.dim import Symbol, lone_symbol
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.op import Env
from argosy.ir.types import TensorType, type_symbols

__all__ = ["evaluate_plan"]


def evaluate_plan(module: Module, *, prepare_now: bool = False) -> tuple[PlanRecord, dict[str, Literal]]:
    """The plan of `module`, and the weights that it refers to, by hash.

    `prepare_now` evaluates what depends on weights alone here, so that the prepared weights are stored
    instead of the ones that the model came with.
    """
    return _Planner(_prepare(module) if prepare_now else module).plan()


def _prepare(module: Module) -> Module:
    """The module with what depends on weights alone evaluated, and unused weights gone."""
    builder = Builder(module.name)
    values: dict[tuple[Instruction, int], Value] = {
        (parameter, 0): builder.adopt(parameter) for parameter in module.parameters
    }
    early = _from_weights_alone(module)
    constants: dict[tuple[Instruction, int], Any] = {}
    for instruction in module.instructions:
        if isinstance(instruction.op, Constant):
            constants[instruction, 0] = instruction.op.literal
        elif instruction in early:
            arguments = [None if v is None else _array(constants[v.instruction, v.index]) for v in instruction.operands]
            for index, result in enumerate(instruction.op.evaluate_in(Env(), *arguments)):
                constants[instruction, index] = result
        else:
            operands = [None if v is None else _placed(v, values, constants, builder) for v in instruction.operands]
            for index, value in enumerate(builder.keep(instruction, operands)):
                values[instruction, index] = value
    results = [_placed(value, values, constants, builder) for value in module.results]
    return builder.module(list(zip(module.result_names, results, strict=True)))


def _array(constant: Any) -> Any:
    return constant.array() if isinstance(constant, Literal) else constant


def _placed(
    value: Value,
    values: dict[tuple[Instruction, int], Value],
    constants: dict[tuple[Instruction, int], Any],
    builder: Builder,
) -> Value:
    """The value in the new module: a constant enters it when it is first read."""
    key = value.instruction, value.index
    if key not in values:
        values[key] = builder.constant(constants[key], name=value.name)
    return values[key]


def _from_weights_alone(module: Module) -> set[Instruction]:
    """Pure instructions that read constants, directly or through each other, and nothing else."""
    found: set[Instruction] = set()
    for instruction in module.instructions:
        sources = [operand.instruction for operand in instruction.operands if operand is not None]
        if (
            sources
            and instruction.op.pure
            and not instruction.op.modules()
            and not instruction.op.has_symbols()
            and not any(type_symbols(kind) for kind in instruction.types)
            and all(isinstance(source.op, Constant) or source in found for source in sources)
        ):
            found.add(instruction)
    return found


class _Planner:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._encoder = Encoder()
        self._buffers: list[BufferRecord] = []
        self._numbers: dict[tuple[Instruction, int], int] = {}
        self._bound: set[str] = set()

    def plan(self) -> tuple[PlanRecord, dict[str, Literal]]:
        module, encoder = self._module, self._encoder
        inputs, shapes = self._inputs()
        prepared = _from_weights_alone(module)
        prepare: list[Step] = []
        body: list[Step] = []
        made: list[int] = []
        for instruction in module.instructions:
            if isinstance(instruction.op, Constant):
                literal = encoder.literal(instruction.op.literal)
                self._add(instruction, 0, BufferRecord("weight", encoder.type(instruction.types[0]), literal))
                continue
            early = instruction in prepared
            results = tuple(
                self._add(instruction, index, BufferRecord("prepared" if early else "value", encoder.type(kind)))
                for index, kind in enumerate(instruction.types)
            )
            operands = tuple(None if operand is None else self._number(operand) for operand in instruction.operands)
            op = instruction.op
            step = EvaluateStep(op.name, op.version, results, operands, encoder.attributes(op), instruction.source)
            if early:
                prepare.append(step)
                made.extend(results)
            else:
                body.append(step)
                body.extend(self._symbols_of(instruction))
        outputs = tuple(
            BindingRecord(name, self._number(value))
            for name, value in zip(module.result_names, module.results, strict=True)
        )
        record = PlanRecord(
            inputs,
            outputs,
            tuple(self._buffers),
            (StraightBlock(tuple(body)),),
            symbols=encode_symbols(encoder.symbols.values()),
            shapes=shapes,
            prepare=(PrepareRecord("weights", tuple(made), (StraightBlock(tuple(prepare)),)),) if prepare else (),
            modules=encoder.modules,
        )
        return record, encoder.weights

    def _inputs(self) -> tuple[tuple[BindingRecord, ...], tuple[ShapeEntry, ...]]:
        bindings: list[BindingRecord] = []
        shapes: list[ShapeEntry] = []
        for place, parameter in enumerate(self._module.parameters):
            kind = parameter.types[0]
            number = self._add(parameter, 0, BufferRecord("input", self._encoder.type(kind)))
            bindings.append(BindingRecord(parameter.names[0], number))
            for axis, symbol in _lone_symbols(kind):
                if symbol.name not in self._bound:
                    self._bound.add(symbol.name)
                    shapes.append(InputDim(symbol.name, place, axis))
        return tuple(bindings), tuple(shapes)

    def _symbols_of(self, instruction: Instruction) -> Sequence[ShapeStep]:
        steps = []
        for index, kind in enumerate(instruction.types):
            for axis, symbol in _lone_symbols(kind):
                if symbol.name not in self._bound:
                    self._bound.add(symbol.name)
                    steps.append(ShapeStep(symbol.name, self._numbers[instruction, index], axis))
        return steps

    def _add(self, instruction: Instruction, index: int, record: BufferRecord) -> int:
        self._numbers[instruction, index] = len(self._buffers)
        self._buffers.append(record)
        return len(self._buffers) - 1

    def _number(self, value: Value) -> int:
        return self._numbers[value.instruction, value.index]


def _lone_symbols(kind: object) -> Sequence[tuple[int, Symbol]]:
    if not isinstance(kind, TensorType) or kind.dims is None:
        return ()
    found = ((axis, lone_symbol(dim)) for axis, dim in enumerate(kind.dims))
    return [(axis, symbol) for axis, symbol in found if symbol is not None]
