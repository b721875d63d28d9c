"""Convolutions and pooling.

Each is linear in its input, or in a part of it. A transposed convolution spreads the gradient of a window over what the
window read; the gradient of a kernel is a convolution of the input by the gradient, with the batch for channels and
with strides and dilations changed over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike
from argosy.ir.module import Value
from argosy.ir.types import Dims
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.pooling import Pool
from argosy.ops.reduce import Reduce
from argosy.ops.scatter import ScatterElements
from argosy.ops.shapes import product
from argosy.ops.view import Pad, Transpose
from argosy.ops.window import extents, resolve_pads
from argosy.rewrite.gradient.derivative import Backward, Gradients, derivative, filled, reshaped

__all__: list[str] = []


@derivative(Conv)
def conv(step: Backward) -> Gradients:
    """By the input, the kernel and the bias."""
    op, build = step.op(Conv), step.build
    x, weight = (build.convert(step.operand(index), step.result.dtype) for index in range(2))
    kernel = weight.shape[2:]
    pads = resolve_pads(op.auto_pad, x.shape[2:], extents(kernel, op.dilations), op.strides, op.pads)
    begins = pads[: len(kernel)]
    found: list[Value | None] = [None, None, None]
    if step.wants(0):
        spread = ConvTranspose(op.strides, _none(kernel), op.dilations, op.group)
        whole = build.add(spread, step.gradient, weight)
        found[0] = _window(build, whole, begins, x.shape[2:])
    if step.wants(1):
        found[1] = _by_kernel(build, op, x, step.gradient, kernel, begins)
    return _finished(step, found)


@derivative(ConvTranspose)
def conv_transpose(step: Backward) -> Gradients:
    """The roles of input and output changed over."""
    op, build = step.op(ConvTranspose), step.build
    x, weight = (build.convert(step.operand(index), step.result.dtype) for index in range(2))
    kernel = weight.shape[2:]
    _, begins = op.geometry(x.shape[2:], kernel)
    found: list[Value | None] = [None, None, None]
    if step.wants(0):
        spans = _spans(x.shape[2:], kernel, op.strides, op.dilations)
        canvas = _window(build, step.gradient, tuple(0 - begin for begin in begins), spans)
        found[0] = build.add(Conv(op.strides, _none(kernel), op.dilations, op.group), canvas, weight)
    if step.wants(1):
        found[1] = _by_kernel(build, op, step.gradient, x, kernel, begins)
    return _finished(step, found)


def _finished(step: Backward, found: list[Value | None]) -> Gradients:
    """The gradients of input, kernel and bias in the types of the operands."""
    build = step.build
    if step.wants(2):
        axes = (0, *range(2, step.gradient.rank))
        found[2] = build.add(Reduce("sum", axes, keep_dims=False), step.gradient)
    return [None if value is None else build.convert(value, step.operand(i).dtype) for i, value in enumerate(found)]


def _none(kernel: Dims) -> Dims:
    """No pads."""
    return (0,) * (2 * len(kernel))


def _spans(outputs: Dims, kernel: Dims, strides: Sequence[int], dilations: Sequence[int]) -> Dims:
    """Elements from the begin of the first window to the end of the last one."""
    pairs = zip(outputs, strides, extents(kernel, dilations), strict=True)
    return tuple((count - 1) * stride + extent for count, stride, extent in pairs)


def _window(build: Builder, whole: Value, begins: Dims, sizes: Dims) -> Value:
    """`sizes` elements of the spatial axes from `begins` on; zeros where there are none."""
    found = whole.shape[2:]
    ends = tuple(begin + size - there for begin, size, there in zip(begins, sizes, found, strict=True))
    pads: Dims = (*(0 - begin for begin in begins), *ends)
    if all(pad == 0 for pad in pads):
        return whole
    axes = tuple(range(2, whole.rank))
    return reshaped(build, build.add(Pad("constant", pads, axes), whole), (*whole.shape[:2], *sizes))


def _by_kernel(
    build: Builder, op: Conv | ConvTranspose, image: Value, small: Value, kernel: Dims, begins: Dims
) -> Value:
    """The gradient of a kernel between `image`, whose windows it meets, and `small`, which has one element for each."""
    group, rank = op.group, len(kernel)
    spans = _spans(small.shape[2:], kernel, op.strides, op.dilations)
    padded = _window(build, image, tuple(0 - begin for begin in begins), spans)
    batch = padded.shape[0]
    each = _divided(padded.shape[1], group)
    spatial = tuple(range(2, 2 + rank))
    # Of each group one image: its channels are the batch, and the images its channels.
    split = reshaped(build, padded, (batch, group, each, *padded.shape[2:]))
    turned = build.add(Transpose((2, 1, 0, *(axis + 1 for axis in spatial))), split)
    joined = reshaped(build, turned, (each, batch * group, *padded.shape[2:]))
    weights = build.add(Transpose((1, 0, *spatial)), small)
    found = build.add(Conv(op.dilations, _none(kernel), op.strides, group), joined, weights)
    found = build.add(Transpose((1, 0, *spatial)), found)
    return reshaped(build, found, (small.shape[1], each, *kernel))


def _divided(channels: DimLike, group: int) -> DimLike:
    return channels if group == 1 else channels // group


@derivative(Pool)
def pool(step: Backward) -> Gradients:
    """To the greatest element; or to every element, by its share in the average or the norm."""
    op = step.op(Pool)
    if op.kind == "max":
        return (_greatest(step, op),)
    if op.kind == "average":
        ones = _taps(step, op)
        return (_spread(step, op, step.build.pointwise("div", step.gradient, ones)),)
    x, y, p = step.operand(0), step.result, float(op.p)
    shares = step.build.pointwise(lambda g, y: (y == 0.0).select(0.0, g * y.pow(1.0 - p)), step.gradient, y)
    spread = _spread(step, op, shares)
    return (step.build.pointwise(lambda s, x: s * x.sign() * x.abs().pow(p - 1.0), spread, x),)


def _greatest(step: Backward, op: Pool) -> Value:
    build, x = step.build, step.operand(0)
    places = build.add_all(dataclasses.replace(op, with_indices=True, column_major=False), x)[1]
    size = product(x.shape)
    flat = filled(build, 0.0, x.dtype, (size,))
    count = (product(places.shape),)
    gradient = reshaped(build, step.gradient, count)
    return reshaped(
        build, build.add(ScatterElements(0, "add"), flat, reshaped(build, places, count), gradient), x.shape
    )


def _planes(build: Builder, value: Value) -> Value:
    """Every channel as an image of its own."""
    return reshaped(build, value, (value.shape[0] * value.shape[1], 1, *value.shape[2:]))


def _spread(step: Backward, op: Pool, value: Value) -> Value:
    """A value of each window added to every element that the window reads."""
    build, x = step.build, step.operand(0)
    ones = filled(build, 1.0, value.dtype, (1, 1, *op.kernel))
    none = _none(op.kernel)
    whole = build.add(ConvTranspose(op.strides, none, op.dilations), _planes(build, value), ones)
    return reshaped(build, _window(build, whole, _begins(step, op), x.shape[2:]), x.shape)


def _begins(step: Backward, op: Pool) -> Dims:
    return _pads(step, op)[: len(op.kernel)]


def _pads(step: Backward, op: Pool) -> Dims:
    sizes = step.operand(0).shape[2:]
    return resolve_pads(op.auto_pad, sizes, extents(op.kernel, op.dilations), op.strides, op.pads)


def _taps(step: Backward, op: Pool) -> Value:
    """How many elements each window averages: what a convolution of ones by ones gives."""
    build, x, y = step.build, step.operand(0), step.result
    rank = len(op.kernel)
    pads, sizes = _pads(step, op), x.shape[2:]
    begins: Dims = pads[:rank]
    if op.count_include_pad:
        sizes = tuple(begin + size + end for begin, size, end in zip(begins, sizes, pads[rank:], strict=True))
        begins = (0,) * rank
    ones = filled(build, 1.0, x.dtype, (1, 1, *sizes))
    spans = _spans(y.shape[2:], op.kernel, op.strides, op.dilations)
    canvas = _window(build, ones, tuple(0 - begin for begin in begins), spans)
    kernel = filled(build, 1.0, x.dtype, (1, 1, *op.kernel))
    counts = build.add(Conv(op.strides, _none(op.kernel), op.dilations), canvas, kernel)
    return build.pointwise(lambda c: c.max(1.0), reshaped(build, counts, (1, 1, *y.shape[2:])))
