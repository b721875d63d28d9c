"""Sum, Mean, Max, Min of any number of operands: one formula over all, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.module import Value

_FORMULAS: Final[dict[str, Callable[..., Any]]] = {
    "Sum": lambda *x: reduce(lambda a, b: a + b, x),
    "Mean": lambda *x: reduce(lambda a, b: a + b, x) / float(len(x)),
    "Max": lambda *x: reduce(lambda a, b: a.max(b), x),
    "Min": lambda *x: reduce(lambda a, b: a.min(b), x),
}


@onnx_op(*_FORMULAS)
def variadic(node: Node) -> Value:
    """The formula of the op over all operands, broadcast (from opset 8 on; before, all shapes are equal).

    Max and Min are NaN where any operand is.
    """
    node.ignore("consumed_inputs")
    operands = [node.input(index) for index in range(max(1, len(node.inputs)))]
    return operands[0] if len(operands) == 1 else node.pointwise(_FORMULAS[node.proto.op_type], *operands)
