"""Activations of com.microsoft (ONNX Runtime, docs/ContribOperators.md)."""

from __future__ import annotations

from argosy.frontends.onnx.contrib import contrib_op
from argosy.frontends.onnx.formulas import gelu, gelu_tanh, sigmoid
from argosy.frontends.onnx.node import Node
from argosy.ir.dim import equal
from argosy.ir.module import Value
from argosy.ops.joining import Split


def _check_bias(node: Node) -> None:
    """The bias (input 1) should be a vector along the last axis of input 0; one that broadcasts to it is let pass."""
    x, bias = node.input(0), node.input(1)
    if x.rank == 0:
        node.fail(f"the input is {x.type}, expected at least one axis")
    if bias.rank != 1 or equal(bias.shape[0], x.shape[-1]) is False:
        node.lenient(f"the bias is {bias.type}, expected [{x.shape[-1]}]: an element for each of the last axis of x")


@contrib_op("Gelu", "X:F")
def Gelu(node: Node) -> Value:
    """The exact gelu, by erf."""
    return node.pointwise(gelu, node.input(0))


@contrib_op("BiasGelu", "A:F B:F")
def BiasGelu(node: Node) -> Value:
    """The exact gelu of x + bias, the bias lying along the last axis."""
    _check_bias(node)
    return node.pointwise(lambda x, bias: gelu(x + bias), node.input(0), node.input(1))


@contrib_op("FastGelu", "X:F bias:F?")
def FastGelu(node: Node) -> Value:
    """The gelu by tanh of x, or of x + bias."""
    x, bias = node.input(0), node.optional(1)
    if bias is None:
        return node.pointwise(gelu_tanh, x)
    _check_bias(node)
    return node.pointwise(lambda x, bias: gelu_tanh(x + bias), x, bias)


@contrib_op("QuickGelu", "X:F")
def QuickGelu(node: Node) -> Value:
    """The product of x and sigmoid(alpha x)."""
    alpha = node.attr_float("alpha", 1.702)
    return node.pointwise(lambda x: x * sigmoid(x * alpha), node.input(0))


@contrib_op("BiasAdd", "X:F bias:F skip:F")
def BiasAdd(node: Node) -> Value:
    """The sum x + bias + skip, the bias lying along the last axis."""
    _check_bias(node)
    return node.pointwise(lambda x, bias, skip: x + bias + skip, node.input(0), node.input(1), node.input(2))


@contrib_op("BiasSplitGelu", "X:F bias:F")
def BiasSplitGelu(node: Node) -> Value:
    """The first half of x + bias along the last axis, times the exact gelu of the second half."""
    _check_bias(node)
    biased = node.pointwise("add", node.input(0), node.input(1))
    left, right = node.add_all(Split(biased.rank - 1, 2), biased)
    return node.pointwise(lambda left, right: left * gelu(right), left, right)
