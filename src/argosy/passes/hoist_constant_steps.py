"""Steps of a formula that depend on constants alone become a pointwise op of their own.

A normalisation with known moments is one formula, `(x - mean) * (scale / sqrt(variance + epsilon)) + bias`. What is in
the inner brackets is one number for each channel: computed apart, constant folding or the load of the artifact
does it once, instead of every run for every element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir.builder import Builder
from argosy.ir.formula import Constant, Formula, Step
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.pointwise import Pointwise
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import transform

__all__ = ["HoistConstantSteps"]


@register_pass
@dataclass(frozen=True, slots=True)
class HoistConstantSteps:
    """f(x, g(constants)) becomes f(x, y) with y = g(constants); the same bits, for g rounds to its own type."""

    name = "hoist_constant_steps"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with what is constant in its formulas computed apart."""
        return transform(module, lambda: _hoist, context.namer)


def _hoist(build: Builder, instruction: Instruction) -> Sequence[Value] | None:
    op = instruction.op
    operands = [operand for operand in instruction.operands if operand is not None]
    if not isinstance(op, Pointwise) or all(operand.constant is not None for operand in operands):
        return None
    formula = op.formula
    kinds = [*(operand.dtype for operand in operands), *formula.step_dtypes([operand.dtype for operand in operands])]
    constant = [operand.constant is not None for operand in operands]
    for step in formula.steps:
        refs = [ref for ref in step.args if isinstance(ref, int)]
        constant.append(bool(refs) and all(constant[ref] for ref in refs))
    read = {
        ref
        for number, step in enumerate(formula.steps, formula.arity)
        if not constant[number]
        for ref in step.args
        if isinstance(ref, int)
    }
    hoisted = [
        number
        for number in range(formula.arity, len(constant))
        # A step of a short float is not rounded inside a formula; apart it would be.
        if constant[number] and number in read and kinds[number].compute is kinds[number]
    ]
    if not hoisted:
        return None
    made = {number: _apart(build, instruction, formula, operands, number) for number in hoisted}
    return [_rest(build, instruction, formula, operands, made)]


def _apart(build: Builder, instruction: Instruction, formula: Formula, operands: Sequence[Value], last: int) -> Value:
    """The value of step `last`, which depends on constants alone."""
    needed, pending = set(), [last]
    while pending:
        ref = pending.pop()
        if ref not in needed:
            needed.add(ref)
            if ref >= formula.arity:
                pending += [arg for arg in formula.steps[ref - formula.arity].args if isinstance(arg, int)]
    inputs = [index for index in range(formula.arity) if index in needed]
    inner = _renumbered(formula, inputs, sorted(ref for ref in needed if ref >= formula.arity), {})
    return build.add(Pointwise(inner), *(operands[index] for index in inputs), source=instruction.source)


def _rest(
    build: Builder, instruction: Instruction, formula: Formula, operands: Sequence[Value], made: dict[int, Value]
) -> Value:
    """The formula without the steps that are `made` already, and without what only they read."""
    needed, pending = set(), [formula.arity + len(formula.steps) - 1]
    while pending:
        ref = pending.pop()
        if ref not in needed:
            needed.add(ref)
            if ref >= formula.arity and ref not in made:
                pending += [arg for arg in formula.steps[ref - formula.arity].args if isinstance(arg, int)]
    inputs = [index for index in range(formula.arity) if index in needed]
    places = {number: len(inputs) + place for place, number in enumerate(sorted(made))}
    steps = sorted(ref for ref in needed if ref >= formula.arity and ref not in made)
    inner = _renumbered(formula, inputs, steps, places)
    values = [*(operands[index] for index in inputs), *(made[number] for number in sorted(made))]
    return build.add(Pointwise(inner), *values, names=instruction.names, source=instruction.source)


def _renumbered(formula: Formula, inputs: Sequence[int], steps: Sequence[int], places: dict[int, int]) -> Formula:
    """The formula of the given steps; `places` are numbers of further inputs, by the steps that they stand for."""
    number = {index: place for place, index in enumerate(inputs)} | places
    arity = len(inputs) + len(places)
    kept: list[Step] = []
    for ref in steps:
        step = formula.steps[ref - formula.arity]
        args = tuple(arg if isinstance(arg, Constant) else number[arg] for arg in step.args)
        number[ref] = arity + len(kept)
        kept.append(Step(step.primitive, args, step.dtype))
    return Formula(arity, tuple(kept))
