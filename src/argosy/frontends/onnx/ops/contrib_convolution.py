"""Convolutions of com.microsoft: channels last, with an activation (ONNX Runtime, docs/ContribOperators.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.frontends.onnx.contrib import contrib_op
from argosy.frontends.onnx.formulas import sigmoid
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.convolution import conv_op
from argosy.frontends.onnx.ops.matmul import gemm
from argosy.frontends.onnx.ops.pooling import pool_op
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.view import Transpose

# Activation to how many parameters it takes, and its formula.
_ACTIVATIONS: dict[str, tuple[int, Callable[..., Expr]]] = {
    "Relu": (0, lambda x: x.max(0.0)),
    "Tanh": (0, lambda x: x.tanh()),
    "Sigmoid": (0, sigmoid),
    "LeakyRelu": (1, lambda x, alpha: (x < 0.0).select(x * alpha, x)),
    "Clip": (2, lambda x, low, high: x.max(low).min(high)),
    "HardSigmoid": (2, lambda x, alpha, beta: (x * alpha + beta).max(0.0).min(1.0)),
}


def channels_first(node: Node, x: Value) -> Value:
    """`x [N, …, C]` as `[N, C, …]`."""
    return node.add(Transpose((0, x.rank - 1, *range(1, x.rank - 1))), x)


def channels_last(node: Node, x: Value) -> Value:
    """`x [N, C, …]` as `[N, …, C]`."""
    return node.add(Transpose((0, *range(2, x.rank), 1)), x)


def _activated(node: Node, name: str, parameters: Sequence[float], x: Value) -> Value:
    """The activation that the node names applied to `x`; `x` itself where `name` is empty."""
    if not name:
        return x
    row = _ACTIVATIONS.get(name)
    if row is None:
        node.unsupported(f"activation {name!r} is not known", hint=f"known: {', '.join(_ACTIVATIONS)}")
    count, formula = row
    if len(parameters) < count:
        node.fail(f"{name} takes {count} parameters, {len(parameters)} are given")
    return node.pointwise(lambda x: formula(x, *parameters[:count]), x)


def _convolved(node: Node, x: Value) -> Value:
    """The convolution of `x [N, C, …]`."""
    weight, bias = node.input(1), node.optional(2)
    return node.add(conv_op(node, weight), x, weight, bias)


def _fused(node: Node, x: Value, addend: Value | None) -> Value:
    y = _convolved(node, x)
    if addend is not None:
        y = node.pointwise("add", y, addend)
    return _activated(node, node.attr_string("activation", ""), node.attr_floats("activation_params", ()), y)


@contrib_op("NhwcConv", "X:F W:F B:F?")
def NhwcConv(node: Node) -> Value:
    """Conv on `[N, …, C]`; the weight is `[M, C / group, …]` all the same."""
    return channels_last(node, _convolved(node, channels_first(node, node.input(0))))


@contrib_op("FusedConv", "X:F W:F B:F? Z:F?")
def FusedConv(node: Node) -> Value:
    """Conv, plus Z, under an activation."""
    return _fused(node, node.input(0), node.optional(3))


@contrib_op("NhwcFusedConv", "X:F W:F B:F? Z:F?")
def NhwcFusedConv(node: Node) -> Value:
    """FusedConv on `[N, …, C]`."""
    addend = node.optional(3)
    moved = None if addend is None else channels_first(node, addend)
    return channels_last(node, _fused(node, channels_first(node, node.input(0)), moved))


@contrib_op("NhwcMaxPool", "x:Q")
def NhwcMaxPool(node: Node) -> Value:
    """MaxPool on `[N, …, C]`."""
    return channels_last(node, node.add(pool_op(node, "max"), channels_first(node, node.input(0))))


@contrib_op("FusedGemm", "A:F B:F C:F?")
def FusedGemm(node: Node) -> Value:
    """Gemm under an activation."""
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    parameters = [node.attr_float(name) for name in names if node.has(name)]
    return _activated(node, node.attr_string("activation", ""), parameters, gemm(node))
