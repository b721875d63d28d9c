"""Element-wise ops that ONNX had as experimental until opset 10, and that ONNX Runtime still runs."""

from __future__ import annotations

from argosy.frontends.onnx.formulas import softplus
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.legacy import align
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import dtype
from argosy.ir.module import Value


@onnx_op("Affine")
def Affine(node: Node) -> Value:
    """Alpha x + beta."""
    alpha, beta = node.attr_float("alpha", 1.0), node.attr_float("beta", 0.0)
    return node.pointwise(lambda x: x * alpha + beta, node.input(0))


@onnx_op("Scale")
def Scale(node: Node) -> Value:
    """Scale x."""
    scale = node.attr_float("scale", 1.0)
    return node.pointwise(lambda x: x * scale, node.input(0))


@onnx_op("ScaledTanh")
def ScaledTanh(node: Node) -> Value:
    """Alpha tanh(beta x)."""
    alpha, beta = node.attr_float("alpha"), node.attr_float("beta")
    return node.pointwise(lambda x: (x * beta).tanh() * alpha, node.input(0))


@onnx_op("ParametricSoftplus")
def ParametricSoftplus(node: Node) -> Value:
    """Alpha log(1 + e^(beta x))."""
    alpha, beta = node.attr_float("alpha"), node.attr_float("beta")
    return node.pointwise(lambda x: softplus(x * beta) * alpha, node.input(0))


@onnx_op("ImageScaler")
def ImageScaler(node: Node) -> Value:
    """Scale x + bias, with a bias for each channel (axis 1)."""
    x = node.input(0)
    scale = node.attr_float("scale", 1.0)
    bias = align(node, node.constant(list(node.attr_floats("bias")), dtype("float32")), x, 1)
    return node.pointwise(lambda x, bias: x * scale + bias, x, node.builder.convert(bias, x.dtype))
