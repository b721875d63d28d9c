"""Opsets 1 to 6: binary ops whose second operand is broadcast only where `broadcast` says so, along `axis`."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.arithmetic import BINARY, MIRRORED
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import equal
from argosy.ir.module import Value
from argosy.ops.view import Unsqueeze

_BINARY = [name for name in BINARY if not name.startswith("Bitwise") and name != "LessOrEqual"]


@onnx_op(*_BINARY, "Greater")
def legacy_binary(node: Node) -> Value:
    """One primitive of two operands; the second is stretched to the first one's shape."""
    node.ignore("consumed_inputs")
    left, right = node.input(0), node.input(1)
    if node.attr_flag("broadcast"):
        axis = node.attr_int("axis") if node.has("axis") else None
        right = align(node, right, left, axis)
    else:
        node.ignore("axis")
        _check_equal(node, left, right)
    if node.proto.op_type in MIRRORED:
        return node.pointwise(MIRRORED[node.proto.op_type], right, left)
    return node.pointwise(BINARY[node.proto.op_type], left, right)


def align(node: Node, value: Value, target: Value, axis: int | None) -> Value:
    """`value` with dims of 1 behind it, so that its first dim stands at `axis` of `target`.

    Without an axis the last dims match, as they do without our help. A value of one element fits anywhere.
    """
    if axis is None or all(isinstance(dim, int) and dim == 1 for dim in value.shape):
        return value
    first = axis + target.rank if axis < 0 else axis
    behind = target.rank - first - value.rank
    if first < 0 or behind < 0:
        node.fail(f"the shape {list(value.shape)} does not fit into {list(target.shape)} at axis {axis}")
    if behind == 0:
        return value
    return node.add(Unsqueeze(tuple(range(value.rank, value.rank + behind))), value)


def _check_equal(node: Node, left: Value, right: Value) -> None:
    """Raise ModelError where the shapes are known to differ."""
    if left.tensor.dims is None or right.tensor.dims is None:
        return
    pairs = zip(left.shape, right.shape, strict=False)
    if left.rank != right.rank or any(equal(a, b) is False for a, b in pairs):
        node.fail(
            f"the shapes {list(left.shape)} and {list(right.shape)} differ and 'broadcast' is not set",
            hint="before opset 7 nothing is broadcast without that attribute",
        )
