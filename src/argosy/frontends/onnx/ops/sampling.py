"""Sampling between elements, and pooling over regions of interest."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.convolution import spatial_axes
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value
from argosy.ops.deformable import DeformableConv
from argosy.ops.region import MaxRegionPool, RegionAlign
from argosy.ops.sampling import GridSample

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic"}


@onnx_op("GridSample", since=16)
def GridSample_16(node: Node) -> Value:
    """The input at the places that a grid holds; opset 20 renamed the modes."""
    mode = _MODES[node.attr_choice("mode", "linear", tuple(_MODES))]
    padding = node.attr_choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    return node.add(GridSample(mode, padding, node.attr_flag("align_corners")), node.input(0), node.input(1))


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
