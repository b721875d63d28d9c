"""Formulas, and what has no derivative but zero."""

from __future__ import annotations

from argosy.ir.module import Value
from argosy.ops.pointwise import Pointwise
from argosy.ops.random import Random
from argosy.rewrite.gradient.derivative import Backward, Gradients, derivative
from argosy.rewrite.gradient.formula_adjoint import adjoint
from argosy.rewrite.gradient.unbroadcast import unbroadcast

__all__: list[str] = []


@derivative(Pointwise)
def pointwise(step: Backward) -> Gradients:
    """The formula of the derivative by each operand, summed over what was broadcast."""
    op = step.op(Pointwise)
    operands = [step.operand(index) for index in range(len(step.instruction.operands))]
    found: list[Value | None] = []
    for index, operand in enumerate(operands):
        try:
            made = adjoint(op.formula, [other.dtype for other in operands], index) if step.wants(index) else None
        except KeyError as error:
            step.refuse(f"it holds {error.args[0]}")
        if made is None:
            found.append(None)
            continue
        gradient = step.gradient
        if made.formula is not None:
            gradient = step.build.pointwise(made.formula, *(operands[place] for place in made.inputs), gradient)
        found.append(unbroadcast(step.build, gradient, operand))
    return found


@derivative(Random)
def random(_: Backward) -> Gradients:
    """Zero: the operand gives the shape alone."""
    return (None,)
