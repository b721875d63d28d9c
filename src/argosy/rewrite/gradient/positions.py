"""The gradient of any op that only moves elements of its first operand, by sending their positions the same way."""

from __future__ import annotations

from argosy.ir.module import Value
from argosy.ops.index import Range
from argosy.ops.scatter import ScatterElements
from argosy.ops.shapes import product
from argosy.rewrite.gradient.derivative import Backward, filled, reshaped, size_of

__all__ = ["by_position"]


def by_position(step: Backward) -> Value:
    """The gradient of operand 0: each element of the result's is added at the place that the element came from."""
    build, x = step.build, step.operand(0)
    size, count = product(x.shape), product(step.result.shape)
    numbered = build.add(Range(), build.constant(0), size_of(build, size), build.constant(1))
    source = reshaped(build, numbered, x.shape)
    places = build.add(step.instruction.op, source, *step.instruction.operands[1:])
    flat = filled(build, 0.0, x.dtype, (size,))
    gradient, indices = (reshaped(build, value, (count,)) for value in (step.gradient, places))
    return reshaped(build, build.add(ScatterElements(0, "add"), flat, indices, gradient), x.shape)
