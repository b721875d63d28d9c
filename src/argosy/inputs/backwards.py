"""Formulas read backwards: what the operands of a formula must be, for its value to be what is needed.

Interval arithmetic, one primitive at a time, from the last step to the first. An operand is followed where what stands
beside it is a constant, or has known bounds: an index that a model shifts, scales or clips keeps its range. What can't
be followed tells nothing. Functions that not every number has a value for (log, sqrt, …) ask for their own domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from argosy.inputs.need import Need, meet
from argosy.ir.dtype import DType
from argosy.ir.formula import Constant, Formula, Step

__all__ = ["Bounds", "needs_of_operands"]

Bounds: TypeAlias = tuple[float, float]
"""The least and the greatest element of a value that is known."""

_DOMAINS: Final[dict[str, tuple[float | None, float | None]]] = {
    "log": (0, None),
    "sqrt": (0, None),
    "log1p": (-1, None),
    "acosh": (1, None),
    "atanh": (-1, 1),
    "asin": (-1, 1),
    "acos": (-1, 1),
}


@dataclass(frozen=True, slots=True)
class _Place:
    """An argument of a binary step: which one, what stands beside it, and whether both are integers."""

    position: int
    beside: Bounds
    whole: bool


def needs_of_operands(
    formula: Formula, result: Need | None, known: Sequence[Bounds | None], dtypes: Sequence[DType], where: str
) -> list[Need | None]:
    """What each operand must be, for the value to be `result`, and for every function to have a value.

    `known` are the bounds of operands that don't come from inputs; `where` names the instruction in reasons.
    """
    needs: list[Need | None] = [None] * (formula.arity + len(formula.steps))
    needs[-1] = result
    sides: list[Bounds | None] = [*known, *[None] * len(formula.steps)]
    kinds = [*dtypes, *formula.step_dtypes(dtypes)]
    for index, step in enumerate(formula.steps, formula.arity):
        if step.primitive == "convert":
            sides[index] = _side(step.args[0], sides)
    for index in range(len(needs) - 1, formula.arity - 1, -1):
        step = formula.steps[index - formula.arity]
        for place, ref in enumerate(step.args):
            if not isinstance(ref, int):
                continue
            others = [_side(other, sides) for position, other in enumerate(step.args) if position != place]
            need = needs[index]
            pulled = None if need is None else _pulled(step, place, need, others, whole=kinds[ref].is_integer)
            real = all(kinds[other].is_float for other in step.args if isinstance(other, int))
            for asked in (pulled, _domain(step, place, others, where) if real else None):
                if asked is not None and (asked.low, asked.high) != (None, None):
                    needs[ref] = meet(needs[ref], asked)
    return needs[: formula.arity]


def _side(ref: int | Constant, sides: Sequence[Bounds | None]) -> Bounds | None:
    bounds = sides[ref] if isinstance(ref, int) else (ref.value, ref.value)
    return bounds if bounds is not None and all(map(math.isfinite, bounds)) else None


def _domain(step: Step, place: int, others: Sequence[Bounds | None], where: str) -> Need | None:
    """The numbers for which the primitive has a value."""
    bounds = _DOMAINS.get(step.primitive)
    if bounds is not None:
        return Need(*bounds, f"argument of {step.primitive} in {where}")
    whole = bool(others) and others[0] is not None and others[0][0] == others[0][1] and not others[0][0] % 1
    if step.primitive == "pow" and place == 0 and not whole:
        return Need(0, None, f"base of a power in {where}")
    return None


def _pulled(step: Step, place: int, need: Need, others: Sequence[Bounds | None], *, whole: bool) -> Need | None:
    """What argument `place` of a step must be, for the step's value to be what is needed."""
    match step.primitive:
        case "convert":
            return need if step.dtype is not None and step.dtype.kind != "bool" else None
        case "select":
            return None if place == 0 else need
        case "floor" | "ceil" | "round":
            return need
        case "neg":
            return need.within(_minus(need.high), _minus(need.low))
        case "abs":
            return None if need.high is None else need.within(-need.high, need.high)
    beside = others[0] if len(others) == 1 else None
    follow = _FOLLOWED.get(step.primitive)
    return None if beside is None or follow is None else follow(need, _Place(place, beside, whole))


def _minus(bound: float | None) -> float | None:
    return None if bound is None else -bound


def _plus(bound: float | None, by: float) -> float | None:
    return None if bound is None else bound + by


def _add(need: Need, at: _Place) -> Need:
    return need.within(_plus(need.low, -at.beside[0]), _plus(need.high, -at.beside[1]))


def _sub(need: Need, at: _Place) -> Need:
    small, large = at.beside
    if at.position == 0:
        return need.within(_plus(need.low, large), _plus(need.high, small))
    return need.within(_plus(_minus(need.high), large), _plus(_minus(need.low), small))


def _mul(need: Need, at: _Place) -> Need | None:
    small, large = at.beside
    if small <= 0:
        return None
    low = None if need.low is None else need.low / (small if need.low > 0 else large)
    high = None if need.high is None else need.high / (large if need.high > 0 else small)
    return need.within(low, high)


def _div(need: Need, at: _Place) -> Need | None:
    by = at.beside[0]
    if at.position == 1 or at.beside[1] != by or by <= 0:
        return None
    dropped = by - 1 if at.whole else 0  # by a division of integers
    return need.within(
        None if need.low is None else need.low * by, None if need.high is None else need.high * by + dropped
    )


def _max(need: Need, at: _Place) -> Need:
    """What is clipped from below needs no bound there, if the clip is within what is needed."""
    clipped = need.low is not None and at.beside[0] >= need.low
    return need.within(None if clipped else need.low, need.high)


def _min(need: Need, at: _Place) -> Need:
    clipped = need.high is not None and at.beside[1] <= need.high
    return need.within(need.low, None if clipped else need.high)


_FOLLOWED: Final[dict[str, Callable[[Need, _Place], Need | None]]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "max": _max,
    "min": _min,
}
