"""Ops that pick or place elements by index: Gather and relatives, Where, OneHot, Range, Compress."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value
from argosy.ops.index import Gather

__all__: list[str] = []


@onnx_op("Where", since=9)
def where(node: Node) -> Value:
    """The second input where the condition is true, else the third, broadcast."""
    return node.pointwise("select", node.input(0), node.input(1), node.input(2))


@onnx_op("Gather")
def gather(node: Node) -> Value:
    """Slices of the data along `axis`, in the places of the indices."""
    return node.add(Gather(node.attr_int("axis", 0)), node.input(0), node.input(1))
