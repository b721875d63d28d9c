"""From a fused module to a Plan and kernels: each instruction by the first solution that can do it.

What no solution can do becomes an `evaluate` step on the host, with the reasons in the log; `--strict` makes that an
error. A kernel that the toolchain refuses is known by its name when the module is lowered again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

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
from argosy.errors import CompileError
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import Demand
from argosy.ops.fused import Fused
from argosy.options import CompileOptions
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.declined import DeclinedError
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.sub_byte import pack_kernel, unpack_kernel
from argosy.targets.gpu.codegen.turns import element_kernel, length_kernel
from argosy.targets.gpu.draft import Draft, Place
from argosy.targets.gpu.problem import problem_of, solutions_of, wanted_order
from argosy.targets.gpu.solution import Order, Problem, Solution
from argosy.targets.lowering.control import Turn, lower_control
from argosy.targets.lowering.demands import check_steps
from argosy.targets.lowering.load_time import is_done_at_load, without_passing
from argosy.targets.lowering.names import kernel_label
from argosy.targets.lowering.plan_buffers import PlanBuffers
from argosy.targets.lowering.values import in_memory, is_numeric, readers_of

__all__ = ["SPILLS", "LoweredModule", "lower_module"]

log = logging.getLogger("argosy.gpu")
_ALIASES: Final = frozenset({"reshape", "squeeze", "unsqueeze", "bit_cast"})
_ALIGNMENT: Final = 256
SPILLS: Final = (8, 64, math.inf)
"""Registers of a thread that a kernel may keep in memory: of these bounds the first that one of the configs keeps."""


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """The plan, its kernels by entry, the weights by hash, and the host steps with the reasons for each."""

    plan: PlanRecord
    kernels: dict[str, Kernel]
    weights: dict[str, Literal]
    host_steps: tuple[str, ...]


def lower_module(
    module: Module, arch: GpuArch, options: CompileOptions, refused: Mapping[str, str], spilled: Mapping[str, int]
) -> LoweredModule:
    """Lower a module that has gone through the GPU's pipeline. Raises CompileError for a host step under `strict`.

    `refused` are kernels, by entry, that the toolchain can't compile, with the reason; `spilled` those that keep so
    many registers in memory: of a solution's configs the first that spills little is taken, before all others.
    """
    return _Lowering(module, arch, options, refused, spilled).run()


class _Lowering(PlanBuffers):
    def __init__(
        self, module: Module, arch: GpuArch, options: CompileOptions, refused: Mapping[str, str],
        spilled: Mapping[str, int],
    ) -> None:  # fmt: skip
        super().__init__()
        self._module = module
        self._arch = arch
        self._options = options
        self._refused = refused
        self._spilled = spilled
        self._may_spill = SPILLS[-1]
        self._places: dict[Value, list[Place]] = {}
        self._readers = readers_of(module)
        self._results = frozenset(module.results)
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
        given: list[tuple[Instruction, int]] = []
        shapes: list[ShapeEntry] = []
        for place, parameter in enumerate(module.parameters):
            kind = parameter.types[0]
            number = self.buffer("input", kind)
            self._places[parameter.result()] = [Place(number)]
            given.append((parameter, number))
            inputs.append(BindingRecord(parameter.names[0], number))
            shapes += [InputDim(name, place, axis) for name, axis in self.new_symbols(kind)]
        self.early = frozenset(self.bound)
        for parameter, number in given:
            self._places[parameter.result()] = [Place(self._unpacked(parameter, parameter.types[0], number))]
        for instruction in module.instructions:
            self._instruction(instruction)
        outputs = tuple(
            BindingRecord(name, self._packed(value))
            for name, value in zip(module.result_names, module.results, strict=True)
        )
        body = self._closed()
        buffers, prepared = without_passing(self.buffers, self._prepared, body, [output.buffer for output in outputs])
        record = PrepareRecord("weights", prepared, (StraightBlock(tuple(self._prepare)),))
        plan = PlanRecord(
            tuple(inputs),
            outputs,
            tuple(buffers),
            tuple(body),
            symbols=encode_symbols(self.encoder.symbols.values()),
            shapes=tuple(shapes),
            arenas=(ArenaRecord("device", _ALIGNMENT),),
            prepare=(record,) if self._prepare else (),
            modules=self.encoder.modules,
        )
        return LoweredModule(plan, self._kernels, self.encoder.weights, tuple(self._host))

    # Where values lie

    def number(self, value: Value) -> int:
        """The buffer of a value in row-major order."""
        for place in self._places[value]:
            if place.order is None:
                return place.number
        draft = Draft(self, value.instruction)
        number = draft.in_order(value, None)
        self._commit(draft)
        return number

    def _unpacked(self, instruction: Instruction, kind: Type, number: int) -> int:
        """A buffer that may hold several elements to a byte with one to a byte."""
        if not isinstance(kind, TensorType) or not kind.dtype.is_packed or not is_numeric(kind):
            return number
        if self.buffers[number].kind == "weight":
            draft = Draft(self, instruction, at_load=True)
            held = self.kept(kind)
            draft.made.append(held)
        else:
            draft = Draft(self, instruction)
            held = self.memory(kind)
        draft.launch(unpack_kernel(kind), [number], [held])
        self._commit(draft)
        return held

    def _packed(self, value: Value) -> int:
        """The buffer of a value as the outside sees it: several elements to a byte where they are that short."""
        number, kind = self.number(value), value.type
        if not isinstance(kind, TensorType) or not kind.dtype.is_packed or not is_numeric(kind):
            return number
        held = self.raw_memory(kind)
        self._launch(value.instruction, pack_kernel(kind), [number], [held])
        return held

    def places(self, value: Value) -> Sequence[Place]:
        """Where a value lies."""
        return self._places[value]

    def is_weight(self, value: Value) -> bool:
        """Whether a value is the same in every run."""
        places = self._places.get(value, [])
        return any(self.buffers[place.number].kind in ("weight", "prepared") for place in places[:1])

    @property
    def programmatic(self) -> bool:
        """Whether the device lets a kernel start before the one before it has ended."""
        return self._arch.has("programmatic_launch")

    def is_refused(self, kernel: Kernel) -> str:
        """Why the toolchain refused a kernel before."""
        spilled = self._spilled.get(kernel.entry, 0)
        why = f"it keeps {spilled} registers in memory" if spilled > self._may_spill else ""
        return self._refused.get(kernel.entry, why)

    # Bodies of control ops: what `control.BodyLowering` asks for

    def body(
        self, module: Module, arguments: Sequence[int], begin: Callable[[], None] | None = None
    ) -> tuple[list[Block], list[int]]:
        """The blocks of a body on these buffers, and the buffers of its results. `begin` adds steps at its start."""
        outside = self._blocks, self._body, set(self.bound), self._results, set(self._met)
        self._blocks, self._body, self._results = [], [], frozenset(module.results)
        self._readers.update(readers_of(module))
        if begin is not None:
            begin()
        for parameter, number in zip(module.parameters, arguments, strict=True):
            self._places[parameter.result()] = [Place(self._entered(parameter, number))]
        for instruction in module.instructions:
            self._instruction(instruction)
        results = [self.number(value) for value in module.results]
        blocks = self._closed()
        self._blocks, self._body, self.bound, self._results, self._met = outside
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

    def _launch(self, instruction: Instruction, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        draft = Draft(self, instruction)
        draft.launch(kernel, reads, writes)
        self._commit(draft)

    def length(self, instruction: Instruction, length: DimLike) -> int:
        """A buffer with a size as an int64."""
        if isinstance(length, int):
            return self.weight(Literal.of(np.asarray(length, np.int64), INT64))
        number = self.room(TensorType(INT64, ()))
        self._launch(instruction, length_kernel(length), [], [number])
        return number

    def element(self, instruction: Instruction, turn: Turn, reads: tuple[int, int], write: int) -> None:
        """Append what copies the element of a scan whose turn it is."""
        self._launch(instruction, element_kernel(turn), reads, [write])

    def give(self, instruction: Instruction, results: Sequence[int]) -> None:
        """Say where the results of an instruction lie; their sizes give new symbols their values."""
        for value, number in zip(instruction.results, results, strict=True):
            self._places[value] = [Place(number)]
            self._body += [ShapeStep(name, number, axis) for name, axis in self.new_symbols(value.type)]

    # Instructions

    def _instruction(self, instruction: Instruction) -> None:
        if isinstance(instruction.op, Constant):
            kind = instruction.types[0]
            number = self.buffer("weight", kind, literal=self.encoder.literal(instruction.op.literal))
            self._places[instruction.result()] = [Place(self._unpacked(instruction, kind, number))]
            return
        self._body += check_steps(instruction, self.bound, self._met, self.size)
        if lower_control(self, instruction):
            return
        if not in_memory(instruction):
            self._evaluate(instruction, [f"{instruction.op.name} has values that are no tensors of known rank"])
            return
        if self._alias(instruction):
            return
        reasons: list[str] = []
        for solution in solutions_of(instruction):
            draft = self._attempt(solution, instruction, reasons)
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
        self._places[instruction.result()] = [Place(self.view(instruction.types[0], source, 0))]
        return True

    def _attempt(self, solution: Solution, instruction: Instruction, reasons: list[str]) -> Draft | None:
        problem = self._problem(instruction)
        if why := solution.applies(problem):
            reasons.append(f"{solution.name}: {why}")
            return None
        for bound in SPILLS if self._spilled else SPILLS[-1:]:
            self._may_spill = bound
            draft = self._first_config(solution, problem, instruction, reasons)
            if draft is not None:
                break
        self._may_spill = SPILLS[-1]
        return draft

    def _first_config(
        self, solution: Solution, problem: Problem, instruction: Instruction, reasons: list[str]
    ) -> Draft | None:
        """The steps of the first config that the toolchain compiles, of those that don't spill too much."""
        before, said = len(self.buffers), len(reasons)
        for config in solution.configs(problem):
            for at_load in (True, False) if is_done_at_load(instruction, self.is_weight) else (False,):
                draft = Draft(self, instruction, kernel_label(problem.module, problem.anchor, solution.name), at_load)
                try:
                    solution.lower(problem, config, draft)
                except DeclinedError as declined:
                    self.forget(before)
                    reasons[said:] = [f"{solution.name}: {declined}"]
                    continue
                if unknown := [name for index in range(len(instruction.types)) for name, _ in draft.undefined(index)]:
                    self.forget(before)
                    reasons[said:] = [f"{solution.name}: its size {unknown[0]} depends on data"]
                    break
                if not (at_load and draft.belongs_to_runs):
                    return draft
                self.forget(before)
        return None

    def _problem(self, instruction: Instruction) -> Problem:
        orders = tuple(self._places[operand][0].order for operand in instruction.operands if operand is not None)
        problem = problem_of(instruction, self._arch, self._options, orders)
        return replace(problem, order=self._wanted(instruction.result())) if len(instruction.types) == 1 else problem

    def _wanted(self, value: Value) -> Order:
        if value in self._results:
            return None
        return wanted_order(value, self._readers, self._arch, self._options)

    def _commit(self, draft: Draft) -> None:
        for kernel in draft.kernels:
            self._kernels.setdefault(kernel.entry, kernel)
        self._prepare += draft.before
        self._prepared += draft.made
        self._body += draft.body
        for value, places in draft.found.items():
            self._places[value] += places
        for index, place in draft.results.items():
            value = draft.instruction.result(index)
            self._places[value] = [place]
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
            self._places[instruction.result(index)] = [Place(self._unpacked(instruction, kind, held))]
