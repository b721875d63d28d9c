"""Bind or bound symbols: a program for every size becomes one for some sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argosy.ir.dim import DimLike
from argosy.ir.module import Module
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import Rebuild

__all__ = ["BindDims"]


@register_pass
@dataclass(frozen=True, slots=True)
class BindDims:
    """Replace symbols by numbers (`N` = 4) or by symbols with other bounds (`N` in 1..512).

    `values` are pairs of a symbol's name and the dim that takes its place. All types are inferred again, so
    that whatever follows from the sizes is known afterwards. Names that the module lacks are passed over.
    """

    name = "bind_dims"
    values: tuple[tuple[str, DimLike], ...] = ()

    @staticmethod
    def of(values: Mapping[str, DimLike]) -> BindDims:
        """The pass that puts `values` in place of the symbols called so."""
        return BindDims(tuple(values.items()))

    def run(self, module: Module, context: PassContext) -> Module:
        """The module over the given sizes. Raises ModelError where they contradict it."""
        return Rebuild(module, context.namer, dict(self.values)).run()
