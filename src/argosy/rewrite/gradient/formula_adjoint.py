"""The derivative of a formula by one of its inputs: another formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from argosy.ir.dtype import DType
from argosy.ir.formula import Expr, Formula, Ref, Step, Tracer
from argosy.rewrite.gradient.scalar_rules import CHOICES, FLAT, choices, scalar_gradient

__all__ = ["Adjoint", "adjoint"]


@dataclass(frozen=True, slots=True)
class Adjoint:
    """The gradient of an input: `formula` of those that `inputs` names, where the gradient of the value comes last.

    Without a formula it is that gradient itself.
    """

    formula: Formula | None
    inputs: tuple[int, ...]


def adjoint(formula: Formula, dtypes: Sequence[DType], index: int) -> Adjoint | None:
    """The gradient of input `index` of a formula applied to elements of `dtypes`; None where it is zero.

    Raises KeyError, naming the primitive, where one of complex numbers is on the way.
    """
    arity = formula.arity
    kinds = [*dtypes, *formula.step_dtypes(dtypes)]
    reached = _reached(formula, kinds, index)
    last = arity + len(formula.steps) - 1
    if last not in reached:
        return None
    tracer = Tracer(arity + 1)
    values = _replayed(formula, tracer)
    found: dict[int, Guarded] = {last: {(): Expr(tracer, arity)}}
    for number in range(last, arity - 1, -1):
        step = formula.steps[number - arity]
        if number not in reached or number not in found:
            continue
        for place, ref in enumerate(step.args):
            if not isinstance(ref, int) or ref not in reached:
                continue
            for guards, gradient in found[number].items():
                for guard, part in _parts(step, place, gradient, values, number, kinds, tracer):
                    _add(found.setdefault(ref, {}), guards if guard is None else _both(guards, guard), part)
    result = _total(found[index], tracer).ref
    return _pruned(tracer, result) if isinstance(result, int) else None


Guarded: TypeAlias = dict[tuple[int, ...], Expr]
"""Parts of a gradient, each by the conditions under which it counts: numbers of bools in the trace.

A part that does not count must not be multiplied by zero on its way: what it meets there may be infinite, as e^x is in
the branch of a select that is not taken.
"""


def _both(guards: tuple[int, ...], guard: Expr) -> tuple[int, ...]:
    ref = guard.ref
    return tuple(sorted({*guards, ref})) if isinstance(ref, int) else guards


def _add(parts: Guarded, guards: tuple[int, ...], part: Expr) -> None:
    parts[guards] = part if guards not in parts else parts[guards] + part


def _total(parts: Guarded, tracer: Tracer) -> Expr:
    """The sum of the parts, each where its conditions hold."""
    first, *others = (_where(guards, part, tracer) for guards, part in parts.items())
    return reduce(lambda total, part: total + part, others, first)


def _where(guards: tuple[int, ...], part: Expr, tracer: Tracer) -> Expr:
    conditions = [Expr(tracer, guard) for guard in guards]
    return reduce(lambda left, right: left.and_(right), conditions).select(part, 0.0) if conditions else part


def _reached(formula: Formula, kinds: Sequence[DType], index: int) -> set[int]:
    """The values that depend on input `index` and are not constant almost everywhere."""
    reached = {index} if _is_smooth(kinds[index]) else set()
    for number, step in enumerate(formula.steps, formula.arity):
        if step.primitive not in FLAT and _is_smooth(kinds[number]) and reached.intersection(step.args):
            reached.add(number)
    return reached


def _is_smooth(kind: DType) -> bool:
    return kind.is_float or kind.kind == "complex"


def _replayed(formula: Formula, tracer: Tracer) -> list[Expr]:
    """The inputs and steps of the formula in a trace that has one more input."""
    values = [Expr(tracer, number) for number in range(formula.arity)]
    for step in formula.steps:
        refs = tuple(values[ref].ref if isinstance(ref, int) else ref for ref in step.args)
        values.append(Expr(tracer, tracer.add(Step(step.primitive, refs, step.dtype))))
    return values


def _parts(
    step: Step,
    place: int,
    gradient: Expr,
    values: Sequence[Expr],
    number: int,
    kinds: Sequence[DType],
    tracer: Tracer,
) -> Sequence[tuple[Expr | None, Expr]]:
    """What argument `place` of a step gets: parts with the condition under which each counts, or None."""
    own = step.args[place]
    kind = kinds[own] if isinstance(own, int) else kinds[number]
    if kind.kind == "complex" or kinds[number].kind == "complex":
        raise KeyError(f"{step.primitive} of complex numbers")
    if step.primitive == "convert":
        return [(None, gradient.convert(kind))]
    args = [values[ref] if isinstance(ref, int) else Expr(tracer, ref) for ref in step.args]
    lone = len(values) == tracer.arity  # the inputs and one step
    if step.primitive in CHOICES:
        return [
            (guard, gradient * share if share != 1.0 else gradient)
            for guard, share in choices(step.primitive, place, args, lone=lone)
        ]
    if step.primitive == "pow" and isinstance(step.args[1], int) and kinds[step.args[1]] is not kinds[number]:
        args[1] = args[1].convert(kinds[number])
        part = scalar_gradient("pow", place, gradient, values[number], args)
        return [(None, part if place == 0 else part.convert(kind))]
    if step.primitive == "abs" and not lone:
        return [(None, (args[0] < 0.0).select(-gradient, gradient))]
    return [(None, scalar_gradient(step.primitive, place, gradient, values[number], args))]


def _pruned(tracer: Tracer, result: int) -> Adjoint:
    """The steps that `result` needs, as a formula of the inputs that they read."""
    gradient = tracer.arity - 1
    if result == gradient:
        return Adjoint(None, ())
    needed: set[int] = set()
    pending: list[Ref] = [result]
    while pending:
        ref = pending.pop()
        if isinstance(ref, int) and ref not in needed:
            needed.add(ref)
            pending.extend(tracer.steps[ref - tracer.arity].args if ref >= tracer.arity else ())
    inputs = sorted(ref for ref in needed if ref < gradient)
    places = {ref: place for place, ref in enumerate([*inputs, gradient])}
    steps: list[Step] = []
    for ref in sorted(ref for ref in needed if ref >= tracer.arity):
        step = tracer.steps[ref - tracer.arity]
        args = tuple(places[arg] if isinstance(arg, int) else arg for arg in step.args)
        places[ref] = len(inputs) + 1 + len(steps)
        steps.append(Step(step.primitive, args, step.dtype))
    return Adjoint(Formula(len(inputs) + 1, tuple(steps)), tuple(inputs))
