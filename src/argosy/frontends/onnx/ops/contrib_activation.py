"""Activations of com.microsoft (ONNX Runtime, docs/ContribOperators.md)."""

from __future__ import annotations

from argosy.frontends.onnx.formulas import gelu, gelu_tanh, sigmoid
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import CONTRIB, onnx_op
from argosy.ir.module import Value
from argosy.ops.joining import Split


@onnx_op("Gelu", domain=CONTRIB)
def Gelu(node: Node) -> Value:
    """The exact gelu, by erf."""
    return node.pointwise(gelu, node.input(0))


@onnx_op("BiasGelu", domain=CONTRIB)
def BiasGelu(node: Node) -> Value:
    """The exact gelu of x + bias, the bias lying along the last axis."""
    return node.pointwise(lambda x, bias: gelu(x + bias), node.input(0), node.input(1))


@onnx_op("FastGelu", domain=CONTRIB)
def FastGelu(node: Node) -> Value:
    """The gelu by tanh of x, or of x + bias."""
    x, bias = node.input(0), node.optional(1)
    if bias is None:
        return node.pointwise(gelu_tanh, x)
    return node.pointwise(lambda x, bias: gelu_tanh(x + bias), x, bias)


@onnx_op("QuickGelu", domain=CONTRIB)
def QuickGelu(node: Node) -> Value:
    """The product of x and sigmoid(alpha x)."""
    alpha = node.attr_float("alpha", 1.702)
    return node.pointwise(lambda x: x * sigmoid(x * alpha), node.input(0))


@onnx_op("BiasAdd", domain=CONTRIB)
def BiasAdd(node: Node) -> Value:
    """The sum x + bias + skip, the bias lying along the last axis."""
    return node.pointwise(lambda x, bias, skip: x + bias + skip, node.input(0), node.input(1), node.input(2))


@onnx_op("BiasSplitGelu", domain=CONTRIB)
def BiasSplitGelu(node: Node) -> Value:
    """The first half of x + bias along the last axis, times the exact gelu of the second half."""
    biased = node.pointwise("add", node.input(0), node.input(1))
    left, right = node.add_all(Split(biased.rank - 1, 2), biased)
    return node.pointwise(lambda left, right: left * gelu(right), left, right)
