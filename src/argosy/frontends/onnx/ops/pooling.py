"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.convolution import read_auto_pad, read_pads
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value
from argosy.ops.pooling import Pool
from argosy.ops.reduce import Reduce


def pool_op(
    node: Node,
    kind: str,
    *,
    p: int = 2,
    with_indices: bool = False,
    column_major: bool = False,
    count_pads: bool = False,
) -> Pool:
    """The op that the node's attributes describe."""
    kernel = node.attr_ints("kernel_shape")
    ones = (1,) * len(kernel)
    return Pool(
        kind,
        kernel,
        node.attr_ints("strides", ones),
        read_pads(node, len(kernel)),
        node.attr_ints("dilations", ones),
        read_auto_pad(node),
        node.attr_flag("ceil_mode"),
        count_pads,
        p,
        with_indices,
        column_major,
    )


@onnx_op("MaxPool")
def MaxPool(node: Node) -> Sequence[Value]:
    """The greatest element of every window, and where it is."""
    column_major = node.attr_flag("storage_order")
    return node.add_all(pool_op(node, "max", with_indices=node.wants(1), column_major=column_major), node.input(0))


@onnx_op("AveragePool")
def AveragePool(node: Node) -> Value:
    """The average of every window."""
    return node.add(pool_op(node, "average", count_pads=node.attr_flag("count_include_pad")), node.input(0))


@onnx_op("LpPool")
def LpPool(node: Node) -> Value:
    """The p-norm of every window; in opset 1 `p` is a float."""
    if node.version >= 2:
        return node.add(pool_op(node, "lp", p=node.attr_int("p", 2)), node.input(0))
    p = node.attr_float("p", 2.0)
    if math.isfinite(p) and not p.is_integer():
        node.unsupported(f"attribute 'p' is {p:g}, expected a whole number")
    if not 0 < p < 2.0**63:
        node.fail(f"attribute 'p' is {p:g}, expected a positive number")
    return node.add(pool_op(node, "lp", p=int(p)), node.input(0))


def _reduce_spatial(node: Node, kind: str, x: Value) -> Value:
    return node.add(Reduce(kind, tuple(range(2, x.rank))), x) if x.rank > 2 else x


@onnx_op("GlobalMaxPool")
def GlobalMaxPool(node: Node) -> Value:
    """The greatest element over all spatial axes."""
    return _reduce_spatial(node, "max", node.input(0))


@onnx_op("GlobalAveragePool")
def GlobalAveragePool(node: Node) -> Value:
    """The average over all spatial axes."""
    return _reduce_spatial(node, "mean", node.input(0))


@onnx_op("GlobalLpPool")
def GlobalLpPool(node: Node) -> Value:
    """The p-norm over all spatial axes; in opset 1 `p` is a float."""
    p = node.attr_float("p", 2.0) if node.version < 2 else float(node.attr_int("p", 2))
    if not 0 < p < math.inf:
        node.fail(f"attribute 'p' is {p:g}, expected a positive number")
    x = node.input(0)
    wide = x.dtype.compute
    if p == 2.0:
        powers = node.pointwise(lambda x: x * x, node.builder.convert(x, wide))
    else:
        powers = node.pointwise(lambda x: x.abs().pow(p), node.builder.convert(x, wide))
    total = _reduce_spatial(node, "sum", powers)
    norm = node.pointwise("sqrt", total) if p == 2.0 else node.pointwise(lambda s: s.pow(1.0 / p), total)
    return node.builder.convert(norm, x.dtype)
