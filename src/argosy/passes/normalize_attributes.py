"""One form for each op: what is known of steering operands becomes attributes, axes count from the front."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir.module import Module
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.engine import rewrite
from argosy.rewrite.rules import attributes

__all__ = ["NormalizeAttributes"]


@register_pass
@dataclass(frozen=True, slots=True)
class NormalizeAttributes:
    """Apply the rules of `rewrite.rules.attributes`."""

    name = "normalize_attributes"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with every op in its one form."""
        return rewrite(module, attributes.RULES, namer=context.namer, trace=context.trace)
