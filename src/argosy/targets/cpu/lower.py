"""From a fused module to a Plan and kernels: each instruction by the first solution that can do it.

What no solution can do becomes an `evaluate` step on the host, with the reasons in the log; `--strict` makes
that an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from argosy.artifact.encode import encode_symbols
from argosy.artifact.plan import (
    ArenaRecord,
    BindingRecord,
    Block,
    CallStep,
    CodeRecord,
    CopyStep,
    EvaluateStep,
    InputDim,
    PlanRecord,
    PrepareRecord,
    ShapeEntry,
    ShapeStep,
    Step,
    StraightBlock,
    steps_in,
)
from argosy.errors import CompileError
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64, UINT8
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import Demand
from argosy.ops.fused import Fused
from argosy.options import CompileOptions
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.avoid_copies import avoid_copies
from argosy.targets.cpu.codegen.byte_copy import BYTE_COPY
from argosy.targets.cpu.codegen.demand_check import DEMAND_CHECK
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.sub_byte import pack_kernel, unpack_kernel
from argosy.targets.cpu.codegen.turns import element_kernel, length_kernel
from argosy.targets.cpu.demand_steps import check_steps
from argosy.targets.cpu.draft import Draft, Image
from argosy.targets.cpu.in_place import write_in_place
from argosy.targets.cpu.layout import Blocked
from argosy.targets.cpu.problems import KnownProblem, Problems, wanted_layout
from argosy.targets.cpu.solution import Solution
from argosy.targets.lowering.control import Turn, lower_control
from argosy.targets.lowering.load_time import is_done_at_load, without_passing
from argosy.targets.lowering.plan_buffers import PlanBuffers
from argosy.targets.lowering.values import in_memory, is_numeric, readers_of

__all__ = ["LoweredModule", "lower_module"]

log = logging.getLogger("argosy.cpu")
_ALIASES = frozenset({"reshape", "squeeze", "unsqueeze"})
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """The plan, its kernels by entry, the weights by hash, and the host steps with the reasons for each."""

    plan: PlanRecord
    kernels: dict[str, Kernel]
    weights: dict[str, Literal]
    host_steps: tuple[str, ...]


def lower_module(module: Module, arch: CpuArch, options: CompileOptions) -> LoweredModule:
    """Lower a module that has gone through the CPU's pipeline. Raises CompileError for a host step under `strict`."""
    return _Lowering(module, arch, options).run()


class _Lowering(PlanBuffers):
    def __init__(self, module: Module, arch: CpuArch, options: CompileOptions) -> None:
        super().__init__()
        self._module = module
        self._options = options
        self._problems = Problems(arch, options)
        self._numbers: dict[Value, int] = {}
        self._images: dict[Value, list[Image]] = {}
        self._readers = readers_of(module)
        self._kernels: dict[str, Kernel] = {}
        self._blocks: list[Block] = []
        self._body: list[Step] = []
        self._prepare: list[Step] = []
        self._prepared: list[int] = []
        self._host: list[str] = []
        self._met: set[Demand] = set()

    def run(self) -> LoweredModule:
        module = self._module
        inputs: list[BindingRecord] = []
        shapes: list[ShapeEntry] = []
        packed: list[tuple[Instruction, int]] = []
        for place, parameter in enumerate(module.parameters):
            kind = parameter.types[0]
            number = self.buffer("input", kind)
            self._numbers[parameter.result()] = number
            packed.append((parameter, number))
            inputs.append(BindingRecord(parameter.names[0], number))
            shapes += [InputDim(name, place, axis) for name, axis in self.new_symbols(kind)]
        self.early = frozenset(self.bound)
        for parameter, number in packed:
            self._numbers[parameter.result()] = self._unpacked(parameter, parameter.types[0], number)
        for instruction in module.instructions:
            self._instruction(instruction)
        outputs = tuple(
            BindingRecord(name, self._packed(value))
            for name, value in zip(module.result_names, module.results, strict=True)
        )
        body = self._closed()
        buffers, prepared = without_passing(self.buffers, self._prepared, body, [output.buffer for output in outputs])
        plan = PlanRecord(
            tuple(inputs),
            outputs,
            tuple(buffers),
            tuple(body),
            symbols=encode_symbols(self.encoder.symbols.values()),
            shapes=tuple(shapes),
            arenas=(ArenaRecord("host", _ALIGNMENT),),
            code=(CodeRecord("code/kernels.so", "elf"),) if self._kernels else (),
            prepare=self._prepare_records(prepared),
            modules=self.encoder.modules,
        )
        plan = avoid_copies(plan, self._kernels, self)
        self._kernels.setdefault(BYTE_COPY.entry, BYTE_COPY)
        plan = write_in_place(plan, self._kernels)
        return LoweredModule(plan, self._called(plan), self.encoder.weights, tuple(self._host))

    def _prepare_records(self, prepared: tuple[int, ...]) -> tuple[PrepareRecord, ...]:
        record = PrepareRecord("weights", prepared, (StraightBlock(tuple(self._prepare)),))
        return (record,) if self._prepare else ()

    def _called(self, plan: PlanRecord) -> dict[str, Kernel]:
        """The kernels that a plan calls."""
        bodies = (plan.body, *(module.body for module in plan.prepare))
        entries = {step.entry for body in bodies for step in steps_in(body) if isinstance(step, CallStep)}
        return {entry: kernel for entry, kernel in self._kernels.items() if entry in entries}

    # Where values lie

    def _unpacked(self, instruction: Instruction, kind: Type, number: int) -> int:
        """A buffer that may hold several elements to a byte with one to a byte."""
        if not isinstance(kind, TensorType) or not kind.dtype.is_packed or not is_numeric(kind):
            return number
        draft = Draft(self, instruction)
        if self.buffers[number].kind == "weight":
            held = draft.prepared(unpack_kernel(kind), [number], kind.with_dtype(UINT8))
        else:
            held = self.memory(kind)
            draft.call(unpack_kernel(kind), [number], [held])
        self._commit(draft)
        return held

    def _packed(self, value: Value) -> int:
        """The buffer of a value as the outside sees it: several elements to a byte where they are that short."""
        number, kind = self.number(value), value.type
        if not isinstance(kind, TensorType) or not kind.dtype.is_packed or not is_numeric(kind):
            return number
        held = self.raw_memory(kind)
        self.call(value.instruction, pack_kernel(kind), [number], [held])
        return held

    def number(self, value: Value) -> int:
        """The buffer of a value in row-major order."""
        if value not in self._numbers:
            draft = Draft(self, value.instruction)
            draft.row_major(value)
            self._commit(draft)
        return self._numbers[value]

    def is_weight(self, value: Value) -> bool:
        """Whether a value is the same in every run."""
        number = self._numbers.get(value)
        return number is not None and self.buffers[number].kind in ("weight", "prepared")

    def held(self, value: Value, made: Mapping[Value, int]) -> int | None:
        """The buffer of a value in row-major order, where there is one, here or in what a draft `made`."""
        return made.get(value, self._numbers.get(value))

    def images(self, value: Value, made: Mapping[Value, list[Image]]) -> list[Image]:
        """The blocked forms of a value, here and in what a draft `made`."""
        return [*self._images.get(value, []), *made.get(value, [])]

    def wanted(self, value: Value) -> Blocked | None:
        """The blocked layout that the readers of a value would like; None where none would."""
        return wanted_layout(value, lambda made: self._readers.get(made, []), self._problem)

    # Bodies of control ops: what `control.BodyLowering` asks for

    def body(
        self, module: Module, arguments: Sequence[int], begin: Callable[[], None] | None = None
    ) -> tuple[list[Block], list[int]]:
        """The blocks of a body on these buffers, and the buffers of its results. `begin` adds steps at its start."""
        outside = self._blocks, self._body, set(self.bound), set(self._met)
        self._blocks, self._body = [], []
        self._readers.update(readers_of(module))
        if begin is not None:
            begin()
        for parameter, argument in zip(module.parameters, arguments, strict=True):
            self._numbers[parameter.result()] = self._entered(parameter, argument)
        for instruction in module.instructions:
            self._instruction(instruction)
        results = [self.number(value) for value in module.results]
        blocks = self._closed()
        self._blocks, self._body, self.bound, self._met = outside
        return blocks, results

    def _entered(self, parameter: Instruction, number: int) -> int:
        """An argument as a body sees it: symbols of its own get their values; what kernels may read lies in memory."""
        kind = parameter.types[0]
        self.encoder.type(kind)  # notes its symbols
        self._body += [ShapeStep(name, number, axis) for name, axis in self.new_symbols(kind)]
        if self.buffers[number].kind == "value" and is_numeric(kind):
            held = self.raw_memory(kind)
            self._body.append(CopyStep(number, held))
            return self._unpacked(parameter, kind, held)
        return number

    def block(self, block: Block) -> None:
        """Append a block."""
        self._blocks = [*self._closed(), block]
        self._body = []

    def _closed(self) -> list[Block]:
        """The blocks so far, the steps at hand as the last."""
        return [*self._blocks, StraightBlock(tuple(self._body))] if self._body else self._blocks

    def call(self, instruction: Instruction, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Append a call."""
        draft = Draft(self, instruction)
        draft.call(kernel, reads, writes)
        self._commit(draft)

    def length(self, instruction: Instruction, length: DimLike) -> int:
        """A buffer with a size as an int64."""
        if isinstance(length, int):
            return self.weight(Literal.of(np.asarray(length, np.int64), INT64))
        number = self.room(TensorType(INT64, ()))
        self.call(instruction, length_kernel(length), [], [number])
        return number

    def element(self, instruction: Instruction, turn: Turn, reads: tuple[int, int], write: int) -> None:
        """Append what copies the element of a scan whose turn it is."""
        self.call(instruction, element_kernel(turn), reads, [write])

    def give(self, instruction: Instruction, results: Sequence[int]) -> None:
        """Say where the results of an instruction lie; their sizes give new symbols their values."""
        for value, number in zip(instruction.results, results, strict=True):
            self._numbers[value] = number
            self._body += [ShapeStep(name, number, axis) for name, axis in self.new_symbols(value.type)]

    # Instructions

    def _instruction(self, instruction: Instruction) -> None:
        if isinstance(instruction.op, Constant):
            literal = self.encoder.literal(instruction.op.literal)
            number = self.buffer("weight", instruction.types[0], literal=literal)
            self._numbers[instruction.result()] = self._unpacked(instruction, instruction.types[0], number)
            return
        if checks := check_steps(instruction, self.bound, self._met, self.size):
            self._kernels.setdefault(DEMAND_CHECK.entry, DEMAND_CHECK)
            self._body += checks
        if lower_control(self, instruction):
            return
        if not in_memory(instruction):
            self._evaluate(instruction, [f"{instruction.op.name} has values that are no tensors of known rank"])
            return
        if self._alias(instruction):
            return
        reasons: list[str] = []
        problem = self._problem(instruction)
        for solution in problem.solutions:
            draft = self._attempt(problem, solution, instruction, reasons)
            if draft is not None:
                self._commit(draft)
                return
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
        self._numbers[instruction.result()] = self.view(instruction.types[0], source, 0)
        return True

    def _attempt(
        self, problem: KnownProblem, solution: Solution, instruction: Instruction, reasons: list[str]
    ) -> Draft | None:
        if why := problem.declined(solution):
            reasons.append(f"{solution.name}: {why}")
            return None
        before = len(self.buffers)
        for at_load in (True, False) if is_done_at_load(instruction, self.is_weight) else (False,):
            draft = problem.draft(self, solution, instruction, at_load=at_load)
            if isinstance(draft, Draft) and not (at_load and draft.belongs_to_runs):
                return draft
            self.forget(before)
        reasons.append(f"{solution.name}: {draft}")
        return None

    def _problem(self, instruction: Instruction) -> KnownProblem:
        layouts = tuple(self._layout(operand) for operand in instruction.operands if operand is not None)
        return self._problems.of(instruction, layouts)

    def _layout(self, value: Value) -> Blocked | None:
        """The blocked form of a value in its own axes."""
        own = tuple(range(value.rank))
        return next((image.layout for image in self._images.get(value, []) if image.axes == own), None)

    def _commit(self, draft: Draft) -> None:
        for kernel in draft.kernels:
            self._kernels.setdefault(kernel.entry, kernel)
        self._prepare += draft.before
        self._prepared += draft.made
        self._body += draft.body
        self._numbers.update(draft.numbers)
        for value, images in draft.images.items():
            self._images.setdefault(value, []).extend(images)
        for index, number in draft.results.items():
            value = draft.instruction.result(index)
            if index in draft.layouts:
                own = tuple(range(value.rank))
                self._images.setdefault(value, []).insert(0, Image(own, draft.layouts[index], number))
            else:
                self._numbers[value] = number
            self.new_symbols(value.type)

    def _evaluate(self, instruction: Instruction, reasons: list[str]) -> None:
        line = f"{instruction.source or instruction.op.name}: {'; '.join(reasons)}"
        if self._options.strict:
            raise CompileError(f"no kernel can do this node: {'; '.join(reasons)}", where=instruction.source)
        log.info("host step: %s", line)
        self._host.append(line)
        # What kernels read lies in memory; a size that only this step tells is bound in between.
        results = [
            self.raw_memory(kind) if is_numeric(kind) and not self.undefined(kind) else self.buffer("value", kind)
            for kind in instruction.types
        ]
        operands = tuple(None if operand is None else self._packed(operand) for operand in instruction.operands)
        op = instruction.op
        self._body.append(
            EvaluateStep(op.name, op.version, tuple(results), operands, self.encoder.attributes(op), instruction.source)
        )
        for index, (number, kind) in enumerate(zip(results, instruction.types, strict=True)):
            self._body += [ShapeStep(name, number, axis) for name, axis in self.new_symbols(kind)]
            held = number
            if self.buffers[number].kind == "value" and is_numeric(kind):
                held = self.raw_memory(kind)
                self._body.append(CopyStep(number, held))
            self._numbers[instruction.result(index)] = self._unpacked(instruction, kind, held)
