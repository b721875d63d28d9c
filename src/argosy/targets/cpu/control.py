"""If, Loop and Scan as blocks of the Plan: their bodies are lowered like the module around them.

A body's parameters are buffers of the outside (captures), or buffers that the block fills before each iteration.
What the branches of an If give is copied into one buffer for each result, which is written on both paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from argosy.artifact.plan import Block, CarriedRecord, CollectedRecord, CopyStep, IfBlock, LoopBlock, StraightBlock
from argosy.ir.dim import DimLike
from argosy.ir.dtype import BOOL, INT64
from argosy.ir.literal import Literal
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.control import If, Loop, Scan
from argosy.ops.shapes import normalize_axis
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter
from argosy.targets.cpu.codegen.loops import copy_code
from argosy.targets.cpu.codegen.op_kernel import OpKernel

__all__ = ["BodyLowering", "lower_control"]


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

    def call(self, instruction: Instruction, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Append a call."""
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
    trip = _length(lowering, instruction, length)

    def begin() -> None:
        for value, source, axis, backwards, element in zip(
            scanned, sources, axes, op.input_reversed, elements, strict=True
        ):
            kernel = _element_kernel(value, axis, backwards=backwards)
            lowering.call(instruction, kernel, [source, iteration], [element])

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


def _length(lowering: BodyLowering, instruction: Instruction, length: DimLike) -> int:
    """A buffer with the number of iterations."""
    if isinstance(length, int):
        return lowering.weight(Literal.of(np.asarray(length, np.int64), INT64))
    writer = KernelWriter(Module("length", (), (), (), ()), [INT64])
    writer.text.line(f"y0[0] = {writer.text.dim(length)};")
    number = lowering.room(TensorType(INT64, ()))
    lowering.call(instruction, writer.kernel(1).labelled("length"), [], [number])
    return number


def _element_kernel(value: Value, axis: int, *, backwards: bool) -> Kernel:
    """Copies the element along `axis` whose turn it is. Reads the tensor and the iteration."""
    kind = value.tensor.with_dtype(copy_code(value.dtype))
    parameters = [
        Instruction(Parameter(each), (), (each,), (None,), (name,))
        for each, name in ((kind, "x"), (TensorType(INT64, ()), "iteration"))
    ]
    module = Module("element", tuple(parameters), tuple(parameters[:1]), (), ())
    kernel = OpKernel(module, [kind.dtype])
    text, shape = kernel.text, value.shape
    size = text.let("int64", text.dim(shape[axis]))
    inner = text.let("int64", kernel.count(shape[axis + 1 :]))
    text.line(f"const int64 place = {f'{size} - 1 - x1[0]' if backwards else 'x1[0]'};")
    with text.loop("row", "0", kernel.count(shape[:axis])), text.loop("k", "0", inner):
        text.line(f"y0[row * {inner} + k] = x0[(row * {size} + place) * {inner} + k];")
    return kernel.kernel(1).labelled("element")
