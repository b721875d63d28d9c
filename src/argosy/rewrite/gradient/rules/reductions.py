"""Reductions, softmax and running sums."""

from __future__ import annotations

import dataclasses

from argosy.ir.builder import Builder
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ir.types import Dims
from argosy.ops.operands import length, numbers
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.scan import Cumulative
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.view import Broadcast, Reshape, Shape, Transpose
from argosy.rewrite.gradient.derivative import Backward, Gradients, derivative, filled, reshaped

__all__: list[str] = []


@derivative(Reduce)
def reduce(step: Backward) -> Gradients:
    """Repeated: as it is for a sum, divided for a mean; to the extremes, in equal shares; times the others' product."""
    op, build, x = step.op(Reduce), step.build, step.operand(0)
    axes = _axes(step, op, x)
    if axes == ():
        return (step.gradient,)
    given = step.instruction.operands[1:]
    kept = step.result if op.keep_dims else build.add(dataclasses.replace(op, keep_dims=True), x, *given)
    if axes is None:  # only the run knows them
        gradient = build.add(Reshape(allow_zero=True), step.gradient, build.add(Shape(), kept))
    else:
        gradient = reshaped(build, step.gradient, kept.shape)
    if op.kind == "prod":
        if axes is None:
            step.refuse("its axes are not known")
        return (build.pointwise("mul", _others(build, x, axes), gradient),)
    if op.kind in ("max", "min"):
        hits = build.convert(build.pointwise("eq", x, kept), x.dtype)
        counts = build.add(dataclasses.replace(op, kind="sum", keep_dims=True), hits, *given)
        return (build.pointwise(lambda h, g, n: h * (g / n), hits, gradient, counts),)
    if op.kind == "mean":
        ones = filled(build, 1.0, x.dtype, x.shape)
        counts = build.add(dataclasses.replace(op, kind="sum", keep_dims=True), ones, *given)
        gradient = build.pointwise("div", gradient, counts)
    return (build.add(Broadcast(x.shape), gradient),)


def _axes(step: Backward, op: Reduce, x: Value) -> tuple[int, ...] | None:
    """The reduced axes; None where only the run knows them."""
    given = step.optional(1)
    axes = () if op.axes is None and (given is None or length(given) == 0) else numbers(op.axes, given)
    if axes == ():
        return () if op.noop_with_empty_axes else tuple(range(x.rank))
    return None if axes is None else tuple(sorted({normalize_axis(axis, x.rank) for axis in axes}))


def _others(build: Builder, x: Value, axes: tuple[int, ...]) -> Value:
    """For each element the product of those that it is multiplied with: of all before it and all behind it."""
    kept = tuple(axis for axis in range(x.rank) if axis not in axes)
    order = (*kept, *axes)
    turned = build.add(Transpose(order), x)
    rows: Dims = (*(x.shape[axis] for axis in kept), product(tuple(x.shape[axis] for axis in axes)))
    flat = reshaped(build, turned, rows)
    last = build.constant(len(kept))
    before, behind = (
        build.add(Cumulative("prod", exclusive=True, reverse=backwards), flat, last) for backwards in (False, True)
    )
    others = reshaped(build, build.pointwise("mul", before, behind), turned.shape)
    return build.add(Transpose(tuple(order.index(axis) for axis in range(x.rank))), others)


@derivative(Softmax)
def softmax(step: Backward) -> Gradients:
    """Y (g - sum(g y)); of the logarithm g - e^y sum(g).

    A row of infinities has no softmax; where nobody reads it, as behind a mask, it gives no gradient either.
    """
    op, build, y, gradient = step.op(Softmax), step.build, step.result, step.gradient
    total = Reduce("sum", (op.axis,))
    if op.log:
        return (build.pointwise(lambda g, y, s: g - y.exp() * s, gradient, y, build.add(total, gradient)),)
    weighted = build.add(total, build.pointwise(_scaled, gradient, y))
    return (build.pointwise(lambda g, y, s: _scaled(g - s, y), gradient, y, weighted),)


def _scaled(g: Expr, y: Expr) -> Expr:
    """G y, and 0 for g = 0 whatever y is."""
    return (g == 0.0).select(0.0, g * y)


@derivative(Cumulative)
def cumulative(step: Backward) -> Gradients:
    """A running sum from the other end."""
    op = step.op(Cumulative)
    if op.kind != "sum":
        step.refuse(f"it is a running {op.kind}")
    return (step.build.add(dataclasses.replace(op, reverse=not op.reverse), step.gradient, step.operand(1)),)
