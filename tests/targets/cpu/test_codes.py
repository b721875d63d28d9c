"""Products and images of bytes on the CPU: exact on every level, for every sign, at both ends of the range."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.errors import DeviceError
from argosy.ir import Builder, Module, Program
from argosy.ir.dtype import INT32, dtype
from argosy.ops.convolution import Conv
from argosy.ops.matmul import Dot
from argosy.ops.pooling import Pool
from argosy.ops.slicing import Pad
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

KINDS = ("uint8", "int8")
LEVELS = ("cpu", "x86-64-v4", "x86-64-v3", "x86-64-v2")
RANDOM = np.random.default_rng(5)


def codes(shape: Sequence[int], kind: str) -> Any:
    """Random codes; the first row of zeros and the last of an extreme, so that whole sums are extreme."""
    limits = np.iinfo(kind)
    values = RANDOM.integers(limits.min, limits.max, shape, endpoint=True).astype(kind)
    values[0], values[-1] = limits.min, limits.max
    return values


def found(module: Module, level: str, *arguments: Any) -> Any:
    """The result of native code of a level, without host steps."""
    artifact = argosy.compile(Program(module), targets=(level,), strict=True)
    try:
        session = argosy.Session(artifact, device="cpu")
    except DeviceError as refusal:
        pytest.skip(str(refusal))
    (result,) = session.run(dict(zip(module.parameter_names, arguments, strict=True))).values()
    return result


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("right", KINDS)
def test_dots(level: str, left: str, right: str) -> None:
    """Odd sizes, one row, rows at hand as they are, batches; weights and values, bound and symbolic rows."""
    for rows, depth, columns, weight in (
        (19, 45, 37, True),
        (1, 128, 40, True),
        (33, 64, 70, False),
        (5, 7, 16, False),
    ):
        a, b = codes((rows, depth), left), codes((columns, depth), right).T.copy()
        build = Builder()
        x = build.tensor_parameter("x", left, ("rows", depth) if weight else (rows, depth))
        w = build.constant(b) if weight else build.tensor_parameter("w", right, b.shape)
        module = build.module({"y": build.add(Dot(INT32), x, w)})
        result = found(module, level, *([a] if weight else [a, b]))
        np.testing.assert_array_equal(result, a.astype(np.int64) @ b.astype(np.int64))


def slid(x: Any, weight: Any, stride: int, group: int) -> Any:
    """A convolution by numpy in int64; x is padded already."""
    size = weight.shape[2:]
    view = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), size, (2, 3))[:, :, ::stride, ::stride]
    split = view.reshape(x.shape[0], group, -1, *view.shape[2:])
    each = weight.astype(np.int64).reshape(group, -1, *weight.shape[1:])
    result = np.einsum("ngchwij,gmcij->ngmhw", split, each)
    return result.reshape(x.shape[0], -1, *result.shape[3:])


CONVOLUTIONS = [
    ("1x1", (1, 32, 9, 14), (40, 32, 1, 1), 1, 0, 1),
    ("stem", (2, 3, 20, 17), (20, 3, 7, 7), 2, 3, 1),
    ("short lines", (1, 24, 7, 7), (33, 24, 3, 3), 1, 1, 1),
    ("groups", (1, 20, 8, 8), (30, 10, 3, 3), 1, 1, 2),
    ("depthwise", (2, 40, 15, 13), (40, 1, 5, 5), 1, 2, 40),
    ("one channel", (1, 1, 6, 6), (1, 1, 3, 3), 1, 1, 1),
]


SIGNS = [("cpu", left, right) for left in KINDS for right in KINDS]


@pytest.mark.parametrize(("level", "left", "right"), [*SIGNS, *((level, "uint8", "int8") for level in LEVELS[1:])])
def test_convolutions(level: str, left: str, right: str) -> None:
    """Windows, strides, groups; what is padded is zero, or another code."""
    for fill, (note, shape, weights, stride, pad, group) in zip((100, 0) * 3, CONVOLUTIONS, strict=True):
        a, b = codes(shape, left), codes(weights, right)
        build = Builder()
        x = build.tensor_parameter("x", left, shape)
        around = pad if fill == 0 else 0
        if fill:
            x = build.add(Pad("constant", (0, 0, pad, pad) * 2), x, None, build.constant(np.array(fill, left)))
        op = Conv((stride,) * 2, (around,) * 4, (1, 1), group, "explicit", INT32)
        module = build.module({"y": build.add(op, x, build.constant(b))})
        padded = np.pad(a, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
        np.testing.assert_array_equal(found(module, level, a), slid(padded, b, stride, group), note)


@pytest.mark.parametrize("kind", KINDS)
def test_the_greatest_of_codes(kind: str) -> None:
    """Between convolutions images of bytes are pooled as they lie."""
    a, first, second = codes((1, 16, 12, 12), kind), codes((16, 16, 1, 1), "int8"), codes((8, 16, 3, 3), "int8")
    build = Builder()
    op = Conv((1, 1), (0,) * 4, (1, 1), 1, "explicit", INT32)
    inner = build.add(op, build.tensor_parameter("x", kind, a.shape), build.constant(first))
    short = build.pointwise(lambda s: s.bitand(127).convert(dtype(kind)), inner)
    most = build.add(Pool("max", (3, 3), (2, 2), (1,) * 4, (1, 1)), short)
    module = build.module({"y": build.add(op, most, build.constant(second))})
    sums = slid(a, first, 1, 1) & 127
    padded = np.pad(sums, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-1)
    greatest = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2].max((-1, -2))
    np.testing.assert_array_equal(found(module, "cpu", a), slid(greatest, second, 1, 1))


def quantized_net(kind: str) -> onnx.ModelProto:
    """Quantise, convolve, add what was before, pool, multiply, each between a quantisation and its inverse."""
    zero = 3 if kind == "int8" else 120
    nodes, tensors = [], []

    def tensor(name: str, value: Any) -> str:
        tensors.append(numpy_helper.from_array(value, name))
        return name

    def around(name: str, scale: float) -> str:
        by = [tensor(f"{name}_s", np.float32(scale)), tensor(f"{name}_z", np.array(zero, kind))]
        nodes.append(helper.make_node("QuantizeLinear", [name, *by], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *by], [f"{name}_d"]))
        return f"{name}_d"

    def weight(name: str, shape: Sequence[int], axis: int) -> str:
        values = RANDOM.integers(-127, 128, shape).astype(np.int8)
        by = tensor(f"{name}_s", RANDOM.uniform(0.001, 0.003, shape[axis]).astype(np.float32))
        nodes.append(helper.make_node("DequantizeLinear", [tensor(name, values), by], [f"{name}_d"], axis=axis))
        return f"{name}_d"

    def node(kind: str, inputs: Sequence[str], name: str, scale: float, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return around(name, scale)

    x = around("x", 0.03)
    bias = tensor("bias", RANDOM.standard_normal(24).astype(np.float32))
    a = node("Conv", [x, weight("w1", (24, 3, 3, 3), 0), bias], "a", 0.03, pads=[1] * 4, strides=[2, 2])
    b = node("Conv", [a, weight("w2", (24, 1, 3, 3), 0)], "b", 0.03, pads=[1] * 4, group=24)
    c = node("Conv", [b, weight("w3", (24, 24, 1, 1), 0)], "c", 0.03)
    d = node("Add", [c, a], "sum", 0.06)
    nodes.append(helper.make_node("Relu", [d], ["r"]))
    e = node("MaxPool", ["r"], "e", 0.06, kernel_shape=[2, 2], strides=[2, 2])
    f = node("GlobalAveragePool", [e], "f", 0.03)
    nodes.append(helper.make_node("Flatten", [f], ["flat"]))
    nodes.append(helper.make_node("MatMul", ["flat", weight("w4", (24, 10), 1)], ["y"]))
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])], tensors,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_net_of_codes(kind: str, tmp_path: Path) -> None:
    model = quantized_net(kind)
    file = tmp_path / "net.onnx"
    onnx.save(model, file)
    artifact = argosy.compile(str(file), targets=("cpu",), strict=True)
    x = RANDOM.standard_normal((2, 3, 32, 32)).astype(np.float32)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    peer = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (expected,) = peer.run(None, {"x": x})
    result = argosy.Session(artifact, device="cpu").run({"x": x})["y"]
    assert np.abs(result - expected).max() <= 5e-2 * np.abs(expected).max()
