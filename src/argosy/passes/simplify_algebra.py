"""Algebra on numbers: identities that hold for every bit pattern."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir.module import Module
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.engine import rewrite
from argosy.rewrite.rules import algebra, conversions

__all__ = ["SimplifyAlgebra"]

_RULES = algebra.RULES + conversions.RULES


@register_pass
@dataclass(frozen=True, slots=True)
class SimplifyAlgebra:
    """Apply the rules of `rewrite.rules.algebra` and `rewrite.rules.conversions`."""

    name = "simplify_algebra"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with simpler arithmetic and the same bits."""
        return rewrite(module, _RULES, namer=context.namer, trace=context.trace)
