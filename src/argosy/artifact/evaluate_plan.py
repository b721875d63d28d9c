"""The plan that evaluates a module op by op: what a target without code of its own runs.

What depends on weights alone becomes a prepare module, run once at load; the rest is one straight block.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from argosy.ir.dim import Symbol, lone_symbol
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType

__all__ = ["evaluate_plan"]


def evaluate_plan(module: Module) -> tuple[PlanRecord, dict[str, Literal]]:
    """The plan of `module`, and the weights that it refers to, by hash."""
    return _Planner(module).plan()


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
        prepared = self._from_weights_alone()
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

    def _from_weights_alone(self) -> set[Instruction]:
        """Pure instructions that read constants, directly or through each other, and nothing else."""
        found: set[Instruction] = set()
        for instruction in self._module.instructions:
            sources = [operand.instruction for operand in instruction.operands if operand is not None]
            if (
                sources
                and instruction.op.pure
                and not instruction.op.modules()
                and not any(True for kind in instruction.types for _ in _lone_symbols(kind))
                and all(isinstance(source.op, Constant) or source in found for source in sources)
            ):
                found.add(instruction)
        return found

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
