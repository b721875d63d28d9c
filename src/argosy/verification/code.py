"""Code for parts of a program, compiled as that of an artifact was, and run on the same device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from argosy.artifact.artifact import Artifact
from argosy.artifact.manifest import VariantRecord
from argosy.compiler import artifact_of_module, compile_program, compile_variants
from argosy.ir.module import Module
from argosy.ir.program import Program
from argosy.options import CompileOptions
from argosy.passes.manager import Observer, PassManager
from argosy.runtime.session import Session
from argosy.targets.base import Lowered, Target, find_maker
from argosy.targets.lowering.choices import Choice
from argosy.verification.cutting import Cut

__all__ = ["Code"]


class Code:
    """How code is made and run. `compiles` counts how often it was made."""

    is_kept: ClassVar[bool] = False
    """Whether it is made on one machine and run on another, so that what is made doesn't depend on what a run shows."""

    def __init__(self, target: Target, options: CompileOptions, device: str | None = None) -> None:
        self.target = target
        self.options = options
        self.compiles = 0
        self._device = device

    @staticmethod
    def of(variant: VariantRecord, device: str | None = None) -> Code:
        """Code as a variant's. Raises UsageError where this version doesn't make it."""
        options = CompileOptions.of_numeric(variant.numeric, reproducers=False)  # a part that fails is none by itself
        return Code(find_maker(variant), options, device or None)

    def leaving_out(self, without: Sequence[str]) -> Code:
        """The same, without some more parts of the compiler. It counts on."""
        found = Code(self.target, replace(self.options, without=(*self.options.without, *without)), self._device)
        found.compiles = self.compiles
        return found

    def run(self, part: Cut, *, without: tuple[str, ...] = (), threads: int | None = None) -> dict[str, Any]:
        """The outputs of a part on its inputs, compiled `without` some parts of the compiler."""
        options = replace(self.options, without=(*self.options.without, *without))
        self.compiles += 1
        return self._outputs(compile_program(part.program, (self.target,), options), part, threads)

    def run_part(self, part: Cut) -> dict[str, Any]:
        """The outputs of a part, on its inputs."""
        return self.run(part)

    def run_lowered(self, part: Cut) -> dict[str, Any]:
        """The outputs of a part that has gone through the passes."""
        self.compiles += 1
        return self._outputs(artifact_of_module(part.program, self.target, self.options)[0], part)

    def lowered(self, program: Program) -> Lowered:
        """What the target makes of a program that has gone through the passes."""
        self.compiles += 1
        return artifact_of_module(program, self.target, self.options)[1]

    def choices(self, program: Program, without: tuple[str, ...] = ()) -> Sequence[Choice]:
        """How each instruction of a program is done, `without` some parts of the compiler."""
        options = replace(self.options, without=(*self.options.without, *without))
        self.compiles += 1
        (lowered,) = compile_variants(program, [(self.target, {})], options)
        return lowered.choices

    def piped(self, module: Module, *observers: Observer) -> Module:
        """A module after the passes."""
        phases, without = self.target.phases(self.options), self.options.leaves_out("rule")
        return PassManager(phases, observers=observers, without_rules=without).run(module)

    def _outputs(self, artifact: Artifact, part: Cut, threads: int | None = None) -> dict[str, Any]:
        session = Session(artifact, device=self._device, threads=threads, checked=True)
        return session.observe(part.inputs, None, number=part.number)
