"""`ref`: evaluates the program as it was imported. The oracle, and the last fallback of every artifact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from argosy.errors import InternalError
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.passes.manager import Phase
from argosy.targets.base import TARGETS, ArchInfo, Lowered, Target, Workshop

__all__ = ["RefTarget"]


@dataclass(frozen=True, slots=True)
class RefTarget(Target):
    """The reference: no passes, no code."""

    name: ClassVar[str] = "ref"

    @classmethod
    def archs(cls) -> Sequence[ArchInfo]:
        return (ArchInfo("ref", "ref", "numpy, on any machine", "run on hardware: every test, on the CPU of CI"),)

    @classmethod
    def for_arch(cls, arch: str) -> Target | None:
        return cls() if arch == "ref" else None

    @property
    def arch(self) -> str:
        return "ref"

    @property
    def needs_variant(self) -> bool:
        return False

    def context(self) -> None:
        """`ref` runs in this process; there is no device to open."""

    def pipeline(self, options: CompileOptions) -> Sequence[Phase]:
        return ()

    def lower(self, module: Module, options: CompileOptions, workshop: Workshop) -> Lowered:
        raise InternalError("the reference has no code")


TARGETS.add("ref", RefTarget)
