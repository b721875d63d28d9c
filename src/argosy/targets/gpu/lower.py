"""From a fused module to a Plan and kernels: each instruction by the first solution that can do it.

What no solution can do becomes an `evaluate` step on the host, with the reasons in the log; `--strict` makes that an
error. A kernel that the toolchain refuses is known by its name when the module is lowered again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from argosy.artifact.plan import (
    PlanRecord,
    Step,
)
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64
from argosy.ir.literal import Literal
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.options import CompileOptions
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.sub_byte import pack_kernel, unpack_kernel
from argosy.targets.gpu.codegen.turns import element_kernel, length_kernel
from argosy.targets.gpu.draft import Draft, Place
from argosy.targets.gpu.problem import Problems
from argosy.targets.gpu.solution import Order, Problem, Solution
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.choices import Choice, config_words
from argosy.targets.lowering.control import Turn
from argosy.targets.lowering.demands import check_steps
from argosy.targets.lowering.module_lowering import Arena, ModuleLowering
from argosy.targets.lowering.names import kernel_label
from argosy.targets.lowering.step_work import Places, with_parts, with_work

__all__ = ["SPILLS", "LoweredModule", "lower_module"]

SPILLS: Final = (8, 64, math.inf)
"""Registers of a thread that a kernel may keep in memory: of these bounds the first that one of the configs keeps."""


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """The plan, its kernels by entry, the weights by hash, and the host steps with the reasons for each."""

    plan: PlanRecord
    kernels: dict[str, Kernel]
    weights: dict[str, Literal]
    host_steps: tuple[str, ...]
    choices: tuple[Choice, ...]


def lower_module(
    module: Module, arch: GpuArch, options: CompileOptions, refused: Mapping[str, str], spilled: Mapping[str, int]
) -> LoweredModule:
    """Lower a module that has gone through the GPU's pipeline. Raises CompileError for a host step under `strict`.

    `refused` are kernels, by entry, that the toolchain can't compile, with the reason; `spilled` those that keep so
    many registers in memory: of a solution's configs the first that spills little is taken, before all others.
    """
    return _Lowering(module, arch, options, refused, spilled).run()


class _Lowering(ModuleLowering):
    log = logging.getLogger("argosy.gpu")
    arena = Arena("device", 256)

    def __init__(
        self, module: Module, arch: GpuArch, options: CompileOptions, refused: Mapping[str, str],
        spilled: Mapping[str, int],
    ) -> None:  # fmt: skip
        super().__init__(module, options)
        self._arch = arch
        self._refused = refused
        self._spilled = spilled
        self._may_spill = SPILLS[-1]
        self._problems = Problems(arch, options)
        self._places: dict[Value, list[Place]] = {}
        self._kernels: dict[str, Kernel] = {}

    def run(self) -> LoweredModule:
        plan = self.placed(self.plan())
        return LoweredModule(plan, self._kernels, self.encoder.weights, tuple(self.host), tuple(self.choices))

    # Where values lie

    def settle(self, value: Value, number: int) -> None:
        self._places[value] = [Place(number)]

    def number(self, value: Value) -> int:
        for place in self._places[value]:
            if place.order is None:
                return place.number
        draft = Draft(self, value.instruction)
        number = draft.in_order(value, None)
        self._commit(draft)
        return number

    def unpack(self, instruction: Instruction, kind: TensorType, number: int) -> int:
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

    def pack(self, value: Value, number: int, held: int) -> None:
        self._launch(value.instruction, pack_kernel(value.tensor), [number], [held])

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

    # Instructions

    def checks(self, instruction: Instruction) -> Sequence[Step]:
        return check_steps(instruction, self.bound, self.met, self.size)

    def _launch(self, instruction: Instruction, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        draft = Draft(self, instruction)
        draft.launch(kernel, reads, writes)
        self._commit(draft)

    def length(self, instruction: Instruction, length: DimLike) -> int:
        if isinstance(length, int):
            return self.weight(Literal.of(np.asarray(length, np.int64), INT64))
        number = self.room(TensorType(INT64, ()))
        self._launch(instruction, length_kernel(length), [], [number])
        return number

    def element(self, instruction: Instruction, turn: Turn, reads: tuple[int, int], write: int) -> None:
        draft = Draft(self, instruction)
        draft.launch(element_kernel(turn), reads, [write])
        draft.body[-1] = with_parts(draft.body[-1], (turn.elements, None, None), self.size)
        self._commit(draft)

    def lower_op(self, instruction: Instruction) -> Sequence[str] | None:
        reasons: list[str] = []
        problem = self._problem(instruction)
        for solution in self._problems.solutions(instruction):
            draft = self._attempt(solution, problem, instruction, reasons)
            if draft is not None:
                present = [operand for operand in instruction.operands if operand is not None]
                holders = [{p.number for p in (*self._places[o], *draft.found.get(o, ()))} for o in present]
                places = Places(holders, {index: place.number for index, place in draft.results.items()})
                draft.body[:] = with_work(problem.module, present, places, draft.before, draft.body, self.size)
                self._commit(draft)
                kernels = tuple(dict.fromkeys(kernel.entry for kernel in draft.kernels))
                self.choices.append(
                    Choice(instruction, solution.name, draft.config, draft.at_load, tuple(reasons), kernels)
                )
                return None
        return reasons

    def _attempt(
        self, solution: Solution, problem: Problem, instruction: Instruction, reasons: list[str]
    ) -> Draft | None:
        try:
            why = self.why_left_out(solution.name) or solution.applies(problem)
        except DeclinedError as declined:
            why = str(declined)
        if why:
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
            for at_load in (True, False) if self.is_done_at_load(instruction, self.is_weight) else (False,):
                label = kernel_label(problem.module, problem.anchor, solution.name)
                draft = Draft(self, instruction, label, at_load, config_words(config))
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
        wanted = self._wanted(instruction.result()) if len(instruction.types) == 1 else None
        return self._problems.of(instruction, orders, wanted)

    def _wanted(self, value: Value) -> Order:
        if value in self.results:
            return None
        return self._problems.wanted_order(value, self.readers) or self._problems.natural_order(value, self.readers)

    def _commit(self, draft: Draft) -> None:
        for kernel in draft.kernels:
            self._kernels.setdefault(kernel.entry, kernel)
        self.prepare += draft.before
        self.prepared += draft.made
        self.steps += draft.body
        for value, places in draft.found.items():
            self._places[value] += places
        for index, place in draft.results.items():
            value = draft.instruction.result(index)
            self._places[value] = [place]
            self.new_symbols(value.type)
