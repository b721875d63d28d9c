"""Reductions, softmax and running sums."""

from __future__ import annotations

import dataclasses

from argosy.ir.builder import Builder
from argosy.ir.module import Value
from argosy.ir.types import Dims
from argosy.ops.operands import numbers
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.scan import Cumulative
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.view import Broadcast, Transpose
from argosy.rewrite.gradient.derivative import Backward, Gradients, derivative, reshaped, size_of

__all__: list[str] = []


@derivative(Reduce)
def reduce(step: Backward) -> Gradients:
    """Repeated: as it is for a sum, divided for a mean; to the extremes, in equal shares; times the others' product."""
    op, build, x = step.op(Reduce), step.build, step.operand(0)
    axes = _axes(step, op, x.rank)
    if not axes:
        return (step.gradient,)
    reduced = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    gradient = reshaped(build, step.gradient, reduced)
    if op.kind == "mean":
        count = size_of(build, product(tuple(x.shape[axis] for axis in axes)), x.dtype)
        gradient = build.pointwise("div", gradient, count)
    if op.kind in ("sum", "mean"):
        return (build.add(Broadcast(x.shape), gradient),)
    if op.kind == "prod":
        return (build.pointwise("mul", _others(build, x, axes), gradient),)
    extreme = reshaped(build, step.result, reduced)
    hits = build.convert(build.pointwise("eq", x, extreme), x.dtype)
    shares = build.pointwise("div", gradient, build.add(Reduce("sum", axes), hits))
    return (build.pointwise("mul", hits, shares),)


def _axes(step: Backward, op: Reduce, rank: int) -> tuple[int, ...]:
    given = step.optional(1)
    axes = () if op.axes is None and given is None else numbers(op.axes, given)
    if axes is None:
        step.refuse("its axes are not known")
    if not axes:
        return () if op.noop_with_empty_axes else tuple(range(rank))
    return tuple(sorted({normalize_axis(axis, rank) for axis in axes}))


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
    """Y (g - sum(g y)); of the logarithm g - e^y sum(g)."""
    op, build, y, gradient = step.op(Softmax), step.build, step.result, step.gradient
    total = Reduce("sum", (op.axis,))
    if op.log:
        return (build.pointwise(lambda g, y, s: g - y.exp() * s, gradient, y, build.add(total, gradient)),)
    weighted = build.add(total, build.pointwise("mul", gradient, y))
    return (build.pointwise(lambda g, y, s: y * (g - s), gradient, y, weighted),)


@derivative(Cumulative)
def cumulative(step: Backward) -> Gradients:
    """A running sum from the other end."""
    op = step.op(Cumulative)
    if op.kind != "sum":
        step.refuse(f"it is a running {op.kind}")
    return (step.build.add(dataclasses.replace(op, reverse=not op.reverse), step.gradient, step.operand(1)),)
