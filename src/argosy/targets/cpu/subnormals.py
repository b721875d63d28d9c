"""Which ops may take subnormal numbers as zero.

Weights that training drove towards zero end as subnormal numbers: whole channels of some models. Processors multiply
such numbers a hundred times more slowly than others, for sums that differ by less than 1e-37. So products
and convolutions take them as zero, unless `--accuracy exact` asks otherwise, or what is computed with their
results in the same kernel could tell such a number from zero.
"""

from __future__ import annotations

from typing import Final

from argosy.ir.dtype import FLOAT32
from argosy.ir.formula import Constant, Formula
from argosy.ir.module import Instruction
from argosy.ops.pointwise import Pointwise
from argosy.targets.cpu.solution import Problem

__all__ = ["flushes_subnormals"]

_PRODUCTS: Final = frozenset({"dot", "conv", "conv_transpose"})
_SMOOTH: Final = frozenset(
    {"add", "sub", "mul", "neg", "abs", "min", "max", "exp", "expm1", "tanh", "erf", "round", "convert"}
)
"""Primitives by which results for subnormal numbers and for zero differ no more than the numbers themselves."""

_LEAST_DIVISOR: Final = 1e-6


def flushes_subnormals(problem: Problem) -> bool:
    """Whether the kernels of a problem take subnormal numbers as zero."""
    anchor = problem.anchor
    if anchor is None or anchor.op.name not in _PRODUCTS or problem.options.accuracy == "exact":
        return False
    return anchor.result().dtype.compute is FLOAT32 and all(map(_is_smooth, problem.module.instructions))


def _is_smooth(instruction: Instruction) -> bool:
    """Whether an instruction takes neighbours of zero to neighbours of what it takes zero to."""
    op = instruction.op
    if not isinstance(op, Pointwise):
        return True
    formula = op.formula
    return all(
        step.primitive in _SMOOTH or (step.primitive == "div" and _is_large(instruction, formula, step.args[1]))
        for step in formula.steps
    )


def _is_large(instruction: Instruction, formula: Formula, divisor: int | Constant) -> bool:
    """Whether a divisor is a number that is not small."""
    if isinstance(divisor, Constant):
        return abs(divisor.value) >= _LEAST_DIVISOR
    operand = instruction.operands[divisor] if divisor < formula.arity else None
    literal = None if operand is None else operand.constant
    return literal is not None and literal.size == 1 and abs(literal.item()) >= _LEAST_DIVISOR
