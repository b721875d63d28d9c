"""Col2Im: blocks summed back into an image."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value
from argosy.ops.col2im import Col2Im

__all__: list[str] = []


@onnx_op("Col2Im", since=18)
def col2im(node: Node) -> Value:
    """Image and block shapes are inputs."""
    names = ("strides", "pads", "dilations")
    strides, pads, dilations = (node.attr_ints(name) if node.has(name) else None for name in names)
    return node.add(Col2Im(strides, pads, dilations), node.input(0), node.input(1), node.input(2))
