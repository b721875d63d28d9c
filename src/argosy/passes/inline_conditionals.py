"""Conditionals with a known condition: the branch that is taken takes their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.errors import InternalError
from argosy.ir.builder import Builder
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.control import If
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import transform

__all__ = ["InlineConditionals"]


@register_pass
@dataclass(frozen=True, slots=True)
class InlineConditionals:
    """if(true, f, g)(x) = f(x), if(false, f, g)(x) = g(x)."""

    name = "inline_conditionals"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module without conditionals whose condition is known."""
        return transform(module, lambda: _inline, context.namer)


def _inline(build: Builder, instruction: Instruction) -> Sequence[Value] | None:
    op = instruction.op
    condition = instruction.operands[0] if isinstance(op, If) else None
    if not isinstance(op, If) or condition is None or condition.known is None or condition.known.size != 1:
        return None
    captures = instruction.operands[1:]
    split = len(op.then_branch.parameters)
    if condition.known.reshape(-1)[0]:
        return _copy(build, op.then_branch, captures[:split])
    return _copy(build, op.else_branch, captures[split:])


def _copy(build: Builder, body: Module, arguments: Sequence[Value | None]) -> list[Value]:
    """The instructions of a body appended here, with arguments for its parameters; its results."""
    values: dict[Value, Value | None] = {
        parameter.result(): argument for parameter, argument in zip(body.parameters, arguments, strict=True)
    }
    for instruction in body.instructions:
        operands = [None if operand is None else values.get(operand, operand) for operand in instruction.operands]
        kept = build.keep(instruction, operands)
        values.update(zip(instruction.results, kept, strict=True))
    results = [values.get(value, value) for value in body.results]
    present = [value for value in results if value is not None]
    if len(present) != len(results):
        raise InternalError("a branch returns an absent operand")
    return present
