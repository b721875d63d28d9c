"""Lowering a module to a Plan, as far as it is the same on every target: the order of things, and what a run reads.

A target says how it does an instruction, where its values lie, and how the elements of sub-byte tensors are packed.
What it can't do becomes an `evaluate` step on the host, with the reasons in the log; `--strict` makes that an error.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from msgspec.structs import replace

from argosy.artifact.encode import encode_symbols
from argosy.artifact.plan import (
    ArenaRecord,
    BindingRecord,
    Block,
    CopyStep,
    EvaluateStep,
    InputDim,
    PlanRecord,
    PrepareRecord,
    ShapeEntry,
    ShapeStep,
    Step,
    StraightBlock,
)
from argosy.errors import ArgosyError, CompileError, InternalError
from argosy.ir.dim import DimLike
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import Demand
from argosy.ops.fused import Fused
from argosy.options import CompileOptions
from argosy.rewrite.trace import node_name
from argosy.targets.lowering.choices import BLOCKS, HOST, LEFT_OUT, NOTHING, Choice
from argosy.targets.lowering.control import Turn, lower_control
from argosy.targets.lowering.load_time import is_done_at_load, without_passing
from argosy.targets.lowering.plan_buffers import PlanBuffers
from argosy.targets.lowering.values import in_memory, is_numeric, readers_of

__all__ = ["Arena", "ModuleLowering"]

_ALIASES: Final = frozenset({"reshape", "squeeze", "unsqueeze"})


@dataclass(frozen=True, slots=True)
class Arena:
    """The memory in which a target plans buffers, and the multiple of bytes at which each lies."""

    space: Literal["host", "device"]
    alignment: int


class ModuleLowering(PlanBuffers, ABC):
    """Base of the lowerings: a module that has gone through a target's pipeline, on the way to a Plan."""

    log: ClassVar[logging.Logger]
    arena: ClassVar[Arena]

    def __init__(self, module: Module, options: CompileOptions) -> None:
        super().__init__()
        self.module = module
        self.options = options
        self.readers = readers_of(module)
        self.results = frozenset(module.results)
        """What leaves the module, or the body, at hand."""
        self.blocks: list[Block] = []
        self.steps: list[Step] = []
        """Those of the block at hand."""
        self.prepare: list[Step] = []
        self.prepared: list[int] = []
        self.host: list[str] = []
        """A line for each host step, with the reasons."""
        self.choices: list[Choice] = []
        """How each instruction is done."""
        self.left_out = options.leaves_out("solution")
        self.does_load = "load" not in options.leaves_out("stage")
        self.met: set[Demand] = set()
        """Demands that were checked on the way here."""

    # What a target says

    @abstractmethod
    def lower_op(self, instruction: Instruction) -> Sequence[str] | None:
        """Do an instruction on tensors by kernels; where none can, why, a reason for each way."""

    @abstractmethod
    def number(self, value: Value) -> int:
        """The buffer of a value in row-major order."""

    @abstractmethod
    def settle(self, value: Value, number: int) -> None:
        """Say that a value lies in a buffer, in row-major order."""

    @abstractmethod
    def unpack(self, instruction: Instruction, kind: TensorType, number: int) -> int:
        """A buffer with one element to a byte, from one with several."""

    @abstractmethod
    def pack(self, value: Value, number: int, held: int) -> None:
        """Put the elements in buffer `number` together into `held`, several to a byte."""

    @abstractmethod
    def checks(self, instruction: Instruction) -> Sequence[Step]:
        """Steps that check the demands of an instruction which are not `met` yet."""

    @abstractmethod
    def length(self, instruction: Instruction, length: DimLike) -> int:
        """A buffer with a size as an int64: a number of iterations."""

    @abstractmethod
    def element(self, instruction: Instruction, turn: Turn, reads: tuple[int, int], write: int) -> None:
        """Append what copies the element of a scan whose turn it is."""

    # The module

    def plan(self) -> PlanRecord:
        """The plan, without its code."""
        module = self.module
        inputs: list[BindingRecord] = []
        given: list[tuple[Instruction, int]] = []
        shapes: list[ShapeEntry] = []
        for place, parameter in enumerate(module.parameters):
            kind = parameter.types[0]
            number = self.buffer("input", kind)
            self.settle(parameter.result(), number)
            given.append((parameter, number))
            inputs.append(BindingRecord(parameter.names[0], number))
            shapes += [InputDim(name, place, axis) for name, axis in self.new_symbols(kind)]
        self.early = frozenset(self.bound)
        for parameter, number in given:
            self.settle(parameter.result(), self._unpacked(parameter, parameter.types[0], number))
        for instruction in module.instructions:
            self._instruction(instruction)
        outputs = tuple(
            BindingRecord(name, self._packed(value))
            for name, value in zip(module.result_names, module.results, strict=True)
        )
        body = self._closed()
        buffers, prepared = without_passing(self.buffers, self.prepared, body, [output.buffer for output in outputs])
        record = PrepareRecord("weights", prepared, (StraightBlock(tuple(self.prepare)),))
        return PlanRecord(
            tuple(inputs),
            outputs,
            tuple(buffers),
            tuple(body),
            symbols=encode_symbols(self.encoder.symbols.values()),
            shapes=tuple(shapes),
            arenas=(ArenaRecord(self.arena.space, self.arena.alignment),),
            prepare=(record,) if self.prepare else (),
            modules=self.encoder.modules,
        )

    def placed(self, plan: PlanRecord) -> PlanRecord:
        """The plan with its buffers where the options want them: in one arena, or each alone."""
        if "memory" not in self.options.leaves_out("stage"):
            return plan
        alone = (replace(buffer, arena=1) if buffer.kind == "planned" else buffer for buffer in plan.buffers)
        return replace(plan, buffers=tuple(alone), arenas=plan.arenas * 2)

    def _unpacked(self, instruction: Instruction, kind: Type, number: int) -> int:
        """A buffer that may hold several elements to a byte with one to a byte."""
        if not isinstance(kind, TensorType) or not kind.dtype.is_packed or not is_numeric(kind):
            return number
        return self.unpack(instruction, kind, number)

    def _packed(self, value: Value) -> int:
        """The buffer of a value as the outside sees it: several elements to a byte where they are that short."""
        number, kind = self.number(value), value.type
        if not isinstance(kind, TensorType) or not kind.dtype.is_packed or not is_numeric(kind):
            return number
        held = self.raw_memory(kind)
        self.pack(value, number, held)
        return held

    # Bodies of control ops: what `control.BodyLowering` asks for

    def body(
        self, module: Module, arguments: Sequence[int], begin: Callable[[], None] | None = None
    ) -> tuple[list[Block], list[int]]:
        """The blocks of a body on these buffers, and the buffers of its results. `begin` adds steps at its start."""
        outside = self.blocks, self.steps, set(self.bound), self.results, set(self.met)
        self.blocks, self.steps, self.results = [], [], frozenset(module.results)
        self.readers.update(readers_of(module))
        if begin is not None:
            begin()
        for parameter, argument in zip(module.parameters, arguments, strict=True):
            self.settle(parameter.result(), self._entered(parameter, argument))
        for instruction in module.instructions:
            self._instruction(instruction)
        results = [self.number(value) for value in module.results]
        blocks = self._closed()
        self.blocks, self.steps, self.bound, self.results, self.met = outside
        return blocks, results

    def _entered(self, parameter: Instruction, number: int) -> int:
        """An argument as a body sees it: symbols of its own get their values; what kernels may read lies in memory."""
        kind = parameter.types[0]
        self.encoder.type(kind)  # notes its symbols
        self.steps += [ShapeStep(name, number, axis) for name, axis in self.new_symbols(kind)]
        if self.buffers[number].kind == "value" and is_numeric(kind):
            held = self.raw_memory(kind)
            self.steps.append(CopyStep(number, held))
            return self._unpacked(parameter, kind, held)
        return number

    def block(self, block: Block) -> None:
        """Append a block."""
        self.blocks = [*self._closed(), block]
        self.steps = []

    def _closed(self) -> list[Block]:
        """The blocks so far, the steps at hand as the last."""
        return [*self.blocks, StraightBlock(tuple(self.steps))] if self.steps else self.blocks

    def why_left_out(self, solution: str) -> str:
        """Why a solution is not asked; empty where it is."""
        return LEFT_OUT if solution in self.left_out else ""

    def is_done_at_load(self, instruction: Instruction, is_weight: Callable[[Value], bool]) -> bool:
        """Whether an instruction is done once, when the artifact is loaded."""
        return self.does_load and is_done_at_load(instruction, is_weight)

    def give(self, instruction: Instruction, results: Sequence[int]) -> None:
        """Say where the results of an instruction lie; their sizes give new symbols their values."""
        for value, number in zip(instruction.results, results, strict=True):
            self.settle(value, number)
            self.steps += [ShapeStep(name, number, axis) for name, axis in self.new_symbols(value.type)]

    # Instructions

    def _instruction(self, instruction: Instruction) -> None:
        try:
            self._lower(instruction)
        except (ArgosyError, MemoryError, OSError):
            raise
        except Exception as error:
            raise InternalError(f"{type(error).__name__}: {error}", where=node_name(instruction)) from error

    def _lower(self, instruction: Instruction) -> None:
        if isinstance(instruction.op, Constant):
            kind = instruction.types[0]
            number = self.buffer("weight", kind, literal=self.encoder.literal(instruction.op.literal))
            self.settle(instruction.result(), self._unpacked(instruction, kind, number))
            return
        self.steps += self.checks(instruction)
        if lower_control(self, instruction):
            self.choices.append(Choice(instruction, BLOCKS))
            return
        if not in_memory(instruction):
            self._evaluate(
                instruction, [f"{instruction.op.name} has values that only the host holds: {_host_only(instruction)}"]
            )
            return
        if self._alias(instruction):
            self.choices.append(Choice(instruction, NOTHING))
            return
        reasons = self.lower_op(instruction)
        if reasons is not None:
            self._evaluate(instruction, reasons or [f"{instruction.op.name} has no kernel yet"])

    def _alias(self, instruction: Instruction) -> bool:
        """A lone reshape shares the buffer of its operand."""
        op = instruction.op
        inner = (
            [i for i in op.module.instructions if i.op.name != "constant"] if isinstance(op, Fused) else [instruction]
        )
        if not inner or any(step.op.name not in _ALIASES for step in inner) or instruction.operands[0] is None:
            return False
        source = self.number(instruction.operands[0])
        if self.buffers[source].kind not in ("planned", "pooled", "view") or self.undefined(instruction.types[0]):
            return False  # an input or a weight is copied, so that each buffer has one owner
        self.settle(instruction.result(), self.view(instruction.types[0], source, 0))
        return True

    def _evaluate(self, instruction: Instruction, reasons: Sequence[str]) -> None:
        line = f"{instruction.source or instruction.op.name}: {'; '.join(reasons)}"
        if self.options.strict:
            raise CompileError(f"no kernel can do this node: {'; '.join(reasons)}", where=instruction.source)
        self.log.info("host step: %s", line)
        self.host.append(line)
        self.choices.append(Choice(instruction, HOST, declined=tuple(reasons)))
        # What kernels read lies in memory; a size that only this step tells is bound in between.
        results = [
            self.raw_memory(kind) if is_numeric(kind) and not self.undefined(kind) else self.buffer("value", kind)
            for kind in instruction.types
        ]
        operands = tuple(None if operand is None else self._packed(operand) for operand in instruction.operands)
        op = instruction.op
        self.steps.append(
            EvaluateStep(op.name, op.version, tuple(results), operands, self.encoder.attributes(op), instruction.source)
        )
        for index, (number, kind) in enumerate(zip(results, instruction.types, strict=True)):
            self.steps += [ShapeStep(name, number, axis) for name, axis in self.new_symbols(kind)]
            held = number
            if self.buffers[number].kind == "value" and is_numeric(kind):
                held = self.raw_memory(kind)
                self.steps.append(CopyStep(number, held))
            self.settle(instruction.result(index), self._unpacked(instruction, kind, held))


def _host_only(instruction: Instruction) -> str:
    """The types, of an instruction's operands and results, that kernels hold no values of."""
    kinds = [operand.type for operand in instruction.operands if operand is not None] + [*instruction.types]
    return ", ".join(dict.fromkeys(str(kind) for kind in kinds if not is_numeric(kind)))
