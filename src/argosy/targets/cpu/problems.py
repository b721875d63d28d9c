"""The problems of a module that is lowered. Equal ones are one object: what is found out about it serves them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.ir.module import Instruction, Module, Value
from argosy.ir.signature import module_signature
from argosy.ops.fused import Fused
from argosy.options import CompileOptions
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.draft import Buffers, Draft
from argosy.targets.cpu.layout import Blocked
from argosy.targets.cpu.script import Script
from argosy.targets.cpu.solution import Problem, Solution, solutions_for
from argosy.targets.cpu.subnormals import flushes_subnormals
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.names import kernel_label
from argosy.targets.lowering.values import anchor_of, in_memory, lone_module

__all__ = ["KnownProblem", "Problems", "wanted_layout"]

Layouts = tuple[Blocked | None, ...]


class KnownProblem:
    """A problem with the solutions that may do it, best first, and what they have said and done so far."""

    def __init__(self, problem: Problem, solutions: Sequence[Solution]) -> None:
        self._problem = problem
        self.solutions = solutions
        self._reasons: dict[str, str] = {}
        self._preferred: dict[int, Blocked | None] = {}
        self._keeps: bool | None = None
        self._scripts: dict[tuple[str, bool], Script] = {}

    @property
    def module(self) -> Module:
        """The problem as a module."""
        return self._problem.module

    @property
    def keeps_layout(self) -> bool:
        """Whether blocked results had best lie as the operands do."""
        if self._keeps is None:
            self._keeps = any(solution.keeps_layout(self._problem) for solution in self.solutions)
        return self._keeps

    def declined(self, solution: Solution) -> str:
        """Why a solution can't do it; empty where it can."""
        if solution.name not in self._reasons:
            self._reasons[solution.name] = solution.applies(self._problem)
        return self._reasons[solution.name]

    def preferred(self, index: int) -> Blocked | None:
        """The blocked layout in which the first solution that has one would like parameter `index`."""
        if index not in self._preferred:
            liked = (solution.prefers(self._problem, index) for solution in self.solutions)
            self._preferred[index] = next((layout for layout in liked if layout is not None), None)
        return self._preferred[index]

    def config(self, solution: Solution, *, at_load: bool) -> Any:
        """The configuration in which a solution has written its last draft; None where it has none."""
        script = self._scripts.get((solution.name, at_load))
        return None if script is None else script.config

    def draft(
        self, lowering: Buffers, solution: Solution, instruction: Instruction, *, at_load: bool
    ) -> Draft | DeclinedError:
        """What a solution writes for an instruction that is this problem, or why it can't."""
        problem, count = self._problem, len(lowering.buffers)

        def new() -> Draft:
            label, flushes = kernel_label(problem.module, problem.anchor, solution.name), flushes_subnormals(problem)
            return Draft(lowering, instruction, label, flushes=flushes, at_load=at_load)

        draft, script = new(), self._scripts.get((solution.name, at_load))
        agreed, declined = (False, None) if script is None else script.repeat(draft)
        if not agreed:
            lowering.forget(count)
            draft, script = new(), Script()
            declined = script.write(solution, problem, draft)
            self._scripts[solution.name, at_load] = script
        if declined is not None:
            return declined
        for index in range(len(instruction.types)):
            if index not in draft.results:
                draft.result(index)
        return draft


class Problems:
    """The problems of one module, for a level and options."""

    def __init__(self, arch: CpuArch, options: CompileOptions) -> None:
        self._arch = arch
        self._options = options
        self._modules: dict[object, Module] = {}
        self._own: dict[Instruction, Module] = {}
        self._known: dict[tuple[str, Module, Layouts], KnownProblem] = {}

    def of(self, instruction: Instruction, layouts: Layouts) -> KnownProblem:
        """What the solutions are asked to do for an instruction, whose operands are at hand in these layouts."""
        op = instruction.op
        if instruction not in self._own:
            module = op.module if isinstance(op, Fused) else lone_module(instruction)
            self._own[instruction] = self._modules.setdefault(module_signature(module), module)
        module = self._own[instruction]
        key = (op.name, module, layouts)
        if key not in self._known:
            name, anchor = anchor_of(module) if isinstance(op, Fused) else (op.name, module.instructions[0])
            problem = Problem(module, anchor, self._arch, self._options, layouts)
            self._known[key] = KnownProblem(problem, solutions_for(name))
        return self._known[key]


def wanted_layout(
    value: Value,
    readers: Callable[[Value], Sequence[tuple[Instruction, int]]],
    problem: Callable[[Instruction], KnownProblem],
) -> Blocked | None:
    """The least blocked layout that covers what the readers of a value would like; None where none would.

    Where the results of a reader had best lie as its operands do, the readers of these are asked too.
    """
    found: Blocked | None = None
    asked = [value]
    for made in asked:
        for reader, index in readers(made):
            known = problem(reader) if in_memory(reader) else None
            layout = None if known is None else known.preferred(index)
            if known is None or layout is None or len(layout.halo) != value.rank - 2:
                continue
            found = layout if found is None else found.merged(layout)
            if known.keeps_layout:
                asked += [result for result in reader.results if result not in asked]
    return found
