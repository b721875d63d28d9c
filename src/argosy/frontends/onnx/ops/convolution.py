"""Convolutions."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import equal
from argosy.ir.dtype import DType
from argosy.ir.module import Value
from argosy.ir.types import Dims
from argosy.ops.convolution import Conv, ConvTranspose

_AUTO_PADS = {"NOTSET": "explicit", "VALID": "explicit", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower"}


def read_auto_pad(node: Node) -> str:
    """The attribute in the words of `argosy.ops.window`; VALID means pads of zero, so `pads` must not be given."""
    given = node.attr_choice("auto_pad", "NOTSET", tuple(_AUTO_PADS))
    if given != "NOTSET":
        node.ignore("pads")
    return _AUTO_PADS[given]


def read_pads(node: Node, axes: int) -> tuple[int, ...]:
    """The attribute `pads`, zeros where it is absent or where `auto_pad` overrides it."""
    zeros = (0,) * (2 * axes)
    return node.attr_ints("pads", zeros) if node.attr_string("auto_pad", "NOTSET") == "NOTSET" else zeros


def spatial_axes(node: Node, weight: Value) -> int:
    """Number of spatial axes, from the weight or from an attribute; checks `kernel_shape` against the weight."""
    kernel = node.attr_ints("kernel_shape", ())
    dims: Dims | None = weight.tensor.dims
    if dims is None:
        for name in ("kernel_shape", "strides", "dilations"):
            if node.has(name):
                return len(node.attr_ints(name, ()))
        node.unsupported("the rank of the weight is unknown", hint="give kernel_shape")
    if len(dims) < 3:
        node.fail(f"the weight is {weight.type}, expected rank 3 or more")
    differs = any(equal(given, size) is False for given, size in zip(kernel, dims[2:], strict=False))
    if kernel and (differs or len(kernel) != len(dims) - 2):
        node.fail(f"kernel_shape is {list(kernel)}, the weight has the shape {list(dims)}")
    return len(dims) - 2


def conv_op(node: Node, weight: Value, dtype: DType | None = None) -> Conv:
    """The op that the node's attributes describe, with a result of type `dtype`."""
    axes = spatial_axes(node, weight)
    ones = (1,) * axes
    return Conv(
        node.attr_ints("strides", ones),
        read_pads(node, axes),
        node.attr_ints("dilations", ones),
        node.attr_int("group", 1),
        read_auto_pad(node),
        dtype,
    )


@onnx_op("Conv")
def Conv_(node: Node) -> Value:
    """Convolution."""
    return node.add(conv_op(node, node.input(1)), node.input(0), node.input(1), node.optional(2))


@onnx_op("ConvTranspose")
def ConvTranspose_(node: Node) -> Value:
    """Transposed convolution."""
    weight = node.input(1)
    axes = spatial_axes(node, weight)
    ones = (1,) * axes
    shape = node.attr_ints("output_shape", ())
    op = ConvTranspose(
        node.attr_ints("strides", ones),
        read_pads(node, axes),
        node.attr_ints("dilations", ones),
        node.attr_int("group", 1),
        read_auto_pad(node),
        node.attr_ints("output_padding", ()),
        # Some files give the whole shape, batch and channels included.
        shape[-axes:] if shape else None,
    )
    return node.add(op, node.input(0), weight, node.optional(2))
