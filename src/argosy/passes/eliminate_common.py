"""Common subexpressions: what is computed twice from the same operands is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir.builder import Builder
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.signature import op_signature
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import Change, transform

__all__ = ["EliminateCommon"]


@register_pass
@dataclass(frozen=True, slots=True)
class EliminateCommon:
    """f(x), f(x) = f(x) once, for pure f.

    Constants are equal by content. The first instruction stays and serves the readers of the others; the
    data-dependent symbols of the others give way to those of the first.
    """

    name = "eliminate_common"

    def run(self, module: Module, context: PassContext) -> Module:
        return transform(module, _sharing, context.namer)


def _sharing() -> Change:
    """A function that remembers what it has seen in one module."""
    seen: dict[object, Instruction] = {}

    def share(_: Builder, instruction: Instruction) -> Sequence[Value] | None:
        op = instruction.op
        if not op.pure or op.modules():
            return None  # bodies are compared by identity: nothing to find
        first = seen.setdefault((op_signature(op), instruction.operands), instruction)
        return None if first is instruction else first.results

    return share
