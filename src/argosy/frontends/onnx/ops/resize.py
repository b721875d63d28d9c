"""Resize, and Upsample, its older form."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import Dim, DimLike
from argosy.ir.module import Value
from argosy.ops.resize import COORDINATES, NEAREST, Resize

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}


def _is_empty(value: Value | None) -> bool:
    """True for an absent tensor and for one that is known to have no elements."""
    if value is None:
        return True
    dims = value.tensor.dims
    return dims is not None and any(isinstance(dim, int) and dim == 0 for dim in dims)


def _floats(values: tuple[DimLike, ...] | None) -> tuple[float, ...] | None:
    if values is None or any(isinstance(value, Dim) for value in values):
        return None
    return tuple(float(value) for value in values if not isinstance(value, Dim))


@onnx_op("Resize", since=11)
def Resize_11(node: Node) -> Value:
    """To sizes, or by scales; `antialias`, `axes` and the aspect policy came with opset 18."""
    roi, scales, sizes = (None if _is_empty(node.optional(index)) else node.optional(index) for index in (1, 2, 3))
    if (scales is None) == (sizes is None):
        found = "neither scales nor sizes" if scales is None else "both scales and sizes"
        node.fail(f"has {found}, expected one of them", hint="an empty tensor or an absent input leaves one out")
    coordinates = node.attr_string("coordinate_transformation_mode", "half_pixel")
    if coordinates != "tf_crop_and_resize":
        roi = None
    known_roi = None if roi is None else _floats(node.known_ints(1))
    known_scales = None if scales is None else _floats(node.known_ints(2))
    known_sizes = None if sizes is None else node.known_ints(3)
    op = Resize(
        mode=_MODES[node.attr_choice("mode", "nearest", ("nearest", "linear", "cubic"))],
        coordinates=node.attr_choice("coordinate_transformation_mode", "half_pixel", COORDINATES),
        scales=known_scales,
        sizes=known_sizes,
        axes=node.attr_ints("axes") if node.has("axes") else None,
        roi=known_roi,
        nearest=node.attr_choice("nearest_mode", "round_prefer_floor", NEAREST[:4]),
        cubic_a=node.attr_float("cubic_coeff_a", -0.75),
        exclude_outside=node.attr_flag("exclude_outside"),
        extrapolation=node.attr_float("extrapolation_value", 0.0),
        antialias=node.attr_flag("antialias"),
        aspect=node.attr_string("keep_aspect_ratio_policy", "stretch"),
    )
    operands = [
        node.input(0),
        roi if known_roi is None else None,
        scales if known_scales is None else None,
        sizes if known_sizes is None else None,
    ]
    while operands[-1] is None:
        operands.pop()
    return node.add(op, *operands)


def _scaled(node: Node, scales: tuple[float, ...] | None, operand: Value | None = None) -> Value:
    """The rule before opset 11: places are multiples of 1/scale; the nearest one is below, or above in downscaling."""
    mode = _MODES[node.attr_choice("mode", "nearest", tuple(_MODES))]
    op = Resize(mode, "asymmetric", scales=scales, nearest="floor_up_ceil_down")
    return node.add(op, node.input(0)) if scales is not None else node.add(op, node.input(0), None, operand)


@onnx_op("Resize", since=10)
@onnx_op("Upsample", since=9)
def Upsample(node: Node) -> Value:
    """By scales given as an input."""
    return _scaled(node, _floats(node.known_ints(1)), node.input(1))


@onnx_op("Upsample", since=7)
def Upsample_7(node: Node) -> Value:
    """By scales given as an attribute."""
    return _scaled(node, node.attr_floats("scales"))


@onnx_op("Upsample")
def Upsample_1(node: Node) -> Value:
    """By scales of height and width."""
    return _scaled(node, (1.0, 1.0, node.attr_float("height_scale"), node.attr_float("width_scale")))
