"""If, Loop and Scan as blocks of the Plan: their bodies are lowered like the module around them.

A body's parameters are buffers of the outside (captures), or buffers that the block fills before each iteration.
What the branches of an If give is copied into one buffer for each result, which is written on both paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from argosy.artifact.plan import Block, CarriedRecord, CollectedRecord, CopyStep, IfBlock, LoopBlock, StraightBlock
from argosy.ir.dim import DimLike
from argosy.ir.dtype import BOOL, INT64
from argosy.ir.literal import Literal
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.control import If, Loop, Scan
from argosy.ops.shapes import normalize_axis, product

__all__ = ["BodyLowering", "Turn", "lower_control"]


@dataclass(frozen=True, slots=True)
class Turn:
    """How a scan goes through one of its inputs: along an axis, one element an iteration, maybe from the end."""

    value: Value
    axis: int
    backwards: bool

    @property
    def elements(self) -> DimLike:
        """How many numbers an element has."""
        return product(tuple(size for axis, size in enumerate(self.value.shape) if axis != self.axis))


class BodyLowering(Protocol):
    """What this needs of the lowering around it. Buffers are numbers."""

    def number(self, value: Value) -> int:
        """The buffer of a value."""
        ...

    def room(self, of: Type) -> int:
        """A buffer for values of a type: in memory, or for Python objects where kernels can't hold them."""
        ...

    def weight(self, literal: Literal) -> int:
        """The buffer of a constant."""
        ...

    def body(
        self, module: Module, arguments: Sequence[int], begin: Callable[[], None] | None = None
    ) -> tuple[list[Block], list[int]]:
        """The blocks of a body on these buffers, and the buffers of its results. `begin` adds steps at its start."""
        ...

    def block(self, block: Block) -> None:
        """Append a block."""
        ...

    def length(self, instruction: Instruction, length: DimLike) -> int:
        """A buffer with a size as an int64: a number of iterations."""
        ...

    def element(self, instruction: Instruction, turn: Turn, reads: tuple[int, int], write: int) -> None:
        """Append what copies the element whose turn it is; `reads` are the tensor and the number of the iteration."""
        ...

    def give(self, instruction: Instruction, results: Sequence[int]) -> None:
        """Say where the results of an instruction lie; their sizes give new symbols their values."""
        ...


def lower_control(lowering: BodyLowering, instruction: Instruction) -> bool:
    """Lower an If, Loop or Scan; False for any other op."""
    match instruction.op:
        case If() as op:
            _if(lowering, instruction, op)
        case Loop() as op:
            _loop(lowering, instruction, op)
        case Scan() as op:
            _scan(lowering, instruction, op)
        case _:
            return False
    return True


def _numbers(lowering: BodyLowering, operands: Sequence[Value | None]) -> list[int]:
    return [lowering.number(operand) for operand in operands if operand is not None]


def _if(lowering: BodyLowering, instruction: Instruction, op: If) -> None:
    condition, *captures = _numbers(lowering, instruction.operands)
    split = len(op.then_branch.parameters)
    results = [lowering.room(kind) for kind in instruction.types]
    branches = []
    for module, arguments in ((op.then_branch, captures[:split]), (op.else_branch, captures[split:])):
        blocks, found = lowering.body(module, arguments)
        copies = tuple(CopyStep(origin, target) for origin, target in zip(found, results, strict=True))
        branches.append((*blocks, StraightBlock(copies)))
    then, otherwise = branches
    lowering.block(IfBlock(condition, then, otherwise, instruction.source))
    lowering.give(instruction, results)


def _loop(lowering: BodyLowering, instruction: Instruction, op: Loop) -> None:
    trip, condition = (None if operand is None else lowering.number(operand) for operand in instruction.operands[:2])
    given = _numbers(lowering, instruction.operands[2:])
    initial, captures = given[: op.carried], given[op.carried :]
    kinds = [parameter.types[0] for parameter in op.body.parameters]
    iteration = lowering.room(kinds[0])
    true = lowering.weight(_true(kinds[1]))  # inside an iteration the condition holds
    current = [lowering.room(kind) for kind in kinds[2 : 2 + op.carried]]
    blocks, found = lowering.body(op.body, [iteration, true, *current, *captures])
    results = [lowering.room(kind) for kind in instruction.types]
    again = op.body.results[0]
    endless = again.instruction is op.body.parameters[1] or _is_true(again)
    if endless and trip is not None:
        following = None
    else:
        following, condition = found[0], true if condition is None else condition
    lowering.block(
        LoopBlock(
            tuple(blocks),
            trip,
            condition,
            following,
            iteration,
            _carried(initial, current, found[1 : 1 + op.carried], results),
            tuple(
                CollectedRecord(element, result)
                for element, result in zip(found[1 + op.carried :], results[op.carried :], strict=True)
            ),
            instruction.source,
        )
    )
    lowering.give(instruction, results)


def _carried(
    initial: Sequence[int], current: Sequence[int], following: Sequence[int], final: Sequence[int]
) -> tuple[CarriedRecord, ...]:
    return tuple(
        CarriedRecord(*entry) for entry in zip(initial, current, following, final[: len(current)], strict=True)
    )


def _true(kind: Type) -> Literal:
    rank = len(kind.dims or ()) if isinstance(kind, TensorType) else 0
    return Literal.of(np.ones((1,) * rank, np.bool_), BOOL)


def _is_true(value: Value) -> bool:
    literal = value.constant
    return literal is not None and literal.size == 1 and bool(literal.item())


def _scan(lowering: BodyLowering, instruction: Instruction, op: Scan) -> None:
    given = _numbers(lowering, instruction.operands)
    scanned = [value for value in instruction.operands[op.states : op.states + len(op.input_axes)] if value is not None]
    initial, captures = given[: op.states], given[op.states + len(scanned) :]
    sources = given[op.states : op.states + len(scanned)]
    axes = [normalize_axis(axis, value.rank) for axis, value in zip(op.input_axes, scanned, strict=True)]
    length = scanned[0].shape[axes[0]]
    kinds = [parameter.types[0] for parameter in op.body.parameters]
    iteration = lowering.room(TensorType(INT64, ()))
    current = [lowering.room(kind) for kind in kinds[: op.states]]
    elements = [lowering.room(kind) for kind in kinds[op.states : op.states + len(scanned)]]
    trip = lowering.length(instruction, length)

    def begin() -> None:
        for value, source, axis, backwards, element in zip(
            scanned, sources, axes, op.input_reversed, elements, strict=True
        ):
            lowering.element(instruction, Turn(value, axis, backwards=backwards), (source, iteration), element)

    blocks, found = lowering.body(op.body, [*current, *elements, *captures], begin)
    results = [lowering.room(kind) for kind in instruction.types]
    collected = []
    for place, element in enumerate(found[op.states :]):
        value = instruction.result(op.states + place)
        axis = normalize_axis(op.output_axes[place], value.rank)
        collected.append(CollectedRecord(element, results[op.states + place], axis, op.output_reversed[place]))
    lowering.block(
        LoopBlock(
            tuple(blocks),
            trip,
            None,
            None,
            iteration,
            _carried(initial, current, found[: op.states], results),
            tuple(collected),
            instruction.source,
        )
    )
    lowering.give(instruction, results)
