"""Sampling between elements, and pooling over regions of interest."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.convolution import spatial_axes
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Value
from argosy.ops.deformable import DeformableConv
from argosy.ops.index import Range
from argosy.ops.operands import length
from argosy.ops.region import MaxRegionPool, RegionAlign
from argosy.ops.sampling import GridSample
from argosy.ops.view import Concat, Reshape, Slice, Squeeze, Unsqueeze

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic"}


@onnx_op("GridSample", since=16)
def GridSample_16(node: Node) -> Value:
    """The input at the places that a grid holds; opset 20 renamed the modes."""
    mode = _MODES[node.attr_choice("mode", "linear", tuple(_MODES))]
    padding = node.attr_choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    return node.add(GridSample(mode, padding, node.attr_flag("align_corners")), node.input(0), node.input(1))


@onnx_op("AffineGrid", since=20)
def AffineGrid(node: Node) -> Value:
    """theta [N, r, r + 1] at every place of a regular grid, -1 to 1 along each of r axes: [N, (D,) H, W, r].

    The standard's own function squeezes a batch of one away. Along an axis of size 1 the only place is -1 with
    `align_corners`, as that function has it for D; for H and W it has NaN.
    """
    theta, size = node.input(0), node.input(1)
    corners = node.attr_flag("align_corners")
    count = length(size)
    rank = count - 2 if count is not None else theta.shape[1] if theta.rank == 3 else 0
    if not isinstance(rank, int) or rank not in (2, 3) or theta.rank != 3:
        node.fail(f"theta is {theta.type} and size is {size.type}, expected a rank of 2 or 3")
    grid = _column(node, theta, rank, rank)
    for axis in range(rank):
        place = rank - 1 - axis  # x goes along the last axis
        number = node.add(Squeeze((0,)), node.add(Slice((2 + place,), (3 + place,), (0,), (1,)), size))
        index = node.add(Range(), node.constant(0), number, node.constant(1))
        at = node.pointwise(
            lambda i, n: (
                i.convert(FLOAT64) * 2.0 / (n - 1).max(1).convert(FLOAT64) - 1.0
                if corners
                else (i.convert(FLOAT64) * 2.0 + 1.0) / n.convert(FLOAT64) - 1.0
            ),
            index,
            number,
        )
        at = node.add(Unsqueeze(tuple(range(1, rank - place + 1))), node.builder.convert(at, theta.dtype))
        grid = node.pointwise(lambda g, c, a: g + c * a, grid, _column(node, theta, axis, rank), at)
    spatial = node.add(Slice((2,), (2 + rank,), (0,), (1,)), size)
    batch = node.add(Slice((0,), (1,), (0,), (1,)), size)
    return node.add(Reshape(), grid, node.add(Concat(0), batch, spatial, node.constant([rank])))


def _column(node: Node, theta: Value, index: int, rank: int) -> Value:
    """Column `index` of each matrix, [N, 1, ..., r]."""
    column = node.add(Slice((index,), (index + 1,), (2,), (1,)), theta)
    column = node.add(Squeeze((2,)), column)
    return node.add(Unsqueeze(tuple(range(1, rank + 1))), column)


@onnx_op("RoiAlign", since=16)
def RoiAlign(node: Node) -> Value:
    """Regions resampled to one size; half a pixel off by default."""
    mode = node.attr_choice("coordinate_transformation_mode", "half_pixel", ("half_pixel", "output_half_pixel"))
    return _roi_align(node, half_pixel=mode == "half_pixel")


@onnx_op("RoiAlign", since=10)
def RoiAlign_10(node: Node) -> Value:
    """Before opset 16 regions are not shifted."""
    return _roi_align(node, half_pixel=False)


def _roi_align(node: Node, *, half_pixel: bool) -> Value:
    kind = {"avg": "average", "max": "max"}[node.attr_choice("mode", "avg", ("avg", "max"))]
    op = RegionAlign(
        kind,
        (node.attr_int("output_height", 1), node.attr_int("output_width", 1)),
        node.attr_float("spatial_scale", 1.0),
        node.attr_int("sampling_ratio", 0),
        half_pixel,
    )
    return node.add(op, node.input(0), node.input(1), node.input(2))


@onnx_op("MaxRoiPool")
def MaxRoiPool(node: Node) -> Value:
    """The greatest element of each bin of the regions."""
    output = node.attr_ints("pooled_shape")
    if len(output) != 2:
        node.fail(f"attribute 'pooled_shape' has {len(output)} entries, expected height and width")
    op = MaxRegionPool((output[0], output[1]), node.attr_float("spatial_scale", 1.0))
    return node.add(op, node.input(0), node.input(1))


@onnx_op("DeformConv", since=19)
def DeformConv(node: Node) -> Value:
    """A convolution whose taps are moved and weighted by inputs."""
    axes = spatial_axes(node, node.input(1))
    ones = (1,) * axes
    op = DeformableConv(
        node.attr_ints("strides", ones),
        node.attr_ints("pads", (0,) * (2 * axes)),
        node.attr_ints("dilations", ones),
        node.attr_int("group", 1),
        node.attr_int("offset_group", 1),
    )
    return node.add(op, node.input(0), node.input(1), node.input(2), node.optional(3), node.optional(4))
