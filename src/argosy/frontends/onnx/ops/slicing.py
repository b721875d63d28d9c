"""Slice and Pad in all their versions: attributes first, inputs later."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value
from argosy.ops.view import Pad, Slice

__all__: list[str] = []

_MODES = ("constant", "reflect", "edge")


@onnx_op("Slice", since=10)
def slice_(node: Node) -> Value:
    """Starts, ends, axes and steps are inputs."""
    return node.add(Slice(), node.input(0), node.input(1), node.input(2), node.optional(3), node.optional(4))


@onnx_op("Slice")
def slice_1(node: Node) -> Value:
    """Before opset 10: starts, ends and axes are attributes, and all steps are 1."""
    axes = node.attr_ints("axes") if node.has("axes") else None
    return node.add(Slice(node.attr_ints("starts"), node.attr_ints("ends"), axes), node.input(0))


@onnx_op("Pad", since=11)
def pad(node: Node) -> Value:
    """Pads, value and (opset 18) axes are inputs; the mode wrap came with opset 19."""
    mode = node.attr_choice("mode", "constant", (*_MODES, "wrap"))
    return node.add(Pad(mode), node.input(0), node.input(1), node.optional(2), node.optional(3))


@onnx_op("Pad", since=2)
def pad_2(node: Node) -> Value:
    """Before opset 11: pads and value are attributes."""
    return _pad_by_attributes(node, "pads")


@onnx_op("Pad")
def pad_1(node: Node) -> Value:
    """Opset 1: the pads are called paddings."""
    return _pad_by_attributes(node, "paddings")


def _pad_by_attributes(node: Node, name: str) -> Value:
    x, mode, value = node.input(0), node.attr_choice("mode", "constant", _MODES), node.attr_float("value", 0.0)
    fill = node.constant(value, x.dtype) if mode == "constant" and value != 0.0 else None
    return node.add(Pad(mode, node.attr_ints(name)), x, None, fill)
