"""Gathers give back by scatters, scatters by gathers."""

from __future__ import annotations

import dataclasses

import numpy as np

from argosy.ir.module import Value
from argosy.ops.index import Compress, Gather, GatherElements, GatherND, OneHot, Range
from argosy.ops.reduce import Reduce
from argosy.ops.scatter import ScatterElements, ScatterND
from argosy.ops.shapes import normalize_axis
from argosy.ops.sort import TopK
from argosy.ops.view import Concat, Transpose, Unsqueeze
from argosy.rewrite.gradient.derivative import Backward, Gradients, derivative, filled, reshaped, size_of
from argosy.rewrite.gradient.positions import by_position

__all__: list[str] = []


def _zeros(step: Backward) -> Value:
    x = step.operand(0)
    return filled(step.build, 0.0, x.dtype, x.shape)


@derivative(Gather)
def gather(step: Backward) -> Gradients:
    """Added to the slices that were taken."""
    build, x, indices = step.build, step.operand(0), step.operand(1)
    axis = normalize_axis(step.op(Gather).axis, x.rank)
    rank = indices.rank
    # The gathered axes to the front: a scatter takes those.
    front = (*range(axis, axis + rank), *range(axis), *range(axis + rank, step.gradient.rank))
    moved = build.add(Transpose(front), step.gradient)
    zeros = filled(build, 0.0, x.dtype, (x.shape[axis], *x.shape[:axis], *x.shape[axis + 1 :]))
    found = build.add(ScatterND("add"), zeros, build.add(Unsqueeze((-1,)), indices), moved)
    return (build.add(Transpose((*range(1, axis + 1), 0, *range(axis + 1, x.rank))), found),)


@derivative(GatherElements)
def gather_elements(step: Backward) -> Gradients:
    """Added to the elements that were taken."""
    scatter = ScatterElements(step.op(GatherElements).axis, "add")
    return (step.build.add(scatter, _zeros(step), step.operand(1), step.gradient),)


@derivative(GatherND)
def gather_nd(step: Backward) -> Gradients:
    """Added to the slices that were taken."""
    if step.op(GatherND).batch_dims:
        return (by_position(step),)
    return (step.build.add(ScatterND("add"), _zeros(step), step.operand(1), step.gradient),)


@derivative(OneHot)
def one_hot(step: Backward) -> Gradients:
    """By the two values: the sums where the one stands and where the other does."""
    build, kind = step.build, step.gradient.dtype
    marks = build.constant(np.array([0.0, 1.0]), kind)
    hot = build.add(step.op(OneHot), step.operand(0), step.operand(1), marks)
    everything = Reduce("sum", (), keep_dims=False)
    on = build.add(everything, build.pointwise("mul", hot, step.gradient))
    off = build.pointwise("sub", build.add(everything, step.gradient), on)
    return (None, None, build.add(Concat(0), *(build.add(Unsqueeze((0,)), value) for value in (off, on))))


@derivative(Range)
def range_(step: Backward) -> Gradients:
    """By the start the sum, by the step the sum of each times its place; the limit only counts."""
    build, gradient = step.build, step.gradient
    everything = Reduce("sum", (), keep_dims=False)
    zero, one = build.constant(0), build.constant(1)
    places = build.add(Range(), zero, size_of(build, gradient.shape[0]), one)
    weighted = build.pointwise("mul", gradient, build.convert(places, gradient.dtype))
    start, delta = (build.add(everything, value) for value in (gradient, weighted))
    return (reshaped(build, start, step.operand(0).shape), None, reshaped(build, delta, step.operand(2).shape))


@derivative(TopK)
def topk(step: Backward) -> Gradients:
    """To the places of the greatest elements."""
    scatter = ScatterElements(step.op(TopK).axis, "add")
    return (step.build.add(scatter, _zeros(step), step.instruction.result(1), step.gradient),)


@derivative(Compress)
def compress(step: Backward) -> Gradients:
    """To the places of the selected elements."""
    return (by_position(step),)


@derivative(ScatterElements)
def scatter_elements(step: Backward) -> Gradients:
    """The updates get what lies at their places; the data the rest, or all where they are added."""
    op = step.op(ScatterElements)
    return _scattered(step, op, GatherElements(op.axis))


@derivative(ScatterND)
def scatter_nd(step: Backward) -> Gradients:
    """The same by coordinates."""
    return _scattered(step, step.op(ScatterND), GatherND())


def _scattered(step: Backward, op: ScatterElements | ScatterND, back: GatherElements | GatherND) -> Gradients:
    build, indices, updates = step.build, step.operand(1), step.operand(2)
    if op.reduction not in ("none", "add"):
        step.refuse(f"it combines by {op.reduction!r}")
    data = step.gradient
    if op.reduction == "none":
        nothing = filled(build, 0.0, updates.dtype, updates.shape)
        data = build.add(dataclasses.replace(op), step.gradient, indices, nothing)
    return (data, None, build.add(back, step.gradient, indices) if step.wants(2) else None)
