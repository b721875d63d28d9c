"""The derivative of a formula by one of its inputs: another formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir.dtype import DType
from argosy.ir.formula import Expr, Formula, Ref, Step, Tracer
from argosy.rewrite.gradient.scalar_rules import FLAT, scalar_gradient

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
    found: dict[int, Expr] = {last: Expr(tracer, arity)}
    for number in range(last, arity - 1, -1):
        step = formula.steps[number - arity]
        gradient = found.get(number)
        if gradient is None or number not in reached:
            continue
        for place, ref in enumerate(step.args):
            if not isinstance(ref, int) or ref not in reached:
                continue
            part = _part(step, place, gradient, values, number, kinds, tracer)
            found[ref] = part if ref not in found else found[ref] + part
    result = found[index].ref
    return _pruned(tracer, result) if isinstance(result, int) else None


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


def _part(
    step: Step,
    place: int,
    gradient: Expr,
    values: Sequence[Expr],
    number: int,
    kinds: Sequence[DType],
    tracer: Tracer,
) -> Expr:
    """What argument `place` of a step gets."""
    own = step.args[place]
    kind = kinds[own] if isinstance(own, int) else kinds[number]
    if kind.kind == "complex" or kinds[number].kind == "complex":
        raise KeyError(f"{step.primitive} of complex numbers")
    if step.primitive == "convert":
        return gradient.convert(kind)
    args = [values[ref] if isinstance(ref, int) else Expr(tracer, ref) for ref in step.args]
    if step.primitive == "pow" and isinstance(step.args[1], int) and kinds[step.args[1]] is not kinds[number]:
        args[1] = args[1].convert(kinds[number])
        part = scalar_gradient("pow", place, gradient, values[number], args)
        return part if place == 0 else part.convert(kind)
    return scalar_gradient(step.primitive, place, gradient, values[number], args)


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
