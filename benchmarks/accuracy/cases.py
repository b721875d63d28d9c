"""The op families: small models of one op or a few, in every element type, with the ranges of their inputs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

__all__ = ["CASES", "ELEMENTS", "Case"]

ELEMENTS: Final[Mapping[str, int]] = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float64": TensorProto.DOUBLE,
}
_NUMPY: Final[Mapping[str, Any]] = {**{name: name for name in ELEMENTS}, "bfloat16": ml_dtypes.bfloat16}
_OPSET: Final = 23

Shape = tuple[int, ...]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Case:
    """A family: nodes from inputs and weights to `y`; element by element it counts every element in units.

    `inputs` have shapes, and ranges where -1..1 won't do; `weights` are normal numbers over the root of their columns,
    `numbers` integers and other constants as they are, `scales` floats. Quantised families have no float64.
    """

    family: str
    nodes: tuple[onnx.NodeProto, ...]
    inputs: Mapping[str, Shape]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    weights: Mapping[str, Shape] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    elements: tuple[str, ...] = tuple(ELEMENTS)
    pointwise: bool = False

    def model(self, element: str) -> onnx.ModelProto:
        """The model with its floats in an element type."""
        kind, numpy = ELEMENTS[element], _NUMPY[element]
        held = dict(self.numbers)
        for name, shape in self.weights.items():
            source = np.random.default_rng(zlib.crc32(f"{self.family}/{name}".encode()))
            held[name] = (source.normal(size=shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(numpy)
        held |= {name: np.array(scale, numpy) for name, scale in self.scales.items()}
        graph = helper.make_graph(
            list(self.nodes),
            "family",
            [helper.make_tensor_value_info(name, kind, list(shape)) for name, shape in self.inputs.items()],
            [helper.make_tensor_value_info("y", kind, None)],
            [_tensor(name, value) for name, value in held.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10)


def _tensor(name: str, value: NDArray[Any]) -> onnx.TensorProto:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor(name, kind, value.shape, value.tobytes(), raw=True)


def _node(op: str, inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, output.split(), **attributes)


def _function(op: str, low: float, high: float, family: str = "", **attributes: Any) -> Case:
    nodes = (_node(op, "x", **attributes),)
    return Case(family or op.lower(), nodes, {"x": (4096,)}, {"x": (low, high)}, pointwise=True)


def _reduction(op: str, family: str, low: float = -1.0, high: float = 1.0) -> Case:
    nodes = (_node(op, "x axes", keepdims=0),)
    return Case(family, nodes, {"x": (8, 1000)}, {"x": (low, high)}, numbers={"axes": np.array([1])})


def _convolution(family: str, x: Shape, w: Shape, **attributes: Any) -> Case:
    return Case(family, (_node("Conv", "x w", **attributes),), {"x": x}, weights={"w": w})


_SHORT: Final = ("float32", "float16", "bfloat16")
_IMAGE: Final[Shape] = (1, 4, 12, 12)

CASES: Final[tuple[Case, ...]] = (
    Case("matrix product, 512 terms", (_node("MatMul", "x w"),), {"x": (32, 512)}, weights={"w": (512, 32)}),
    Case("matrix product of two inputs", (_node("MatMul", "x z"),), {"x": (2, 32, 128), "z": (2, 128, 32)}),
    Case(
        "linear layer with relu",
        (_node("Gemm", "x w b", "h", transB=1), _node("Relu", "h")),
        {"x": (32, 128)},
        weights={"w": (64, 128), "b": (64,)},
    ),
    _convolution("convolution 3x3", (1, 16, 14, 14), (16, 16, 3, 3), pads=[1, 1, 1, 1]),
    _convolution("convolution 1x1", (1, 64, 8, 8), (32, 64, 1, 1)),
    _convolution("convolution 7x7, stride 2", (1, 3, 32, 32), (16, 3, 7, 7), strides=[2, 2]),
    _convolution("depthwise convolution 3x3", (1, 16, 14, 14), (16, 1, 3, 3), group=16),
    Case(
        "transposed convolution",
        (_node("ConvTranspose", "x w", strides=[2, 2]),),
        {"x": (1, 8, 8, 8)},
        weights={"w": (8, 8, 3, 3)},
    ),
    Case(
        "attention",
        (_node("Attention", "q k v", scale=0.0625),),
        dict.fromkeys("qkv", (1, 2, 48, 32)),
    ),
    Case("softmax", (_node("Softmax", "x"),), {"x": (16, 500)}, {"x": (-8, 8)}),
    Case("log-softmax", (_node("LogSoftmax", "x"),), {"x": (16, 500)}, {"x": (-8, 8)}),
    Case("layer normalisation", (_node("LayerNormalization", "x s"),), {"x": (16, 256)}, weights={"s": (256,)}),
    Case("RMS normalisation", (_node("RMSNormalization", "x s"),), {"x": (16, 256)}, weights={"s": (256,)}),
    Case(
        "group normalisation",
        (_node("GroupNormalization", "x s b", num_groups=2),),
        {"x": _IMAGE},
        weights={"s": (4,), "b": (4,)},
    ),
    _reduction("ReduceSum", "sum of 1000"),
    _reduction("ReduceMean", "mean of 1000"),
    _reduction("ReduceL2", "Euclidean norm of 1000"),
    _reduction("ReduceLogSumExp", "log-sum-exp of 1000", -8, 8),
    _reduction("ReduceProd", "product of 1000", 0.995, 1.005),
    Case("running sum of 1000", (_node("CumSum", "x axis"),), {"x": (8, 1000)}, numbers={"axis": np.array(1)}),
    Case("Einstein sum", (_node("Einsum", "x z", equation="bij,bkj->bik"),), {"x": (2, 16, 64), "z": (2, 16, 64)}),
    Case("average pooling 3x3", (_node("AveragePool", "x", kernel_shape=[3, 3]),), {"x": _IMAGE}),
    Case("L2 pooling 3x3", (_node("LpPool", "x", kernel_shape=[3, 3]),), {"x": _IMAGE}),
    *(
        Case(
            f"resize, {mode}",
            (_node("Resize", "x - s", mode=mode),),
            {"x": _IMAGE},
            numbers={"s": np.array([1, 1, 1.75, 1.75], np.float32)},
        )
        for mode in ("linear", "cubic")
    ),
    Case("grid sample", (_node("GridSample", "x g"),), {"x": _IMAGE, "g": (1, 10, 10, 2)}),
    Case("Fourier transform of 240", (_node("DFT", "x"),), {"x": (4, 240, 1)}),
    *(
        Case(
            f"{kind}, 12 steps",
            (_node(kind, "x w r b", hidden_size=24),),
            {"x": (12, 4, 16)},
            weights={"w": (1, gates * 24, 16), "r": (1, gates * 24, 24), "b": (1, 2 * gates * 24)},
        )
        for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
    ),
    Case(
        "quantised product",
        (
            _node("QuantizeLinear", "x sx zx", "qx"),
            _node("DequantizeLinear", "qx sx zx", "dx"),
            _node("DequantizeLinear", "qw sw zw", "dw"),
            _node("MatMul", "dx dw"),
        ),
        {"x": (32, 128)},
        numbers={
            "qw": np.random.default_rng(5).integers(-127, 128, (128, 32)).astype(np.int8),
            "zx": np.array(0, np.int8),
            "zw": np.array(0, np.int8),
        },
        scales={"sx": 2.0**-7, "sw": 2.0**-9},
        elements=_SHORT,
    ),
    Case(
        "product with weights of 8 bits",
        (_node("DequantizeLinear", "qw sw", "w"), _node("MatMul", "x w")),
        {"x": (32, 128)},
        numbers={"qw": np.random.default_rng(6).integers(-127, 128, (128, 32)).astype(np.int8)},
        scales={"sw": 0.01},
        elements=_SHORT,
    ),
    Case("x / y", (_node("Div", "x z"),), {"x": (4096,), "z": (4096,)}, {"z": (0.1, 10)}, pointwise=True),
    Case("x ^ y", (_node("Pow", "x z"),), {"x": (4096,), "z": (4096,)}, {"x": (0.1, 5), "z": (-3, 3)}, pointwise=True),
    _function("Sqrt", 0, 100),
    _function("Reciprocal", 0.1, 10),
    _function("Exp", -10, 10),
    _function("Log", 1e-3, 100),
    _function("Sin", -100, 100),
    _function("Cos", -100, 100),
    _function("Tan", -1.5, 1.5),
    _function("Asin", -1, 1),
    _function("Acos", -1, 1),
    _function("Atan", -10, 10),
    _function("Sinh", -8, 8),
    _function("Cosh", -8, 8),
    _function("Tanh", -4, 4),
    _function("Asinh", -100, 100),
    _function("Acosh", 1, 100),
    _function("Atanh", -0.99, 0.99),
    _function("Erf", -4, 4),
    _function("Sigmoid", -8, 8),
    _function("Gelu", -6, 6),
    _function("Gelu", -6, 6, "gelu by tanh", approximate="tanh"),
    _function("Softplus", -10, 10),
    _function("Mish", -10, 10),
    _function("Elu", -10, 10),
)
