"""MaxUnpool: the inverse of a max pooling with indices."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import INT64
from argosy.ir.module import Value
from argosy.ops.dim_values import DimValues
from argosy.ops.joining import Concat
from argosy.ops.scatter import ScatterElements
from argosy.ops.shapes import product
from argosy.ops.slicing import Pad
from argosy.ops.view import Broadcast, Reshape


@onnx_op("MaxUnpool", since=9)
def MaxUnpool(node: Node) -> Value:
    """Zeros with the elements of X where the indices say, in the flattened shape that the attributes give.

    A larger `output_shape` adds zeros behind.
    """
    x, indices = node.input(0), node.input(1)
    kernel = node.attr_ints("kernel_shape")
    strides = node.attr_ints("strides", (1,) * len(kernel))
    pads = node.attr_ints("pads", (0,) * (2 * len(kernel)))
    if not len(kernel) == len(strides) == len(pads) // 2 == x.rank - 2:
        node.fail(f"kernel_shape, strides and pads must fit {x.rank - 2} spatial axes")
    spatial = (
        (size - 1) * stride + taps - begin - end
        for size, stride, taps, begin, end in zip(
            x.shape[2:], strides, kernel, pads[: len(kernel)], pads[len(kernel) :], strict=True
        )
    )
    shape = (*x.shape[:2], *spatial)
    flat = Reshape((product(x.shape),), allow_zero=True)
    zeros = node.add(Broadcast((product(shape),)), node.constant(0, x.dtype))
    filled = node.add(ScatterElements(0, "none"), zeros, node.add(flat, indices), node.add(flat, x))
    result = node.add(Reshape(shape, allow_zero=True), filled)
    wanted = node.optional(2)
    if wanted is None:
        return result
    behind = node.pointwise("sub", wanted, node.add(DimValues(shape)))
    before = node.constant([0] * x.rank, INT64)
    return node.add(Pad("constant"), result, node.add(Concat(0), before, behind))
