"""`cpu`: generated C, compiled for a CPU level on any machine."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from argosy.artifact.artifact import CompiledVariant
from argosy.artifact.manifest import VariantRecord, variant_key
from argosy.drivers.machine import Machine
from argosy.errors import UsageError
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.passes.manager import Phase
from argosy.targets.base import TARGETS, ArchInfo, Lowered, Outline, Target, Workshop
from argosy.targets.cpu.arch import ARCHS, CpuArch, best_level, find_cpu, native
from argosy.targets.cpu.lower import lower_module
from argosy.targets.cpu.pipeline import pipeline
from argosy.targets.cpu.solution import SOLUTIONS
from argosy.targets.cpu.sources import variant_sources
from argosy.toolchains.zig import compile_objects, link, zig_version

__all__ = ["CpuTarget"]

_TIERS = {
    "x86_64": "run on hardware: the conformance suite and real models, where CI's CPU has the level",
    "aarch64": "emulated: cases of the suite and a whole model under qemu-user in CI",
}


log = logging.getLogger("argosy.compile")


@dataclass(frozen=True, slots=True)
class CpuTarget(Target):
    """One CPU level. `row` is found by `level`, or is that of this machine where none is named."""

    name: ClassVar[str] = "cpu"
    level: str = field(default="", compare=False)
    row: CpuArch = field(init=False, repr=False)

    def __post_init__(self) -> None:
        row = find_cpu(self.level) if self.level else native()
        if row is None:
            raise UsageError(f"there is no CPU level {self.level!r}", hint=f"known: {', '.join(ARCHS)}")
        object.__setattr__(self, "row", row)

    @classmethod
    def archs(cls) -> Sequence[ArchInfo]:
        return tuple(ArchInfo(row.name, row.family, row.words, _tier(row)) for row in ARCHS.values())

    @classmethod
    def for_arch(cls, arch: str) -> Target | None:
        if arch == "cpu":
            return cls()
        return cls(arch) if find_cpu(arch) is not None else None

    @classmethod
    def for_machine(cls, machine: Machine) -> Iterator[Target]:
        if importlib.util.find_spec("ziglang") is None:
            log.warning("the package ziglang (extra cpu) is not installed: on its CPU the artifact runs on ref")
            return
        best = best_level(machine.system, machine.isa, machine.features)
        if best is None:
            log.warning("a CPU (%s, %s) gets no code: no level of ours fits it", machine.isa, machine.system)
        else:
            yield cls(best.name)

    @property
    def arch(self) -> str:
        return self.row.name

    @property
    def is_cross_compile(self) -> bool:
        return bool(self.level)

    def pipeline(self, options: CompileOptions) -> Sequence[Phase]:
        return pipeline(options, self.row)

    def lower(self, module: Module, options: CompileOptions, workshop: Workshop) -> Lowered:
        row = self.row
        lowered = lower_module(module, row, options)
        entries: dict[str, bytes] = {}
        if lowered.kernels:
            sources = variant_sources(lowered.kernels.values(), options)
            cached = "cache" not in options.leaves_out("stage")
            objects = compile_objects(sources, row.code, jobs=options.jobs, cached=cached)
            entries["code/kernels.so"] = link(objects, row.code)
        record = VariantRecord(
            "",
            row.family,
            row.name,
            words=f"{row.name}, {options.precision}",
            system=row.system,
            numeric=options.numeric(),
            toolchain={"zig": zig_version()},
            portable=row.portable,
            requirements=row.requirements(),
        )
        record = msgspec.structs.replace(record, key=variant_key(record))
        variant = CompiledVariant(record, lowered.plan, entries)
        return Lowered(variant, lowered.weights, lowered.host_steps, lowered.choices)

    def outline(self, module: Module, options: CompileOptions) -> Outline:
        lowered = lower_module(module, self.row, options)
        return Outline(lowered.plan, lowered.choices)

    def solution_names(self) -> Sequence[str]:
        return [name for name, _ in SOLUTIONS.items()]


def _tier(row: CpuArch) -> str:
    return _TIERS[row.isa] if row.system == "linux" else "compiled and checked in structure only"


TARGETS.add("cpu", CpuTarget)
