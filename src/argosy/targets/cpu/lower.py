"""From a fused module to a Plan and kernels: each instruction by the first solution that can do it.

What no solution can do becomes an `evaluate` step on the host, with the reasons in the log; `--strict` makes
that an error.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from argosy.artifact.plan import (
    CallStep,
    CodeRecord,
    PlanRecord,
    Step,
    steps_in,
)
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64, UINT8
from argosy.ir.literal import Literal
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
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
from argosy.targets.lowering.choices import Choice, config_words
from argosy.targets.lowering.control import Turn
from argosy.targets.lowering.module_lowering import Arena, ModuleLowering
from argosy.targets.lowering.step_work import Places, with_parts, with_work

__all__ = ["LoweredModule", "lower_module"]


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """The plan, its kernels by entry, weights by hash, host steps with the reasons, and how instructions are done."""

    plan: PlanRecord
    kernels: dict[str, Kernel]
    weights: dict[str, Literal]
    host_steps: tuple[str, ...]
    choices: tuple[Choice, ...]


def lower_module(module: Module, arch: CpuArch, options: CompileOptions) -> LoweredModule:
    """Lower a module that has gone through the CPU's pipeline. Raises CompileError for a host step under `strict`."""
    return _Lowering(module, arch, options).run()


class _Lowering(ModuleLowering):
    log = logging.getLogger("argosy.cpu")
    arena = Arena("host", 64)

    def __init__(self, module: Module, arch: CpuArch, options: CompileOptions) -> None:
        super().__init__(module, options)
        self._problems = Problems(arch, options)
        self._numbers: dict[Value, int] = {}
        self._images: dict[Value, list[Image]] = {}
        self._kernels: dict[str, Kernel] = {}

    def run(self) -> LoweredModule:
        plan = self.plan()
        if self._kernels:
            plan = replace(plan, code=(CodeRecord("code/kernels.so", "elf"),))
        left_out = self.options.leaves_out("stage")
        if "copies" not in left_out:
            plan = avoid_copies(plan, self._kernels, self)
            self._kernels.setdefault(BYTE_COPY.entry, BYTE_COPY)
        if "in_place" not in left_out:
            plan = write_in_place(plan, self._kernels)
        plan = self.placed(plan)
        return LoweredModule(plan, self._called(plan), self.encoder.weights, tuple(self.host), tuple(self.choices))

    def _called(self, plan: PlanRecord) -> dict[str, Kernel]:
        """The kernels that a plan calls."""
        bodies = (plan.body, *(module.body for module in plan.prepare))
        entries = {step.entry for body in bodies for step in steps_in(body) if isinstance(step, CallStep)}
        return {entry: kernel for entry, kernel in self._kernels.items() if entry in entries}

    # Where values lie

    def settle(self, value: Value, number: int) -> None:
        self._numbers[value] = number

    def unpack(self, instruction: Instruction, kind: TensorType, number: int) -> int:
        draft = Draft(self, instruction)
        if self.buffers[number].kind == "weight":
            held = draft.prepared(unpack_kernel(kind), [number], kind.with_dtype(UINT8))
        else:
            held = self.memory(kind)
            draft.call(unpack_kernel(kind), [number], [held])
        self._commit(draft)
        return held

    def pack(self, value: Value, number: int, held: int) -> None:
        self.call(value.instruction, pack_kernel(value.tensor), [number], [held])

    def number(self, value: Value) -> int:
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
        return wanted_layout(value, lambda made: self.readers.get(made, []), self._problem)

    # Instructions

    def checks(self, instruction: Instruction) -> Sequence[Step]:
        found = check_steps(instruction, self.bound, self.met, self.size)
        if found:
            self._kernels.setdefault(DEMAND_CHECK.entry, DEMAND_CHECK)
        return found

    def call(self, instruction: Instruction, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Append a call."""
        draft = Draft(self, instruction)
        draft.call(kernel, reads, writes)
        self._commit(draft)

    def length(self, instruction: Instruction, length: DimLike) -> int:
        if isinstance(length, int):
            return self.weight(Literal.of(np.asarray(length, np.int64), INT64))
        number = self.room(TensorType(INT64, ()))
        self.call(instruction, length_kernel(length), [], [number])
        return number

    def element(self, instruction: Instruction, turn: Turn, reads: tuple[int, int], write: int) -> None:
        draft = Draft(self, instruction)
        draft.call(element_kernel(turn), reads, [write])
        draft.body[-1] = with_parts(draft.body[-1], (turn.elements, None, None), self.size)
        self._commit(draft)

    def lower_op(self, instruction: Instruction) -> Sequence[str] | None:
        reasons: list[str] = []
        problem = self._problem(instruction)
        for solution in problem.solutions:
            draft = self._attempt(problem, solution, instruction, reasons)
            if draft is not None:
                present = [operand for operand in instruction.operands if operand is not None]
                holders = [self._holders(operand, draft) for operand in present]
                places = Places(holders, draft.results)
                draft.body = with_work(problem.module, present, places, draft.before, draft.body, self.size)
                self._commit(draft)
                config = config_words(problem.config(solution, at_load=draft.at_load))
                kernels = tuple(dict.fromkeys(kernel.entry for kernel in draft.kernels))
                self.choices.append(Choice(instruction, solution.name, config, draft.at_load, tuple(reasons), kernels))
                return None
        return reasons

    def _attempt(
        self, problem: KnownProblem, solution: Solution, instruction: Instruction, reasons: list[str]
    ) -> Draft | None:
        if why := self.why_left_out(solution.name) or problem.declined(solution):
            reasons.append(f"{solution.name}: {why}")
            return None
        before = len(self.buffers)
        for at_load in (True, False) if self.is_done_at_load(instruction, self.is_weight) else (False,):
            draft = problem.draft(self, solution, instruction, at_load=at_load)
            if isinstance(draft, Draft) and not (at_load and draft.belongs_to_runs):
                return draft
            self.forget(before)
        reasons.append(f"{solution.name}: {draft}")
        return None

    def _holders(self, value: Value, draft: Draft) -> set[int]:
        """The buffers that hold a value, in any layout."""
        number = self.held(value, draft.numbers)
        images = {image.number for image in self.images(value, draft.images)}
        return images if number is None else {number, *images}

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
        self.prepare += draft.before
        self.prepared += draft.made
        self.steps += draft.body
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
