"""Ops of com.microsoft on 8-bit tensors against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

RNG = np.random.default_rng(0)
MS: Any = {"domain": "com.microsoft"}
KINDS = pytest.mark.parametrize("kind", [np.uint8, np.int8])


def bytes_of(kind: Any, *shape: int) -> Any:
    return RNG.integers(*bounds(kind), shape, kind, endpoint=True)


def bounds(kind: Any) -> tuple[int, int]:
    return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


def real(value: float) -> Any:
    return np.array(value, np.float32)


def assert_within_one(op: str, *inputs: Any, **options: Any) -> None:
    """Agrees with ONNX Runtime but for the rounding of ties: one unit."""
    constant = tuple(index for index, value in enumerate(inputs) if value is not None and value.ndim == 0)
    assert_agrees(op, *inputs, constant=constant, rtol=0, atol=1, **MS, **options)


@KINDS
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shapes", [((4, 16), (4, 16)), ((4, 16), (16,)), ((1, 16), (4, 1))], ids=str)
def test_two_tensors(op: str, kind: Any, shapes: Any) -> None:
    a, b = (bytes_of(kind, *shape) for shape in shapes)
    zeros = [np.array(value, kind) for value in (3, 7, 11)]
    assert_within_one(op, a, real(0.02), zeros[0], b, real(0.05), zeros[1], real(0.06), zeros[2])
    nothing = np.array(0, kind)
    np.testing.assert_array_equal(
        run(op, a, real(0.02), None, b, real(0.05), None, real(0.06), None, **MS),
        run(op, a, real(0.02), nothing, b, real(0.05), nothing, real(0.06), nothing, **MS),
    )


@KINDS
def test_one_tensor(kind: Any) -> None:
    x = bytes_of(kind, 3, 40)
    zero, moved = np.array(5, kind), np.array(9, kind)
    assert_within_one("QLinearLeakyRelu", x, real(0.05), zero, real(0.04), moved, alpha=0.2)
    assert_within_one("QLinearSigmoid", x, real(0.05), zero, real(1 / 256), moved)
    mean = run("QLinearReduceMean", x, real(0.05), zero, real(0.02), moved, axes=[1], keepdims=1, **MS)
    wanted = ((x.astype(float) - 5) * 0.05).mean(1, keepdims=True) / 0.02 + 9
    np.testing.assert_allclose(mean, np.clip(np.rint(wanted), *bounds(kind)), atol=1)


@KINDS
@pytest.mark.parametrize(("opset", "axis"), [(13, 1), (13, -1), (11, 1)])
def test_softmax(kind: Any, opset: int, axis: int) -> None:
    x = bytes_of(kind, 2, 5, 6)
    scale, zero = (1 / 256, 0) if kind is np.uint8 else (1 / 256, -128)
    inputs = (x, real(0.03), np.array(2, kind), real(scale), np.array(zero, kind))
    assert_within_one("QLinearSoftmax", *inputs, opset_=opset, axis=axis)


@KINDS
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("pads", [{}, {"pads": [1, 1, 1, 1]}, {"pads": [1, 1, 1, 1], "count_include_pad": 1}], ids=str)
def test_average_pool(kind: Any, last: int, pads: Any) -> None:
    x = bytes_of(kind, 2, 6, 7, 8)
    inputs = (x, real(0.05), np.array(4, kind), real(0.04), np.array(8, kind))
    assert_within_one("QLinearAveragePool", *inputs, kernel_shape=[3, 2], strides=[2, 1], channels_last=last, **pads)
    assert_within_one("QLinearGlobalAveragePool", *inputs, channels_last=last)


@KINDS
def test_concat(kind: Any) -> None:
    a, b = bytes_of(kind, 2, 3), bytes_of(kind, 2, 5)
    zeros = [np.array(value, kind) for value in (1, 2, 3)]
    inputs = (real(0.06), zeros[0], a, real(0.05), zeros[1], b, real(0.03), zeros[2])
    assert_within_one("QLinearConcat", *inputs, axis=1)


@KINDS
def test_where(kind: Any) -> None:
    condition = RNG.random((3, 4)) < 0.5
    x, y = bytes_of(kind, 3, 4), bytes_of(kind, 1, 4)
    zeros = [np.array(value, kind) for value in (1, 2, 3)]
    inputs = (condition, x, real(0.05), zeros[0], y, real(0.03), zeros[1], real(0.06), zeros[2])
    assert_within_one("QLinearWhere", *inputs)


@pytest.mark.parametrize("last", [0, 1])
def test_convolution(last: int) -> None:
    x, w = bytes_of(np.uint8, 1, 3, 6, 7), bytes_of(np.int8, 4, 3, 3, 3) // 2  # see the tests of matrix products
    x = np.moveaxis(x, 1, -1).copy() if last else x
    zero = np.array(120, np.uint8)
    inputs = (x, real(0.02), zero, w, real(0.01), np.array(0, np.int8), real(0.1), zero, np.arange(4, dtype=np.int32))
    assert_agrees(
        "QLinearConv", *inputs, constant=(1, 2, 3, 4, 5, 6, 7, 8), rtol=0, atol=1, channels_last=last,
        pads=[1, 1, 1, 1], **MS,
    )  # fmt: skip


def test_inputs_are_checked() -> None:
    a, scale, zero = bytes_of(np.uint8, 4), real(0.1), np.array(0, np.uint8)
    with pytest.raises(ModelError, match=r"QLinearAdd \(node 0 → 'y'\): input 3 \('B' of QLinearAdd\) is missing"):
        program("QLinearAdd", [a, scale, zero, None, scale, zero, scale, zero], **MS)
    with pytest.raises(ModelError, match=r"input 3 \('B' of QLinearAdd\) is int8, input 0 \('A'\) is uint8"):
        program("QLinearAdd", [a, scale, zero, a.astype(np.int8), scale, None, scale, zero], **MS)
    with pytest.raises(ModelError, match=r"input 1 \('X_scale' of QLinearSigmoid\) is float16, expected float32"):
        program("QLinearSigmoid", [a, scale.astype(np.float16), zero, scale, zero], **MS)
    with pytest.raises(ModelError, match=r"input 1 is float32\[4\], expected one element"):
        program("QLinearSigmoid", [a, np.ones(4, np.float32), zero, scale, zero], **MS)
    with pytest.raises(ModelError, match="has 6 inputs, QLinearSigmoid takes at most 5"):
        program("QLinearSigmoid", [a, scale, zero, scale, zero, zero], **MS)
    with pytest.raises(ModelError, match="has 4 inputs, expected a scale, a zero point, and three for each tensor"):
        run("QLinearConcat", scale, zero, a, scale, axis=0, **MS)
