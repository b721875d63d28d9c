"""Encoded images."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value
from argosy.ops.image import PIXEL_FORMATS, DecodeImage


@onnx_op("ImageDecoder", since=20)
def ImageDecoder(node: Node) -> Value:
    """The pixels of an image file, channels last."""
    return node.add(DecodeImage(node.attr_choice("pixel_format", "RGB", tuple(PIXEL_FORMATS))), node.input(0))
