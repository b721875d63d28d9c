"""Arithmetic and comparison: one primitive each, with ONNX's multidirectional broadcasting."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value

_UNARY = {
    "Abs": "abs", "Neg": "neg", "Floor": "floor", "Ceil": "ceil", "Sqrt": "sqrt", "Exp": "exp", "Log": "log",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh",
    "Cosh": "cosh", "Tanh": "tanh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Erf": "erf", "Sign": "sign",
    "Round": "round", "Not": "not", "IsNaN": "isnan", "BitwiseNot": "bitnot",
}  # fmt: skip

_BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "And": "and", "Or": "or", "Xor": "xor", "Equal": "eq",
    "Less": "lt", "LessOrEqual": "le", "BitwiseAnd": "bitand", "BitwiseOr": "bitor", "BitwiseXor": "bitxor", "Pow": "pow",
}  # fmt: skip


@onnx_op(*_UNARY)
def unary(node: Node) -> Value:
    """One primitive of one operand."""
    node.ignore("consumed_inputs")  # a hint of opset 1, without meaning for the result
    return node.pointwise(_UNARY[node.proto.op_type], node.input(0))


@onnx_op(*_BINARY, since=7)
def binary(node: Node) -> Value:
    """One primitive of two operands, broadcast."""
    return node.pointwise(_BINARY[node.proto.op_type], node.input(0), node.input(1))
