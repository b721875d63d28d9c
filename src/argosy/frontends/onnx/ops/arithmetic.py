"""Arithmetic, comparison, logic and bits: one primitive each, with ONNX's multidirectional broadcasting."""

from __future__ import annotations

from typing import Final

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value

_UNARY: Final = {
    "Abs": "abs", "Neg": "neg", "Floor": "floor", "Ceil": "ceil", "Sqrt": "sqrt", "Exp": "exp", "Log": "log",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh",
    "Cosh": "cosh", "Tanh": "tanh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Erf": "erf", "Sign": "sign",
    "Round": "round", "Not": "not", "IsNaN": "isnan", "BitwiseNot": "bitnot",
}  # fmt: skip

BINARY: Final = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "And": "and", "Or": "or", "Xor": "xor", "Equal": "eq",
    "Less": "lt", "LessOrEqual": "le", "BitwiseAnd": "bitand", "BitwiseOr": "bitor", "BitwiseXor": "bitxor",
    "Pow": "pow",
}  # fmt: skip

MIRRORED: Final = {"Greater": "lt", "GreaterOrEqual": "le"}
"""Comparisons that are a primitive with its operands swapped: a > b is b < a, for NaN too."""


@onnx_op(*_UNARY)
def unary(node: Node) -> Value:
    """One primitive of one operand."""
    node.ignore("consumed_inputs")  # a hint of opset 1, without meaning for the result
    return node.pointwise(_UNARY[node.proto.op_type], node.input(0))


@onnx_op(*BINARY, since=7)
def binary(node: Node) -> Value:
    """One primitive of two operands, broadcast. Of Pow (12 on) the operands may differ in type: the base's counts."""
    return node.pointwise(BINARY[node.proto.op_type], node.input(0), node.input(1))


@onnx_op(*MIRRORED, since=7)
def mirrored(node: Node) -> Value:
    """One primitive of two swapped operands, broadcast."""
    return node.pointwise(MIRRORED[node.proto.op_type], node.input(1), node.input(0))


@onnx_op("Reciprocal")
def Reciprocal(node: Node) -> Value:
    """1 / x."""
    node.ignore("consumed_inputs")
    return node.pointwise(lambda x: 1.0 / x, node.input(0))


@onnx_op("Mod", since=10)
def Mod(node: Node) -> Value:
    """Remainder with the sign of the divisor, or with `fmod` that of the dividend.

    Before opset 28 floats need `fmod`; the meaning that 28 gives to floats without it is the only sensible one.
    """
    truncated = node.attr_flag("fmod")
    if node.version < 28 and not truncated and node.input(0).dtype.is_float:
        node.fail("Mod of floats needs the attribute 'fmod' = 1 before opset 28", hint="set it, or raise the opset")
    return node.pointwise("fmod" if truncated else "mod", node.input(0), node.input(1))


@onnx_op("BitShift", since=11)
def BitShift(node: Node) -> Value:
    """Bits moved left, or right (keeping the sign of signed integers)."""
    direction = node.attr_choice("direction", "", ("LEFT", "RIGHT"))
    return node.pointwise("shl" if direction == "LEFT" else "shr", node.input(0), node.input(1))


@onnx_op("IsInf", since=10)
def IsInf(node: Node) -> Value:
    """Whether an element is an infinity of a sign that `detect_positive` and `detect_negative` ask for."""
    x = node.input(0)
    positive = node.attr_flag("detect_positive", default=True)
    negative = node.attr_flag("detect_negative", default=True)
    if positive and negative:
        return node.pointwise("isinf", x)
    if positive:
        return node.pointwise(lambda x: x.isinf().and_(x > 0.0), x)
    if negative:
        return node.pointwise(lambda x: x.isinf().and_(x < 0.0), x)
    return node.pointwise(lambda x: x.isinf().and_(False), x)
