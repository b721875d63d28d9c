"""Runs the passes of a pipeline, and does the housekeeping that no pass need think of.

After each pass that changed something: dead code goes, the module is validated, observers are told. A
pass that fails leaves a reproducer: the module it was given and the command that runs it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from argosy.errors import ArgosyError, CompileError, InternalError
from argosy.ir.module import Module
from argosy.ir.validate import Validator
from argosy.passes.manager.passes import Pass, PassContext, Phase
from argosy.passes.manager.reproducer import write_reproducer
from argosy.rewrite.dead_code import remove_dead_code

__all__ = ["Observer", "PassManager", "Stage"]


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

    `stop_after` names the pass after whose first run to stop; `reproducers` is the folder for modules on
    which a pass failed (None: none are written); `observers` are called after each pass.
    """

    phases: tuple[Phase, ...]
    stop_after: str = ""
    reproducers: Path | None = None
    observers: tuple[Observer, ...] = ()

    def run(self, module: Module, context: PassContext | None = None) -> Module:
        """The module after all passes; itself where none changed it.

        Raises InternalError or CompileError naming the pass, and the reproducer where one was written.
        """
        context = context or PassContext.of(module)
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
        except MemoryError:
            raise
        except Exception as error:
            raise self._failure(step, module, error) from error
        end = time.process_time()
        stage = Stage(number, phase, step.name, module, after, middle - begin, end - middle)
        for observe in self.observers:
            observe(stage)
        return after

    def _failure(self, step: Pass, module: Module, error: Exception) -> ArgosyError:
        """The error to raise where `step` failed on `module`."""
        where = f"pass {step.name}"
        if isinstance(error, ArgosyError) and not isinstance(error, (InternalError, CompileError)):
            return error.at(where)  # the model's fault or the caller's: nothing to reproduce
        hint = error.hint if isinstance(error, ArgosyError) else ""
        if self.reproducers is not None:
            file = write_reproducer(self.reproducers, step.name, module, error)
            hint = f"{hint}\n  " if hint else ""
            hint += f"to see it again: argosy read {file} --apply-pass {step.name}"
        if isinstance(error, ArgosyError):
            kind = type(error)
            return kind(error.what, where=f"{where}: {error.where}" if error.where else where, hint=hint)
        return InternalError(f"{type(error).__name__}: {error}", where=where, hint=hint)
