"""Conditionals with a known condition: the branch that is taken takes their place.

Every walk that rebuilds a module does so where it meets one, since the branch that is not taken may contradict
the sizes that made the condition known. This pass is a walk that does nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir.module import Module
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import Rebuild

__all__ = ["InlineConditionals"]


@register_pass
@dataclass(frozen=True, slots=True)
class InlineConditionals:
    """if(true, f, g)(x) = f(x), if(false, f, g)(x) = g(x)."""

    name = "inline_conditionals"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module without conditionals whose condition is known."""
        return Rebuild(module, context.namer).run()
