"""Ops of com.microsoft on 8-bit tensors, each its float op between Dequantize and Quantize.

Semantics: ONNX Runtime, docs/ContribOperators.md. A scale and a zero point belong to a whole tensor; an absent
zero point is 0.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.frontends.onnx.contrib import contrib_op
from argosy.frontends.onnx.formulas import sigmoid
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.contrib_convolution import channels_first, channels_last
from argosy.frontends.onnx.ops.pooling import pool_op
from argosy.frontends.onnx.ops.quantization import quantized_conv
from argosy.frontends.onnx.registry import CONTRIB, onnx_op
from argosy.ir.dim import equal
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Value
from argosy.ops.joining import Concat
from argosy.ops.quantize import Dequantize, Quantize
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.view import Reshape


def dequantized(node: Node, index: int, x: Value | None = None) -> Value:
    """Input `index` in float32, by the scale and the zero point that follow it; or `x` in its place."""
    scale, zero_point = _parameters(node, index + 1)
    return node.add(Dequantize(FLOAT32), x or node.input(index), scale, zero_point)


def _quantized(node: Node, x: Value, index: int) -> Value:
    """`x` by the scale at input `index` and the zero point behind it, in the type of the node's 8-bit input."""
    scale, zero_point = _parameters(node, index)
    dtype = zero_point.dtype if zero_point is not None else node.input(0).dtype
    return node.add(Quantize(dtype), x, scale, zero_point)


def _parameters(node: Node, index: int) -> tuple[Value, Value | None]:
    """The scale at input `index` and the zero point behind it, each of one element."""
    scale, zero_point = node.input(index), node.optional(index + 1)
    for place, value in ((index, scale), (index + 1, zero_point)):
        if value is not None and equal(product(value.shape), 1) is False:
            node.fail(f"input {place} is {value.type}, expected one element")
    return scale, zero_point


@contrib_op("QLinearAdd", "A:Q A_scale:R A_zero_point:Q? B:Q B_scale:R B_zero_point:Q? C_scale:R C_zero_point:Q?")
def QLinearAdd(node: Node) -> Value:
    """A + B."""
    return _quantized(node, node.pointwise("add", dequantized(node, 0), dequantized(node, 3)), 6)


@contrib_op("QLinearMul", "A:Q A_scale:R A_zero_point:Q? B:Q B_scale:R B_zero_point:Q? C_scale:R C_zero_point:Q?")
def QLinearMul(node: Node) -> Value:
    """A B, element by element."""
    return _quantized(node, node.pointwise("mul", dequantized(node, 0), dequantized(node, 3)), 6)


@contrib_op("QLinearLeakyRelu", "X:Q X_scale:R X_zero_point:Q? Y_scale:R Y_zero_point:Q?")
def QLinearLeakyRelu(node: Node) -> Value:
    """X, its negative part times alpha."""
    alpha = node.attr_float("alpha", 0.01)
    return _mapped(node, lambda x: node.pointwise(lambda x: (x < 0.0).select(x * alpha, x), x))


@contrib_op("QLinearSigmoid", "X:Q X_scale:R X_zero_point:Q? Y_scale:R Y_zero_point:Q?")
def QLinearSigmoid(node: Node) -> Value:
    """Sigmoid of X."""
    return _mapped(node, lambda x: node.pointwise(sigmoid, x))


def _mapped(node: Node, function: Callable[[Value], Value], x: Value | None = None) -> Value:
    """`function` of the first input (or of `x`, which is it rearranged), for the ops of one tensor."""
    return _quantized(node, function(dequantized(node, 0, x)), 3)


@contrib_op("QLinearSoftmax", "X:Q X_scale:R x_zero_point:Q? y_scale:R y_zero_point:Q")
def QLinearSoftmax(node: Node) -> Value:
    """Softmax over an axis, or for `opset` below 13 over all axes from it on together."""
    x = node.input(0)
    flattens = node.attr_int("opset") < 13
    axis = normalize_axis(node.attr_int("axis", -1), x.rank)

    def softmax(x: Value) -> Value:
        if not flattens:
            return node.add(Softmax(axis), x)
        flat = node.add(Reshape((product(x.shape[:axis]), product(x.shape[axis:])), allow_zero=True), x)
        return node.add(Reshape(x.shape, allow_zero=True), node.add(Softmax(-1), flat))

    return _mapped(node, softmax)


_POOLED = "X:Q x_scale:R x_zero_point:Q? y_scale:R y_zero_point:Q?"


@contrib_op("QLinearAveragePool", _POOLED)
def QLinearAveragePool(node: Node) -> Value:
    """The average of every window; channels come last where `channels_last`."""
    op = pool_op(node, "average", count_pads=node.attr_flag("count_include_pad"))
    return _pooled(node, lambda x: node.add(op, x))


@contrib_op("QLinearGlobalAveragePool", _POOLED)
def QLinearGlobalAveragePool(node: Node) -> Value:
    """The average over all spatial axes; channels come last where `channels_last`."""
    return _pooled(node, lambda x: node.add(Reduce("mean", tuple(range(2, x.rank))), x))


def _pooled(node: Node, function: Callable[[Value], Value]) -> Value:
    """`function` of the first input as `[N, C, …]`."""
    if not node.attr_flag("channels_last"):
        return _mapped(node, function)
    return channels_last(node, _mapped(node, function, channels_first(node, node.input(0))))


@contrib_op("QLinearReduceMean", "data:Q data_scale:R data_zero_point:Q? reduced_scale:R reduced_zero_point:Q?")
def QLinearReduceMean(node: Node) -> Value:
    """The mean over `axes`."""
    op = Reduce("mean", node.attr_ints("axes", ()), node.attr_flag("keepdims", default=True))
    return _mapped(node, lambda x: node.add(op, x))


@contrib_op(
    "QLinearWhere",
    "condition:B X:Q x_scale:R x_zero_point:Q Y:Q y_scale:R y_zero_point:Q z_scale:R z_zero_point:Q",
)
def QLinearWhere(node: Node) -> Value:
    """X where the condition is true, else Y."""
    chosen = node.pointwise("select", node.input(0), dequantized(node, 1), dequantized(node, 4))
    return _quantized(node, chosen, 7)


@onnx_op("QLinearConcat", domain=CONTRIB)
def QLinearConcat(node: Node) -> Value:
    """The tensors (each followed by its scale and zero point) one after another, by the first two inputs."""
    if len(node.inputs) < 5 or len(node.inputs) % 3 != 2:
        node.fail(f"has {len(node.inputs)} inputs, expected a scale, a zero point, and three for each tensor")
    parts = [dequantized(node, index) for index in range(2, len(node.inputs), 3)]
    joined, zero_point = node.add(Concat(node.attr_int("axis")), *parts), node.input(1)
    return node.add(Quantize(zero_point.dtype), joined, node.input(0), zero_point)


@contrib_op(
    "QLinearConv",
    "x:Q1 x_scale:R x_zero_point:Q1 w:Q2 w_scale:R w_zero_point:Q2 y_scale:R y_zero_point:Q3 B:S?",
)
def QLinearConv(node: Node) -> Value:
    """QLinearConv of the standard; channels come last where `channels_last`."""
    if not node.attr_flag("channels_last"):
        return quantized_conv(node, node.input(0))
    return channels_last(node, quantized_conv(node, channels_first(node, node.input(0))))
