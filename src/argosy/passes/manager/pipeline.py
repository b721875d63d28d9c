"""Runs the passes of a pipeline, and does the housekeeping that no pass need think of.

After each pass that changed something: dead code goes, the module is validated, observers are told. The error of a
pass that fails has the module that it was given as evidence, for a reproducer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from argosy.errors import ArgosyError, BranchError, CompileError, InternalError, ModelError
from argosy.ir.module import Module
from argosy.ir.program import Program
from argosy.ir.program_files import program_files
from argosy.ir.validate import Validator
from argosy.passes.manager.passes import Pass, PassContext, Phase
from argosy.rewrite.dead_code import remove_dead_code
from argosy.rewrite.trace import Trace

__all__ = ["Observer", "PassManager", "Stage"]

_BINDS: Final = "bind_dims"
"""The pass that does what the caller asks: sizes that contradict the model are the caller's."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One pass that has run: what it was given, what came out, and the CPU seconds it took.

    `checking` are the seconds that validation and dead-code removal took after it.
    """

    number: int
    phase: str
    name: str
    before: Module
    after: Module
    seconds: float
    checking: float

    @property
    def changed(self) -> bool:
        """Whether the pass changed anything."""
        return self.after is not self.before


Observer: TypeAlias = Callable[[Stage], None]


@dataclass(frozen=True, slots=True)
class PassManager:
    """A pipeline: phases in order.

    `stop_after` names the pass after whose first run to stop; `observers` are called after each pass. `without_rules`
    are rules that no pass applies, where the run gets no context that says so itself.
    """

    phases: tuple[Phase, ...]
    stop_after: str = ""
    observers: tuple[Observer, ...] = ()
    without_rules: frozenset[str] = frozenset()

    def run(self, module: Module, context: PassContext | None = None) -> Module:
        """The module after all passes; itself where none changed it.

        Raises InternalError or CompileError naming the pass, with the module that it was given as evidence.
        """
        context = context or PassContext.of(module, Trace(self.without_rules))
        validator = Validator()
        validator.check(module)
        module = remove_dead_code(module, context.namer)
        number = 0
        for phase in self.phases:
            for _ in range(phase.rounds):
                before = module
                for step in phase.passes:
                    number += 1
                    module = self._step(number, phase.name, step, module, context, validator)
                    if step.name == self.stop_after:
                        return module
                if module is before:
                    break
        return module

    def _step(
        self, number: int, phase: str, step: Pass, module: Module, context: PassContext, validator: Validator
    ) -> Module:
        begin = time.process_time()
        try:
            after = step.run(module, context)
            middle = time.process_time()
            if after is not module:
                after = remove_dead_code(after, context.namer)
                validator.check(after)
        except (MemoryError, OSError):  # the machine's fault
            raise
        except Exception as error:
            raise self._failure(step, module, error) from error
        end = time.process_time()
        stage = Stage(number, phase, step.name, module, after, middle - begin, end - middle)
        for observe in self.observers:
            observe(stage)
        return after

    def _failure(self, step: Pass, module: Module, error: Exception) -> ArgosyError:
        """The error to raise where `step` failed on `module`.

        What the model or the caller did is theirs. But sizes apart, a model that was read has shown what it can do
        wrong: what a pass finds wrong with it is left as evidence, since it may be the pass.
        """
        where = f"pass {step.name}"
        evidence = partial(program_files, f"before-{step.name}", Program(module))
        if isinstance(error, ModelError) and not isinstance(error, BranchError) and step.name != _BINDS:
            return error.at(where).attach(step.name, evidence)
        if isinstance(error, ArgosyError) and not isinstance(error, (InternalError, CompileError)):
            return error.at(where)
        if isinstance(error, ArgosyError):
            told: ArgosyError = type(error)(
                error.what, where=f"{where}: {error.where}" if error.where else where, hint=error.hint
            )
        else:
            told = InternalError(f"{type(error).__name__}: {error}", where=where)
        return told.attach(step.name, evidence)
