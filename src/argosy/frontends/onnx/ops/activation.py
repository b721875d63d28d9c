"""Activations: a formula each, with the attributes as its constants."""

from __future__ import annotations

import math

from argosy.frontends.onnx.formulas import gelu, gelu_tanh, sigmoid, softplus
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.legacy import align
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import FLOAT32, FLOAT64
from argosy.ir.module import Value


@onnx_op("Relu")
def Relu(node: Node) -> Value:
    """max(x, 0)."""
    node.ignore("consumed_inputs")
    return node.pointwise(lambda x: x.max(0), node.input(0))


@onnx_op("LeakyRelu")
def LeakyRelu(node: Node) -> Value:
    """Alpha x below zero, x from there on."""
    node.ignore("consumed_inputs")
    alpha = node.attr_float("alpha", 0.01)
    return node.pointwise(lambda x: (x < 0.0).select(x * alpha, x), node.input(0))


@onnx_op("PRelu", since=7)
def PRelu(node: Node) -> Value:
    """Slope x below zero, x from there on; the slope is broadcast to x."""
    return node.pointwise(lambda x, slope: (x < 0).select(x * slope, x), node.input(0), node.input(1))


@onnx_op("PRelu")
def PRelu_1(node: Node) -> Value:
    """The forms before opset 7: one slope for all, or one for each channel (axis 1)."""
    node.ignore("consumed_inputs")
    x, slope = node.input(0), node.input(1)
    if slope.rank == 1 and x.rank > 1:
        slope = align(node, slope, x, 1)
    return node.pointwise(lambda x, slope: (x < 0.0).select(x * slope, x), x, slope)


@onnx_op("Elu")
def Elu(node: Node) -> Value:
    """Alpha (e^x - 1) below zero, x from there on."""
    node.ignore("consumed_inputs")
    alpha = node.attr_float("alpha", 1.0)
    return node.pointwise(lambda x: (x < 0.0).select(x.expm1() * alpha, x), node.input(0))


@onnx_op("Celu", since=28)
def Celu(node: Node) -> Value:
    """max(0, x) + min(0, alpha (e^(x/alpha) - 1))."""
    alpha = node.attr_float("alpha", 1.0)
    return node.pointwise(lambda x: x.max(0.0) + ((x / alpha).expm1() * alpha).min(0.0), node.input(0))


@onnx_op("Celu", since=12)
def Celu_12(node: Node) -> Value:
    """The same for float32 alone, before opset 28."""
    if node.input(0).dtype is not FLOAT32:
        node.fail(f"the input is {node.input(0).dtype}, expected float32: other types came with opset 28")
    return Celu(node)


def _selu(node: Node, alpha: float, gamma: float) -> Value:
    alpha, gamma = node.attr_float("alpha", alpha), node.attr_float("gamma", gamma)
    return node.pointwise(lambda x: (x > 0.0).select(x, x.expm1() * alpha) * gamma, node.input(0))


@onnx_op("Selu", since=6)
def Selu(node: Node) -> Value:
    """Gamma alpha (e^x - 1) up to zero, gamma x above."""
    return _selu(node, 1.6732631921768188, 1.0507010221481323)  # the schema's numbers, which are float32


@onnx_op("Selu")
def Selu_1(node: Node) -> Value:
    """The same with the rounder constants of opset 1."""
    node.ignore("consumed_inputs")
    return _selu(node, 1.6732, 1.0507)


@onnx_op("ThresholdedRelu", since=10)
def ThresholdedRelu(node: Node) -> Value:
    """The x above alpha, 0 elsewhere."""
    alpha = node.attr_float("alpha", 1.0)
    return node.pointwise(lambda x: (x > alpha).select(x, 0.0), node.input(0))


@onnx_op("HardSigmoid")
def HardSigmoid(node: Node) -> Value:
    """max(0, min(1, alpha x + beta))."""
    node.ignore("consumed_inputs")
    alpha, beta = node.attr_float("alpha", 0.2), node.attr_float("beta", 0.5)
    return node.pointwise(lambda x: (x * alpha + beta).min(1.0).max(0.0), node.input(0))


@onnx_op("HardSwish", since=14)
def HardSwish(node: Node) -> Value:
    """The product of x and max(0, min(1, x/6 + 1/2))."""
    return node.pointwise(lambda x: x * (x * (1.0 / 6.0) + 0.5).min(1.0).max(0.0), node.input(0))


@onnx_op("Sigmoid")
def Sigmoid(node: Node) -> Value:
    """1 / (1 + e^-x)."""
    node.ignore("consumed_inputs")
    return node.pointwise(sigmoid, node.input(0))


@onnx_op("Softplus")
def Softplus(node: Node) -> Value:
    """log(1 + e^x)."""
    return node.pointwise(softplus, node.input(0))


@onnx_op("Softsign")
def Softsign(node: Node) -> Value:
    """The quotient of x and 1 + |x|."""
    return node.pointwise(lambda x: x / (x.abs() + 1.0), node.input(0))


@onnx_op("Mish", since=18)
def Mish(node: Node) -> Value:
    """The product of x and tanh(softplus(x))."""
    return node.pointwise(lambda x: x * softplus(x).tanh(), node.input(0))


@onnx_op("Swish", since=24)
def Swish(node: Node) -> Value:
    """The product of x and sigmoid(alpha x)."""
    alpha = node.attr_float("alpha", 1.0)
    return node.pointwise(lambda x: x * sigmoid(x * alpha), node.input(0))


@onnx_op("Gelu", since=20)
def Gelu(node: Node) -> Value:
    """The product of x and the normal distribution function of x, by erf or by its tanh approximation."""
    approximate = node.attr_choice("approximate", "none", ("none", "tanh"))
    return node.pointwise(gelu_tanh if approximate == "tanh" else gelu, node.input(0))


@onnx_op("Clip", since=11)
def Clip(node: Node) -> Value:
    """min(max(x, low), high), so that everything is `high` where low > high; absent limits do not limit."""
    x, low, high = node.input(0), node.optional(1), node.optional(2)
    if low is not None and high is not None:
        return node.pointwise(lambda x, low, high: x.max(low).min(high), x, low, high)
    if low is not None:
        return node.pointwise("max", x, low)
    return x if high is None else node.pointwise("min", x, high)


@onnx_op("Clip", since=6)
def Clip_6(node: Node) -> Value:
    """Limits as attributes, whose defaults are the ends of float32: they turn its infinities into those ends."""
    limit = 3.4028234663852886e38
    low, high = node.attr_float("min", -limit), node.attr_float("max", limit)
    return node.pointwise(lambda x: x.max(low).min(high), node.input(0))


@onnx_op("Clip")
def Clip_1(node: Node) -> Value:
    """Limits as attributes without defaults."""
    node.ignore("consumed_inputs")
    low = node.attr_float("min") if node.has("min") else -math.inf
    high = node.attr_float("max") if node.has("max") else math.inf
    return node.pointwise(lambda x: x.max(low).min(high), node.input(0))


@onnx_op("Shrink", since=9)
def Shrink(node: Node) -> Value:
    """The x + bias below -lambd, x - bias above lambd, 0 between.

    Integers pass through float64 and are rounded towards zero after the addition, as in ONNX Runtime and the reference
    evaluator (the standard's function body would round the attributes before).
    """
    bias, limit = node.attr_float("bias", 0.0), node.attr_float("lambd", 0.5)
    x = node.input(0)
    wide = node.builder.convert(x, FLOAT64) if x.dtype.is_integer else x
    y = node.pointwise(lambda x: (x < -limit).select(x + bias, (x > limit).select(x - bias, 0.0)), wide)
    return node.builder.convert(y, x.dtype)
