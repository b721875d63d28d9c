"""Gradient of ai.onnx.preview.training: derivatives of the graph that the node stands in.

Its attributes name tensors of that graph: the part of it from `xs` and `zs` to `y` is differentiated by each of `xs`.
The inputs are the values of `xs` and `zs` at which that is done, in most models these tensors themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Constant, Parameter, Value
from argosy.rewrite.gradient import gradients


@onnx_op("Gradient", domain="ai.onnx.preview.training")
def Gradient(node: Node) -> Sequence[Value]:
    """The gradient of the sum of y's elements by each of xs."""
    xs, zs = node.attr_strings("xs"), node.attr_strings("zs", ())
    names = (*xs, *zs)
    if len(node.inputs) != len(names):
        node.fail(f"has {len(node.inputs)} inputs, expected {len(names)}: a value for each name in 'xs' and 'zs'")
    if len(set(names)) != len(names):
        node.fail(f"'xs' and 'zs' are {', '.join(names)}, expected different names")
    if node.output_count != len(xs):
        node.fail(f"has {node.output_count} outputs, expected {len(xs)}: one for each name in 'xs'")
    cut = [_named(node, name) for name in names]
    name = node.attr_string("y")
    y = node.scope.find(name, f"{node.label}: attribute 'y'")
    if y not in cut and isinstance(y.instruction.op, Constant | Parameter):
        node.fail(f"'y' is {name!r}, which no node of this graph computes", hint="name a tensor that depends on 'xs'")
    at = [node.input(index) for index in range(len(names))]
    return gradients(node.builder, y, cut[: len(xs)], cut[len(xs) :], at)


def _named(node: Node, name: str) -> Value:
    """A tensor of `xs` or `zs`, which must not be another name of a tensor that is there too."""
    scope = node.scope
    value = scope.find(name, f"{node.label}: attributes 'xs' and 'zs'")
    first = next(other for other, found in scope.names.items() if found == value)
    if first != name:
        node.unsupported(
            f"{name!r} is the same tensor as {first!r}, so that the graph can't be cut at it alone",
            hint=f"name {first!r} in its place",
        )
    return value
