"""Views, parts and joins: elements move, and their gradients move back."""

from __future__ import annotations

import dataclasses

from argosy.ir.module import Value
from argosy.ir.types import Dims
from argosy.ops.index import Triangle
from argosy.ops.operands import numbers, steering
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import normalize_axis
from argosy.ops.view import (
    Broadcast,
    Concat,
    Pad,
    Reshape,
    ReverseSequence,
    Slice,
    Split,
    Squeeze,
    Tile,
    Transpose,
    Unsqueeze,
)
from argosy.rewrite.gradient.derivative import Backward, Gradients, derivative, filled, reshaped
from argosy.rewrite.gradient.positions import by_position
from argosy.rewrite.gradient.unbroadcast import unbroadcast

__all__: list[str] = []


@derivative(Reshape, Squeeze, Unsqueeze)
def reshape(step: Backward) -> Gradients:
    """Under the dims of the operand."""
    return (reshaped(step.build, step.gradient, step.operand(0).shape),)


@derivative(Transpose)
def transpose(step: Backward) -> Gradients:
    """Transposed back."""
    order = step.op(Transpose).permutation or tuple(reversed(range(step.result.rank)))
    return (step.build.add(Transpose(tuple(order.index(axis) for axis in range(len(order)))), step.gradient),)


@derivative(Broadcast)
def broadcast(step: Backward) -> Gradients:
    """Summed over what was repeated."""
    return (unbroadcast(step.build, step.gradient, step.operand(0)),)


@derivative(Tile)
def tile(step: Backward) -> Gradients:
    """Summed over the repeats, which get axes of their own."""
    x, repeats = step.operand(0), steering(step.op(Tile).repeats, step.optional(1))
    if repeats is None:
        return (by_position(step),)
    pairs: Dims = tuple(size for pair in zip(repeats, x.shape, strict=True) for size in pair)
    apart = reshaped(step.build, step.gradient, pairs)
    summed = step.build.add(Reduce("sum", tuple(range(0, 2 * x.rank, 2)), keep_dims=False), apart) if pairs else apart
    return (summed,)


@derivative(Concat)
def concat(step: Backward) -> Gradients:
    """The part of each operand."""
    op, operands = step.op(Concat), [step.operand(index) for index in range(len(step.instruction.operands))]
    axis = normalize_axis(op.axis, step.result.rank)
    sizes = tuple(operand.shape[axis] for operand in operands)
    return step.build.add_all(Split(axis, len(operands), sizes), step.gradient)


@derivative(Split)
def split(step: Backward) -> Gradients:
    """The gradients of the parts one after another, zeros for those that have none."""
    build = step.build
    parts = [
        filled(build, 0.0, result.dtype, result.shape) if gradient is None else gradient
        for result, gradient in zip(step.instruction.results, step.gradients, strict=True)
    ]
    return (build.add(Concat(step.op(Split).axis), *parts),)


@derivative(Slice)
def slice_(step: Backward) -> Gradients:
    """Zeros around it, where the slice takes all from a place to another; else each element back to its place."""
    op, x = step.op(Slice), step.operand(0)
    starts, ends = steering(op.starts, step.optional(1)), steering(op.ends, step.optional(2))
    axes, steps = numbers(op.axes, step.optional(3)), numbers(op.steps, step.optional(4))
    if starts is None or ends is None or (axes is None and step.optional(3)) or (steps is None and step.optional(4)):
        return (by_position(step),)
    axes = tuple(normalize_axis(axis, x.rank) for axis in (range(len(starts)) if axes is None else axes))
    begins: list[int] = []
    rests: list[int] = []
    for axis, start, end, by in zip(axes, starts, ends, steps or (1,) * len(axes), strict=True):
        size = x.shape[axis]
        if by != 1 or not (isinstance(size, int) and isinstance(start, int) and isinstance(end, int)):
            return (by_position(step),)
        taken = range(size)[start:end]
        begins.append(taken.start)
        rests.append(size - taken.start - len(taken))
    return (step.build.add(Pad("constant", (*begins, *rests), axes), step.gradient),)


@derivative(Pad)
def pad(step: Backward) -> Gradients:
    """What was put around cut off; the value gets the sum of that. Of other modes, each element back to its place."""
    op, build = step.op(Pad), step.build
    if op.mode != "constant":
        return (by_position(step),)
    pads, axes, amounts = step.optional(1), step.optional(3), op.pads
    back: Dims | None = None if amounts is None else tuple(0 - amount for amount in amounts)
    turned = None if pads is None else build.pointwise("neg", pads)
    inner = build.add(dataclasses.replace(op, pads=back), step.gradient, turned, None, axes)
    by_value: Value | None = None
    if step.wants(2):
        everything = Reduce("sum", (), keep_dims=False)
        whole, kept = build.add(everything, step.gradient), build.add(everything, inner)
        by_value = reshaped(build, build.pointwise("sub", whole, kept), step.operand(2).shape)
    return (inner, None, by_value)


@derivative(ReverseSequence)
def reverse_sequence(step: Backward) -> Gradients:
    """Reversed again."""
    return (step.build.add(step.op(ReverseSequence), step.gradient, step.operand(1)),)


@derivative(Triangle)
def triangle(step: Backward) -> Gradients:
    """The same triangle."""
    return (step.build.add(step.op(Triangle), step.gradient, step.optional(1)),)
