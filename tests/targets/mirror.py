"""A second copy of `ref` under another name: it proves that variants, plans and prepare modules work end to end.

Unlike `ref` it runs the program after the normalise phase, by a plan in the artifact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from argosy.artifact.artifact import CompiledVariant
from argosy.artifact.evaluate_plan import evaluate_plan
from argosy.artifact.manifest import VariantRecord, variant_key
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.passes import NORMALISE
from argosy.passes.manager import Phase
from argosy.runtime.devices.host import HOST_FAMILY
from argosy.targets.base import TARGETS, ArchInfo, Lowered, Target, Workshop

__all__ = ["MirrorTarget"]

ARCHS = ("mirror1", "mirror2", "mirror1-portable", "mirror2-portable")


@dataclass(frozen=True, slots=True)
class MirrorTarget(Target):
    """Evaluates the normalised program. `revision` makes distinct archs, so that one artifact can hold several.

    A portable one is a fallback for its family; only `host` runs here.
    """

    name: ClassVar[str] = "mirror"
    revision: int = 1
    specialised: tuple[tuple[str, int], ...] = ()
    portable: bool = False
    family: str = HOST_FAMILY

    @classmethod
    def archs(cls) -> Sequence[ArchInfo]:
        return tuple(ArchInfo(name, HOST_FAMILY, "a copy of ref, for tests", "tests only") for name in ARCHS)

    @classmethod
    def for_arch(cls, arch: str) -> Target | None:
        if arch not in ARCHS:
            return None
        number, _, portable = arch.removeprefix("mirror").partition("-")
        return cls(int(number), portable=portable == "portable")

    @property
    def arch(self) -> str:
        return f"mirror{self.revision}{'-portable' if self.portable else ''}"

    def pipeline(self, options: CompileOptions) -> Sequence[Phase]:
        del options
        return (NORMALISE,)

    def lower(self, module: Module, options: CompileOptions, workshop: Workshop) -> Lowered:
        plan, weights = evaluate_plan(module, prepare_now=options.slim)
        record = VariantRecord(
            "",
            self.family,
            self.arch,
            words=f"{self.arch}, {options.precision}",
            numeric=options.numeric(),
            dims=dict(self.specialised),
            toolchain={"numpy": "evaluate"},
            portable=self.portable,
        )
        record = msgspec.structs.replace(record, key=variant_key(record))
        return Lowered(CompiledVariant(record, plan), weights)


if TARGETS.get("mirror") is None:
    TARGETS.add("mirror", MirrorTarget)
