"""Einsum and Det."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value
from argosy.ops.determinant import Determinant
from argosy.ops.einsum import Einsum, parse_equation


@onnx_op("Einsum", since=12)
def Einsum_12(node: Node) -> Value:
    """Einstein summation; the equation is kept in its explicit form."""
    equation = parse_equation(node.attr_string("equation"))
    return node.add(Einsum(str(equation)), *(node.input(index) for index in range(len(node.inputs))))


@onnx_op("Det", since=11)
def Det(node: Node) -> Value:
    """The determinant of square matrices."""
    return node.add(Determinant(), node.input(0))
