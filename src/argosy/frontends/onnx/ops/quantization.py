"""Quantisation: to and from integers, and the products of quantised tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.convolution import conv_op
from argosy.frontends.onnx.ops.matmul import integer_dot, without_zero_point
from argosy.frontends.onnx.registry import CONTRIB, onnx_op
from argosy.ir.dtype import FLOAT32, INT32, UINT8, DType
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize, Quantize
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import normalize_axis
from argosy.ops.view import Unsqueeze


def _operands(node: Node) -> tuple[Value, Value, Value | None]:
    if len(node.inputs) > 3:
        node.fail(f"has {len(node.inputs)} inputs, {node.proto.op_type} takes at most 3")
    return node.input(0), node.input(1), node.optional(2)


def _block_size(node: Node, x: Value, scale: Value) -> int:
    """The attribute; where it is absent beside a scale of the rank of x, the size that is left.

    The standard allows ceil(D / S) to ceil(D / (S - 1)) - 1 for S scales along an axis of D: often more than one.
    """
    given = node.attr_int("block_size", 0)
    rank = len(scale.shape)
    if given or rank < 2 or rank != x.rank:
        return given
    axis = normalize_axis(node.attr_int("axis", 1), rank)
    size, scales = x.shape[axis], scale.shape[axis]
    if not isinstance(size, int) or not isinstance(scales, int) or not 0 < scales <= size:
        return given
    least, most = -(-size // scales), size if scales == 1 else -(-size // (scales - 1)) - 1
    if least != most and scales > 1:
        node.fail(f"the scale is {scale.type}, but block_size is missing: {least} to {most} fit {x.type}")
    node.lenient(f"the scale is {scale.type}, but block_size is missing; taken as {most}, which alone fits {x.type}")
    return most


@onnx_op("QuantizeLinear", since=10)
@onnx_op("QuantizeLinear", domain=CONTRIB)
def QuantizeLinear(node: Node) -> Value:
    """saturate(round(x / scale) + zero point), in the zero point's type."""
    x, scale, zero_point = _operands(node)
    given = node.attr_dtype("output_dtype", UINT8) if node.attr_int("output_dtype", 0) else None
    dtype = given or (UINT8 if zero_point is None else zero_point.dtype)
    precision = node.attr_dtype("precision", FLOAT32) if node.attr_int("precision", 0) else None
    axis, block = node.attr_int("axis", 1), _block_size(node, x, scale)
    op = Quantize(dtype, axis, block, node.attr_flag("saturate", default=True), precision)
    return node.add(op, x, scale) if zero_point is None else node.add(op, x, scale, zero_point)


@onnx_op("DequantizeLinear", since=10)
@onnx_op("DequantizeLinear", domain=CONTRIB)
def DequantizeLinear(node: Node) -> Value:
    """(x - zero point) * scale, in the scale's type."""
    x, scale, zero_point = _operands(node)
    given = node.attr_dtype("output_dtype", FLOAT32) if node.attr_int("output_dtype", 0) else None
    dtype = given or (scale.dtype if scale.dtype.bits >= 16 else FLOAT32)
    op = Dequantize(dtype, node.attr_int("axis", 1), _block_size(node, x, scale))
    return node.add(op, x, scale) if zero_point is None else node.add(op, x, scale, zero_point)


@onnx_op("DynamicQuantizeLinear", since=11)
def DynamicQuantizeLinear(node: Node) -> Sequence[Value]:
    """To uint8 by the range of x, widened to hold 0; the scale of an empty range is 1."""
    return quantize_by_range(node, node.input(0))


def quantize_by_range(node: Node, x: Value) -> tuple[Value, Value, Value]:
    """What DynamicQuantizeLinear gives: x in uint8, its scale and its zero point."""
    greatest, least = (node.add(Reduce(kind, (), keep_dims=False), x) for kind in ("max", "min"))

    def step(high: Expr, low: Expr) -> Expr:
        width = high.max(0.0) - low.min(0.0)
        return (width == 0.0).select(1.0, width / 255.0)

    scale = node.pointwise(step, greatest, least)
    zero_point = node.pointwise(
        lambda low, s: (0.0 - low.min(0.0) / s).max(0.0).min(255.0).round().convert(UINT8), least, scale
    )
    return node.add(Quantize(UINT8), x, scale, zero_point), scale, zero_point


@onnx_op("ConvInteger", since=10)
def ConvInteger(node: Node) -> Value:
    """Convolution of x and w without their zero points, with int32 sums."""
    return _integer_conv(node, node.input(0), node.optional(2), node.input(1), node.optional(3))


def _integer_conv(
    node: Node, x: Value, x_zero: Value | None, w: Value, w_zero: Value | None, bias: Value | None = None
) -> Value:
    op = conv_op(node, w, INT32)
    w_zero = None if w_zero is None else _placed(node, w_zero, 0, w.rank)
    return node.add(op, without_zero_point(node, x, x_zero), without_zero_point(node, w, w_zero), bias)


def _placed(node: Node, parameter: Value, axis: int, rank: int) -> Value:
    """A vector with axes of 1 behind it, to stand at `axis` of a tensor of `rank`; a scalar as it is."""
    behind = rank - axis - 1
    if parameter.rank != 1 or behind < 1:
        return parameter
    return node.add(Unsqueeze(tuple(range(1, 1 + behind))), parameter)


def _requantized(node: Node, sums: Value, factors: Sequence[Value], zero_point: Value | None, dtype: DType) -> Value:
    """saturate(round(sums * a / b * c + zero point)) for the `factors` a, b (the result's scale) and c, in float32."""
    a, b, c = (node.builder.convert(factor, FLOAT32) for factor in factors)
    factor = node.pointwise(lambda a, b, c: a * c / b, a, b, c)
    scaled = node.pointwise(lambda s, f: s.convert(FLOAT32) * f, sums, factor)
    return requantized(node, scaled, zero_point, dtype)


def requantized(node: Node, scaled: Value, zero_point: Value | None, dtype: DType) -> Value:
    """saturate(round(scaled + zero point)) of numbers in units of the result's scale."""
    unit = node.constant(np.array(1, np.float32))
    return node.add(Quantize(dtype), scaled, unit, *([] if zero_point is None else [zero_point]))


@onnx_op("QLinearConv", since=10)
def QLinearConv(node: Node) -> Value:
    """A convolution of quantised tensors, quantised again; the weight's scale and zero point may be per channel."""
    return quantized_conv(node, node.input(0))


def quantized_conv(node: Node, x: Value) -> Value:
    """QLinearConv of `x [N, C, …]`, with all else from the node."""
    x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (node.input(index) for index in range(1, 8))
    sums = _integer_conv(node, x, x_zero, w, w_zero, node.optional(8))
    return _requantized(node, sums, (x_scale, y_scale, _placed(node, w_scale, 1, x.rank)), y_zero, y_zero.dtype)


@onnx_op("QLinearMatMul", since=10)
def QLinearMatMul(node: Node) -> Value:
    """A product of quantised matrices, quantised again; scales and zero points per tensor, row of a or column of b."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (node.input(index) for index in range(8))
    rows = _placed(node, a_scale, a.rank - 2, a.rank)
    if any(kind.is_float for kind in (a.dtype, b.dtype, y_zero.dtype)):
        left = _without_zero(node, a, _placed(node, a_zero, a.rank - 2, a.rank))
        sums = node.add(Dot(), left, _without_zero(node, b, b_zero))
        factors = (node.builder.convert(factor, FLOAT32) for factor in (rows, b_scale))
        product = node.pointwise(lambda s, p, q: s * p * q, sums, *factors)
        return node.add(
            Quantize(y_zero.dtype, axis=max(product.rank - 1, 0)),
            product,
            node.builder.convert(y_scale, FLOAT32),
            y_zero,
        )
    sums = integer_dot(node, a, a_zero, b, b_zero)
    return _requantized(node, sums, (rows, y_scale, b_scale), y_zero, y_zero.dtype)


def _without_zero(node: Node, x: Value, zero_point: Value) -> Value:
    """`x - zero_point` in float32, where one of the tensors of a product holds eight-bit floats."""
    if zero_point.dtype is not x.dtype:
        node.fail(f"the zero point of a tensor of {x.dtype} has type {zero_point.dtype}")
    return node.pointwise(lambda value, zero: value.convert(FLOAT32) - zero.convert(FLOAT32), x, zero_point)
