"""Ops that order or accumulate: TopK, Unique, NonMaxSuppression, CumSum, CumProd."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import INT64
from argosy.ir.module import Value
from argosy.ops.scan import Cumulative
from argosy.ops.sort import NonMaxSuppression, TopK, Unique

__all__: list[str] = []


@onnx_op("TopK", since=10)
def topk(node: Node) -> Sequence[Value]:
    """`k` is an input; `largest` and `sorted` came with opset 11."""
    largest, ordered = node.attr_flag("largest", default=True), node.attr_flag("sorted", default=True)
    op = TopK(node.attr_int("axis", -1), largest, ordered)
    return node.add_all(op, node.input(0), node.input(1))


@onnx_op("TopK")
def topk_1(node: Node) -> Sequence[Value]:
    """Before opset 10: `k` is an attribute."""
    return node.add_all(TopK(node.attr_int("axis", -1)), node.input(0), node.constant([node.attr_int("k")], INT64))


@onnx_op("Unique", since=11)
def unique(node: Node) -> Sequence[Value]:
    """Distinct elements, or slices along `axis`."""
    axis = node.attr_int("axis") if node.has("axis") else None
    return node.add_all(Unique(axis, node.attr_flag("sorted", default=True)), node.input(0))


@onnx_op("NonMaxSuppression", since=10)
def non_max_suppression(node: Node) -> Value:
    """Without a limit of boxes for each class none is selected."""
    op = NonMaxSuppression(node.attr_flag("center_point_box"))
    return node.add(op, node.input(0), node.input(1), node.optional(2), node.optional(3), node.optional(4))


@onnx_op("CumSum", since=11)
def cumsum(node: Node) -> Value:
    """Running sums along an axis that is an input."""
    op = Cumulative("sum", node.attr_flag("exclusive"), node.attr_flag("reverse"))
    return node.add(op, node.input(0), node.input(1))


@onnx_op("CumProd", since=26)
def cumprod(node: Node) -> Value:
    """Running products along an axis that is an input."""
    op = Cumulative("prod", node.attr_flag("exclusive"), node.attr_flag("reverse"))
    return node.add(op, node.input(0), node.input(1))
