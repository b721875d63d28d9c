"""Cast, CastLike, BitCast: formulas of `convert`, with ONNX's rules for 8-bit floats and strings."""

from __future__ import annotations

from typing import Final

import ml_dtypes

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.protos import element_type
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import DTYPES, FLOAT32, STRING, DType
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.strings import FormatNumbers, ParseNumbers
from argosy.ops.view import BitCast

__all__ = ["cast"]

_SATURATING: Final = frozenset(
    DTYPES[name] for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
)
_EXPONENT_ONLY: Final = DTYPES["float8_e8m0fnu"]
_ROUND_MODES: Final = ("up", "down", "nearest")


@onnx_op("Cast", since=6)
def cast_to(node: Node) -> Value:
    """To the element type of attribute `to`."""
    return cast(node, node.input(0), node.attr_dtype("to"))


@onnx_op("Cast")
def cast_1(node: Node) -> Value:
    """Opset 1: `to` is the name of an element type."""
    import onnx  # noqa: PLC0415 - an optional extra

    name = node.attr_string("to")
    if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118 - a protobuf enum is no dict
        node.fail(f"attribute 'to' is {name!r}, which is no element type")
    return cast(node, node.input(0), element_type(onnx.TensorProto.DataType.Value(name), "attribute 'to'"))


@onnx_op("CastLike", since=15)
def cast_like(node: Node) -> Value:
    """To the element type of the second input."""
    return cast(node, node.input(0), node.input(1).dtype)


def cast(node: Node, x: Value, target: DType) -> Value:
    """`x` in the element type `target`, under the node's `saturate` and `round_mode` where these matter."""
    saturate = node.attr_flag("saturate", default=True)
    round_mode = node.attr_choice("round_mode", "up", _ROUND_MODES)
    if x.dtype is target:
        return x
    if target is STRING:
        return node.add(FormatNumbers(), x)
    if x.dtype is STRING:
        if target in _SATURATING:
            return cast(node, node.add(ParseNumbers(FLOAT32), x), target)
        return node.add(ParseNumbers(target), x)
    if target not in _SATURATING:
        return node.builder.convert(x, target)
    if not x.dtype.is_float:
        x = node.builder.convert(x, FLOAT32)
    if target is _EXPONENT_ONLY:
        wide = node.builder.convert(x, x.dtype.compute)
        return node.pointwise(lambda v: _to_exponent(v, wide.dtype, saturate=saturate, round_mode=round_mode), wide)
    if not saturate:
        return node.builder.convert(x, target)
    limit = float(ml_dtypes.finfo(target.numpy).max)  # type: ignore[no-untyped-call]
    return node.pointwise(lambda v: v.min(limit).max(-limit).convert(target), x)


def _to_exponent(x: Expr, kind: DType, *, saturate: bool, round_mode: str) -> Expr:
    """A positive number rounded to a power of two, whose exponent is all that float8_e8m0 keeps."""
    if saturate:
        x = x.max(2.0**-127).min(2.0**127)
    near = x.convert(_EXPONENT_ONLY).convert(kind)
    if round_mode == "up":
        return (near < x).select(near * 2.0, near).convert(_EXPONENT_ONLY)
    below = (near > x).select(near * 0.5, near)
    if round_mode == "nearest":
        below = (x < below * 1.5).select(below, below * 2.0)
    return below.convert(_EXPONENT_ONLY)


@onnx_op("BitCast", since=26)
def bit_cast(node: Node) -> Value:
    """The same bits read as another element type of the same width."""
    x, target = node.input(0), node.attr_dtype("to")
    if target is STRING or x.dtype is STRING or target.bits != x.dtype.bits:
        node.fail(f"the bits of {x.dtype} can't be read as {target}: the widths differ")
    return x if x.dtype is target else node.add(BitCast(target), x)
