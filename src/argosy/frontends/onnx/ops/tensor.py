"""Ops that rearrange a tensor: Reshape, Transpose, Expand, Squeeze, Concat, Split, Tile, Shape and relatives."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import DimLike, floordiv
from argosy.ir.dtype import INT64
from argosy.ir.module import Value
from argosy.ir.op import op_class
from argosy.ir.types import Dims
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.view import (
    Broadcast,
    Concat,
    Reshape,
    ReverseSequence,
    Shape,
    Split,
    Squeeze,
    Tile,
    Transpose,
    Unsqueeze,
)

__all__: list[str] = []


@onnx_op("Reshape", since=5)
def reshape(node: Node) -> Value:
    """The shape is an input; `allowzero` came with opset 14."""
    return node.add(Reshape(allow_zero=node.attr_flag("allowzero")), node.input(0), node.input(1))


@onnx_op("Reshape")
def reshape_1(node: Node) -> Value:
    """Opset 1: the shape is an attribute."""
    node.ignore("consumed_inputs")
    return node.add(Reshape(node.attr_ints("shape")), node.input(0))


@onnx_op("Flatten")
def flatten(node: Node) -> Value:
    """To two dims: the axes before `axis`, and the rest."""
    x, axis = node.input(0), node.attr_int("axis", 1)
    if x.tensor.dims is None:
        return _flatten_unranked(node, x, axis)
    # One past the last axis is allowed: everything goes into the first dim.
    place = axis if axis == x.rank else normalize_axis(axis, x.rank) if x.rank else 0
    return node.add(Reshape((product(x.shape[:place]), product(x.shape[place:])), allow_zero=True), x)


def _flatten_unranked(node: Node, x: Value, axis: int) -> Value:
    halves = (node.add(Shape(0, axis), x), node.add(Shape(axis, None), x))
    sizes = [node.add(Reshape((1,)), _product(node, half)) for half in halves]
    return node.add(Reshape(allow_zero=True), x, node.add(Concat(0), *sizes))


def _product(node: Node, sizes: Value) -> Value:
    """The product of a 1-D tensor as a scalar."""
    return node.add(op_class("reduce")(kind="prod", axes=None, keep_dims=False), sizes)  # type: ignore[call-arg]


@onnx_op("Size")
def size(node: Node) -> Value:
    """The number of elements."""
    return _product(node, node.add(Shape(), node.input(0)))


@onnx_op("Shape")
def shape(node: Node) -> Value:
    """The dims, or those from `start` to before `end` (opset 15)."""
    end = node.attr_int("end") if node.has("end") else None
    return node.add(Shape(node.attr_int("start", 0), end), node.input(0))


@onnx_op("Transpose")
def transpose(node: Node) -> Value:
    """The axes in the order of `perm`, reversed without it."""
    x = node.input(0)
    permutation = node.attr_ints("perm") if node.has("perm") else None
    if permutation is None and x.tensor.dims is not None:
        permutation = tuple(reversed(range(x.rank)))
    return node.add(Transpose(permutation), x)


@onnx_op("Expand", since=8)
def expand(node: Node) -> Value:
    """To the broadcast of the dims and the shape."""
    return node.add(Broadcast(), node.input(0), node.input(1))


@onnx_op("Squeeze", since=13)
def squeeze(node: Node) -> Value:
    """The axes are an optional input."""
    return node.add(Squeeze(), node.input(0), node.optional(1))


@onnx_op("Squeeze")
def squeeze_1(node: Node) -> Value:
    """Opset 1: the axes are an optional attribute."""
    return node.add(Squeeze(node.attr_ints("axes", ()) or None), node.input(0))


@onnx_op("Unsqueeze", since=13)
def unsqueeze(node: Node) -> Value:
    """The axes are an input."""
    return node.add(Unsqueeze(), node.input(0), node.input(1))


@onnx_op("Unsqueeze")
def unsqueeze_1(node: Node) -> Value:
    """Opset 1: the axes are an attribute."""
    return node.add(Unsqueeze(node.attr_ints("axes")), node.input(0))


@onnx_op("Concat", since=4)
def concat(node: Node) -> Value:
    """Along `axis`, which must be given."""
    return node.add(Concat(node.attr_int("axis")), *(node.input(index) for index in range(max(1, len(node.inputs)))))


@onnx_op("Concat")
def concat_1(node: Node) -> Value:
    """Opset 1: `axis` is 1 where it is not given."""
    return node.add(Concat(node.attr_int("axis", 1)), *(node.input(index) for index in range(max(1, len(node.inputs)))))


@onnx_op("Split", since=18)
def split(node: Node) -> tuple[Value, ...]:
    """Sizes as an input, or `num_outputs` pieces of which the last may be smaller."""
    count = node.attr_int("num_outputs", node.output_count)
    if count < node.output_count:
        node.fail(f"has {node.output_count} outputs, but num_outputs is {count}")
    return node.add_all(Split(node.attr_int("axis", 0), count), node.input(0), node.optional(1))


@onnx_op("Split")
def split_1(node: Node) -> tuple[Value, ...]:
    """Before opset 18: sizes as an attribute, from 13 on (and in 1) as an input, else equal pieces."""
    x, axis, count = node.input(0), node.attr_int("axis", 0), node.output_count
    if node.has("split"):
        return node.add_all(Split(axis, count, node.attr_ints("split")), x)
    sizes = node.optional(1)
    if sizes is not None or x.tensor.dims is None:
        return node.add_all(Split(axis, count), x, sizes)
    whole = x.shape[normalize_axis(axis, x.rank)]
    piece: DimLike = floordiv(whole, count)  # all are equal, or the model is wrong and says so at run time
    return node.add_all(Split(axis, count, (piece,) * count), x)


@onnx_op("Tile", since=6)
def tile(node: Node) -> Value:
    """A repeat for each axis."""
    return node.add(Tile(), node.input(0), node.input(1))


@onnx_op("Tile")
def tile_1(node: Node) -> Value:
    """Opset 1: `tiles` repeats along one `axis`, both scalar inputs."""
    x, axes = node.input(0), node.known_ints(2)
    if axes is None or not isinstance(axes[0], int):
        node.unsupported("an axis that is known only at run time is not supported by Tile, opset 1")
    place = normalize_axis(axes[0], x.rank)
    tiles = node.add(Reshape((1,)), node.builder.convert(node.input(1), INT64))
    parts = [tiles if axis == place else node.constant([1], INT64) for axis in range(x.rank)]
    return node.add(Tile(), x, node.add(Concat(0), *parts))


@onnx_op("ReverseSequence", since=10)
def reverse_sequence(node: Node) -> Value:
    """The first elements of each batch in reverse."""
    op = ReverseSequence(node.attr_int("batch_axis", 1), node.attr_int("time_axis", 0))
    return node.add(op, node.input(0), node.input(1))


@onnx_op("DepthToSpace")
def depth_to_space(node: Node) -> Value:
    """Blocks of channels become blocks of pixels: reshape, transpose, reshape."""
    x, block = node.input(0), node.attr_int("blocksize")
    mode = node.attr_choice("mode", "DCR", ("DCR", "CRD"))
    n, c, h, w = _four_dims(node, x)
    if block <= 0:
        node.fail(f"attribute 'blocksize' is {block}, expected a positive number")
    depth = floordiv(c, block * block)
    split_dims: Dims = (n, block, block, depth, h, w) if mode == "DCR" else (n, depth, block, block, h, w)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    blocks = node.add(Transpose(order), node.add(Reshape(split_dims, allow_zero=True), x))
    return node.add(Reshape((n, depth, h * block, w * block), allow_zero=True), blocks)


@onnx_op("SpaceToDepth")
def space_to_depth(node: Node) -> Value:
    """Blocks of pixels become channels: the inverse of DepthToSpace in the same mode (a choice from opset 28 on)."""
    x, block = node.input(0), node.attr_int("blocksize")
    mode = node.attr_choice("mode", "DCR", ("DCR", "CRD"))
    n, c, h, w = _four_dims(node, x)
    if block <= 0:
        node.fail(f"attribute 'blocksize' is {block}, expected a positive number")
    rows, columns = floordiv(h, block), floordiv(w, block)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    blocks = node.add(Reshape((n, c, rows, block, columns, block), allow_zero=True), x)
    moved = node.add(Transpose(order), blocks)
    return node.add(Reshape((n, c * (block * block), rows, columns), allow_zero=True), moved)


def _four_dims(node: Node, x: Value) -> tuple[DimLike, DimLike, DimLike, DimLike]:
    if x.rank != 4:
        node.fail(f"the input is {x.type}, expected rank 4: batch, channels, height, width")
    n, c, h, w = x.shape
    return n, c, h, w
