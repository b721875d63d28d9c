"""Dropout: what it passes on in inference is its input. Training draws a mask."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import BOOL, DType
from argosy.ir.module import Value


@onnx_op("Dropout", since=12)
def Dropout(node: Node) -> list[Value | None]:
    """The data as it is, unless `training_mode` is true and `ratio` is not zero."""
    node.ignore("seed")
    ratio, training = node.known_ints(1), node.known_ints(2)
    if node.optional(2) is not None and training != (False,) and ratio != (0.0,):
        node.unsupported("Dropout in training mode", hint="export the model for inference")
    return _inference(node, BOOL)


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
