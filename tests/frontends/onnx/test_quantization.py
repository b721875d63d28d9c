"""Quantisation against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

Array = NDArray[Any]
RNG = np.random.default_rng(0)
X = (RNG.standard_normal((3, 4, 5)) * 20).astype(np.float32)
SCALE: Array = np.array(0.25, np.float32)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("opset", [10, 13, 21])
def test_there_and_back(kind: Any, opset: int) -> None:
    zero = np.array(3, kind)
    assert_agrees("QuantizeLinear", X, SCALE, zero, opset=opset)
    assert_agrees("DequantizeLinear", run("QuantizeLinear", X, SCALE, zero), SCALE, zero, opset=opset)


@pytest.mark.parametrize("kind", [np.uint16, np.int16])
def test_sixteen_bits(kind: Any) -> None:
    zero = np.array(300, kind)
    assert_agrees("QuantizeLinear", X, SCALE, zero, opset=21)
    assert_agrees("DequantizeLinear", run("QuantizeLinear", X, SCALE, zero), SCALE, zero, opset=21)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_an_axis(axis: int) -> None:
    scale = RNG.uniform(0.1, 1, [X.shape[axis]]).astype(np.float32)
    zero = RNG.integers(0, 9, X.shape[axis], np.uint8)
    assert_agrees("QuantizeLinear", X, scale, zero, opset=13, axis=axis)
    assert_agrees(
        "DequantizeLinear", run("QuantizeLinear", X, scale, zero, axis=axis), scale, zero, opset=13, axis=axis
    )


@pytest.mark.parametrize("axis", [1, 2])
def test_blocks(axis: int) -> None:
    shape = list(X.shape)
    shape[axis] = -(-shape[axis] // 2)
    scale = RNG.uniform(0.1, 1, shape).astype(np.float32)
    assert_agrees("QuantizeLinear", X, scale, np.zeros(shape, np.int8), opset=21, axis=axis, block_size=2)
    codes = RNG.integers(-128, 127, X.shape, np.int8)
    assert_agrees("DequantizeLinear", codes, scale, opset=21, axis=axis, block_size=2)


def test_result_types() -> None:
    assert run("QuantizeLinear", X, SCALE).dtype == np.uint8
    assert run("QuantizeLinear", X, SCALE, output_dtype=3).dtype == np.int8
    assert run("QuantizeLinear", X, SCALE, output_dtype=22).dtype == ml_dtypes.int4
    assert run("DequantizeLinear", np.ones(3, np.int8), SCALE.astype(np.float16)).dtype == np.float16
    assert run("DequantizeLinear", np.ones(3, np.int8), SCALE, output_dtype=10).dtype == np.float16


def test_a_zero_point_of_another_type() -> None:
    with pytest.raises(
        ModelError, match=r"QuantizeLinear \(node 0 → 'y'\): the zero point has type int8, the result uint8"
    ):
        program("QuantizeLinear", [X, SCALE, np.array(0, np.int8)], output_dtype=2)


@pytest.mark.parametrize("shift", [-40.0, 0.0, 40.0])
def test_dynamic_quantize_linear(shift: float) -> None:
    outputs = ("y", "scale", "zero")
    assert_agrees("DynamicQuantizeLinear", X + np.float32(shift), opset=13, outputs=outputs, shapes=[("a", "b", "c")])
    assert_agrees("DynamicQuantizeLinear", X * 0, opset=13, outputs=outputs)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_qlinear_conv(per_channel: bool, kind: Any) -> None:
    low = int(np.iinfo(kind).min)
    x = RNG.integers(low, low + 256, (2, 4, 6, 5)).astype(kind)
    # Weights of 7 bits: on CPUs without VNNI, ONNX Runtime adds pairs of products in 16 bits, and saturates.
    w, bias = RNG.integers(-64, 64, (6, 2, 3, 3)).astype(np.int8), RNG.integers(-999, 999, 6).astype(np.int32)
    w_scale = RNG.uniform(0.01, 0.1, 6).astype(np.float32) if per_channel else np.array(0.05, np.float32)
    w_zero = np.zeros(w_scale.shape, np.int8)
    zero = np.array(low + 100, kind)
    inputs = (x, np.array(0.1, np.float32), zero, w, w_scale, w_zero, np.array(0.9, np.float32), zero, bias)
    constant = (1, 2, 3, 4, 5, 6, 7, 8)
    # A sum at a tie may round to either side.
    options: dict[str, Any] = {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1]}
    assert_agrees("QLinearConv", *inputs, opset=13, constant=constant, atol=1, rtol=0, **options)


def test_conv_integer() -> None:
    x, w = RNG.integers(0, 256, (2, 3, 6, 5)).astype(np.uint8), RNG.integers(0, 256, (4, 3, 3, 2)).astype(np.uint8)
    zero_x, zero_w = np.array(120, np.uint8), np.array(7, np.uint8)
    assert_agrees("ConvInteger", x, w, opset=13, pads=[1, 0, 1, 1])
    assert_agrees("ConvInteger", x, w, zero_x, zero_w, opset=13, pads=[1, 0, 1, 1])


@pytest.mark.parametrize("rows", [False, True])
def test_qlinear_matmul(rows: bool) -> None:
    a, b = RNG.integers(0, 256, (3, 8)).astype(np.uint8), RNG.integers(0, 256, (8, 5)).astype(np.uint8)
    half = np.array(0.5, np.float32)
    a_scale = np.array([0.5, 0.25, 1.0], np.float32) if rows else half
    a_zero = np.array([1, 2, 3], np.uint8) if rows else np.array(128, np.uint8)
    b_scale, b_zero = RNG.uniform(0.1, 0.5, 5).astype(np.float32), RNG.integers(0, 9, 5).astype(np.uint8)
    y_scale, y_zero = np.array(50.0, np.float32), np.array(100, np.uint8)
    found = run("QLinearMatMul", a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
    left = (a - a_zero.astype(np.float64).reshape(-1, 1)) * a_scale.reshape(-1, 1)
    right = (b - b_zero.astype(np.float64)) * b_scale
    np.testing.assert_allclose(found, np.clip(np.rint(left @ right / 50) + 100, 0, 255), atol=1)
