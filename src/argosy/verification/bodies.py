"""The body of a control op as a module of its own, on the values that it has in the run: of a loop, the first time."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.module import Instruction, Module
from argosy.ops.control import If, Loop, Scan
from argosy.ops.shapes import normalize_axis
from argosy.verification.cutting import Cut, Truth

__all__ = ["body_of", "inside"]


def inside(part: Cut) -> Truth | None:
    """`body_of` the only control op of a part; None where it has none, or several."""
    main = part.program.main
    steps = [step for step in main.instructions if step.op.modules()]
    if len(steps) != 1:
        return None
    return body_of(steps[0], Truth.by_name(main, part.inputs, part.number, wide=part.exact is not None))


def body_of(step: Instruction, truth: Truth) -> Truth | None:
    """The branch that a conditional takes in the run, or the body of a loop in the first iteration.

    None for other ops, for a loop without an iteration, and for a body that doesn't run by itself.
    """
    found = _first(step.op, truth.operands(step))
    if found is None:
        return None
    try:
        return Truth.of(*found, truth.number, wide=truth.is_wide, outer=truth.symbols)
    except ModelError:
        return None


def _first(op: Any, given: list[Any]) -> tuple[Module, list[Any]] | None:
    match op:
        case If():
            split = 1 + len(op.then_branch.parameters)
            if np.asarray(given[0]).reshape(-1)[0]:
                return op.then_branch, given[1:split]
            return op.else_branch, given[split:]
        case Loop():
            kinds = [parameter.types[0] for parameter in op.body.parameters[:2]]
            ranks = [len(getattr(kind, "dims", None) or ()) for kind in kinds]
            begin = [np.zeros((1,) * ranks[0], np.int64), np.ones((1,) * ranks[1], np.bool_)]
            return op.body, [*begin, *given[2:]]
        case Scan():
            end = op.states + len(op.input_axes)
            scanned = list(zip(given[op.states : end], op.input_axes, op.input_reversed, strict=True))
            if any(array.shape[normalize_axis(axis, array.ndim)] == 0 for array, axis, _ in scanned):
                return None
            elements = [np.take(array, -1 if backwards else 0, axis) for array, axis, backwards in scanned]
            return op.body, [*given[: op.states], *elements, *given[end:]]
    return None
