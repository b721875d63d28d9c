"""Views: reshapes, transposes, broadcasts, slices and joins that undo, repeat or absorb each other.

Sequences are views, too, where a model makes them and takes them apart: of splits and joins, mostly.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir.module import Module
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.engine import rewrite
from argosy.rewrite.rules import parts, sequences, views

__all__ = ["SimplifyViews"]

_RULES = views.RULES + parts.RULES + sequences.RULES


@register_pass
@dataclass(frozen=True, slots=True)
class SimplifyViews:
    """Apply the rules of `rewrite.rules.views`, `parts` and `sequences`."""

    name = "simplify_views"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with fewer views."""
        return rewrite(module, _RULES, namer=context.namer, trace=context.trace)
