"""Handlers of ONNX ops that misread a node: found by ONNX Runtime alone, for ref computes what was imported."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final
from unittest import mock

from onnx import TensorProto

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops import arithmetic
from tests.debugging.faults.fault import Fault, Plant, ranges, replaced
from tests.debugging.faults.network import Network, convolutional, perceptron, tabular

__all__ = ["FAULTS"]


def misread(op: str, attribute: str, value: Any) -> Plant:
    """Nodes of an op have `value` for an attribute, whatever they say."""

    def change(old: Any) -> Any:
        def get(self: Node, name: str, *more: Any) -> Any:
            found = old(self, name, *more)
            return value if (self.proto.op_type, name) == (op, attribute) else found

        return get

    return lambda: replaced(Node, "_get", change)


def layered(net: Network, x: str) -> str:
    first = net.op("Gemm", x, net.weight(24, 12), net.weight(12))
    return net.op(
        "Add", net.op("Gemm", x, net.weight(12, 24), net.weight(12), name="guilty", alpha=0.5, transB=1), first
    )


def local(net: Network, x: str) -> str:
    return net.op("Sub", net.op("LRN", x, name="guilty", size=3, alpha=0.5, beta=0.75, bias=2.0), net.op("Sin", x))


def enlarged(net: Network, x: str) -> str:
    scales = net.constant([1.0, 1.0, 2.0, 2.0])
    plain = net.op("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="asymmetric")
    return net.op("Add", net.op("Resize", x, "", scales, name="guilty", mode="linear"), plain)


def averaged(net: Network, x: str) -> str:
    whole = net.op("AveragePool", x, name="guilty", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    return net.op("Mul", whole, net.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))


def at_least(net: Network, k: str) -> str:
    more = net.op("GreaterOrEqual", k, net.constant(3, "int64"), name="guilty")
    return net.op("Cast", net.op("And", more, net.op("LessOrEqual", k, net.constant(4, "int64"))), to=TensorProto.FLOAT)


def strictly() -> AbstractContextManager[Any]:
    """a >= b is read as b < a."""
    return mock.patch.dict(arithmetic.MIRRORED, {"GreaterOrEqual": "lt"})


FAULTS: Final = (
    Fault("gemm_alpha", "attribute not read", "import:Gemm", ("guilty",), lambda: perceptron(layered),
          misread("Gemm", "alpha", 1.0), against="onnxruntime"),
    Fault("lrn_bias", "attribute not read", "import:LRN", ("guilty",), lambda: convolutional(local),
          misread("LRN", "bias", 1.0), against="onnxruntime"),
    Fault("resize_places", "wrong default", "import:Resize", ("guilty",), lambda: convolutional(enlarged, 8, 6),
          misread("Resize", "coordinate_transformation_mode", "asymmetric"), against="onnxruntime"),
    Fault("average_of_border", "attribute not read", "import:AveragePool", ("guilty",),
          lambda: convolutional(averaged), misread("AveragePool", "count_include_pad", 0), against="onnxruntime"),
    Fault("greater_or_equal", "wrong primitive", "import:GreaterOrEqual", ("guilty",), lambda: tabular(at_least),
          strictly, against="onnxruntime", inputs=ranges(k=(0, 6))),
)  # fmt: skip
