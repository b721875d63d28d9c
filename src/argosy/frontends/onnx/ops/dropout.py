"""Dropout: in inference it passes its input on; in training it draws a mask."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.random import draw
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import BOOL, DType
from argosy.ir.formula import Expr
from argosy.ir.module import Value


@onnx_op("Dropout", since=12)
def Dropout(node: Node) -> list[Value | None]:
    """The data as it is, unless `training_mode` is true: then dropped with probability `ratio`, else scaled up.

    The generator is ours (see `argosy.ops.random`), so what is dropped differs from other engines.
    """
    seed = node.attr_int("seed", 0) & 0xFFFFFFFF
    if node.optional(2) is None or node.known_ints(2) == (False,) or node.known_ints(1) == (0.0,):
        return _inference(node, BOOL)
    x, training = node.input(0), node.input(2)
    wide = x.dtype.compute
    ratio = node.optional(1) or node.constant(0.5, wide)
    ratio = node.builder.convert(ratio, wide)
    drawn = draw(node, "uniform", wide, (0.0, 1.0), x.tensor.dims, x, seed)
    mask = node.pointwise(lambda drawn, ratio, training: (ratio <= drawn).or_(training.not_()), drawn, ratio, training)

    def passed(value: Expr, mask: Expr, ratio: Expr, training: Expr) -> Expr:
        scaled = training.select(value.convert(wide) / (1.0 - ratio), value.convert(wide))
        return mask.select(scaled, 0.0).convert(x.dtype)

    return [node.pointwise(passed, x, mask, ratio, training), mask]


@onnx_op("Dropout", since=10)
def Dropout_10(node: Node) -> list[Value | None]:
    """Always inference; the mask is bool."""
    node.ignore("ratio")
    return _inference(node, BOOL)


@onnx_op("Dropout", since=7)
def Dropout_7(node: Node) -> list[Value | None]:
    """Always inference; the mask has the type of the data."""
    node.ignore("ratio")
    return _inference(node, node.input(0).dtype)


@onnx_op("Dropout")
def Dropout_1(node: Node) -> list[Value | None]:
    """Inference where `is_test` says so; the mask has the type of the data."""
    node.ignore("consumed_inputs")
    if not node.attr_flag("is_test") and node.attr_float("ratio", 0.5) != 0.0:
        node.unsupported("Dropout in training mode (is_test = 0)", hint="set 'is_test' = 1, or raise the opset to 7")
    node.ignore("ratio")
    return _inference(node, node.input(0).dtype)


def _inference(node: Node, mask: DType) -> list[Value | None]:
    x = node.input(0)
    if not node.wants(1):
        return [x, None]
    return [x, node.builder.convert(node.pointwise(lambda x: x.isnan().or_(True), x), mask)]
