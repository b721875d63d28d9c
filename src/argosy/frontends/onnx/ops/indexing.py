"""Ops that pick or place elements by index: Gather and Scatter with relatives, Where, OneHot, NonZero, Compress."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.constants import counted
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value
from argosy.ops.index import Compress, Gather, GatherElements, GatherND, NonZero, OneHot
from argosy.ops.scatter import ScatterElements, ScatterND
from argosy.ops.shapes import normalize_axis
from argosy.ops.view import Broadcast, Reshape, Shape

__all__: list[str] = []


@onnx_op("Where", since=9)
def where(node: Node) -> Value:
    """The second input where the condition is true, else the third, broadcast."""
    return node.pointwise("select", node.input(0), node.input(1), node.input(2))


@onnx_op("Gather")
def gather(node: Node) -> Value:
    """Slices of the data along `axis`, in the places of the indices."""
    return node.add(Gather(node.attr_int("axis", 0)), node.input(0), node.input(1))


@onnx_op("GatherElements", since=11)
def gather_elements(node: Node) -> Value:
    """One element of the data for each index."""
    return node.add(GatherElements(node.attr_int("axis", 0)), node.input(0), node.input(1))


@onnx_op("GatherND", since=11)
def gather_nd(node: Node) -> Value:
    """Slices of the data at coordinates; `batch_dims` came with opset 12."""
    return node.add(GatherND(node.attr_int("batch_dims", 0)), node.input(0), node.input(1))


@onnx_op("ScatterElements", since=11)
@onnx_op("Scatter", since=9)
def scatter_elements(node: Node) -> Value:
    """`reduction` came with opset 16, its max and min with 18."""
    op = ScatterElements(node.attr_int("axis", 0), node.attr_string("reduction", "none"))
    return node.add(op, node.input(0), node.input(1), node.input(2))


@onnx_op("ScatterND", since=11)
def scatter_nd(node: Node) -> Value:
    """`reduction` came with opset 16, its max and min with 18."""
    return node.add(ScatterND(node.attr_string("reduction", "none")), node.input(0), node.input(1), node.input(2))


@onnx_op("TensorScatter", since=24)
def tensor_scatter(node: Node) -> Value:
    """The update written into a cache, from a place of each batch's own: ScatterElements at counted positions."""
    cache, update, starts = node.input(0), node.input(1), node.optional(2)
    mode = node.attr_choice("mode", "linear", ("linear", "circular"))
    axis = normalize_axis(node.attr_int("axis", -2), cache.rank)
    if axis == 0:
        node.fail("axis is 0, which is the batch axis")
    behind = (1,) * (cache.rank - axis - 1)
    positions = counted(node, update, axis)
    positions = node.add(Reshape((-1, *behind)), positions)
    if starts is not None:
        starts = node.add(Reshape((-1, *(1,) * (cache.rank - 1))), starts)
        positions = node.pointwise("add", positions, node.builder.convert(starts, positions.dtype))
    if mode == "circular":
        positions = node.pointwise("mod", positions, node.add(Shape(axis, axis + 1), cache))
    indices = node.add(Broadcast(), positions, node.add(Shape(), update))
    return node.add(ScatterElements(axis), cache, indices, update)


@onnx_op("OneHot", since=9)
def one_hot(node: Node) -> Value:
    """A new axis with one element on, where the index says."""
    return node.add(OneHot(node.attr_int("axis", -1)), node.input(0), node.input(1), node.input(2))


@onnx_op("NonZero", since=9)
def nonzero(node: Node) -> Value:
    """Coordinates of the elements that are not zero."""
    return node.add(NonZero(), node.input(0))


@onnx_op("Compress", since=9)
def compress(node: Node) -> Value:
    """Slices where the condition is true; without `axis` elements of the flattened input."""
    axis = node.attr_int("axis") if node.has("axis") else None
    return node.add(Compress(axis), node.input(0), node.input(1))
