"""Activations against their formulas in float64: moderate and extreme arguments, short floats, all opsets."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.frontends.onnx.one_node import run

Array = NDArray[Any]
X = np.array([-1e30, -1e4, -100.0, -20.0, -3.0, -1.0, -1e-6, 0.0, 1e-6, 0.5, 1.0, 3.0, 20.0, 100.0, 1e4, 1e30])


def sigmoid(x: Array) -> Array:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1.0) / (1 + np.exp(-np.abs(x)))


def softplus(x: Array) -> Array:
    return np.logaddexp(x, 0.0)


def gelu(x: Array) -> Array:
    return x * 0.5 * np.vectorize(math.erfc)(-x / math.sqrt(2))


def gelu_tanh(x: Array) -> Array:
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


CASES: list[tuple[str, dict[str, float], Callable[[Array], Array]]] = [
    ("Relu", {}, lambda x: np.maximum(x, 0)),
    ("LeakyRelu", {"alpha": 0.25}, lambda x: np.where(x < 0, 0.25 * x, x)),
    ("Elu", {"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(np.minimum(x, 0)), x)),
    ("Celu", {"alpha": 2.0}, lambda x: np.maximum(x, 0) + 2 * np.expm1(np.minimum(x, 0) / 2)),
    ("Selu", {"alpha": 1.5, "gamma": 2.0}, lambda x: 2 * np.where(x > 0, x, 1.5 * np.expm1(np.minimum(x, 0)))),
    ("ThresholdedRelu", {"alpha": 0.75}, lambda x: np.where(x > 0.75, x, 0)),
    ("HardSigmoid", {"alpha": 0.25, "beta": 0.5}, lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
    ("HardSwish", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ("Sigmoid", {}, sigmoid),
    ("Softplus", {}, softplus),
    ("Softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("Mish", {}, lambda x: x * np.tanh(softplus(x))),
    ("Swish", {"alpha": 0.5}, lambda x: x * sigmoid(0.5 * x)),
    ("Shrink", {"lambd": 1.5, "bias": 0.25}, lambda x: np.where(x < -1.5, x + 0.25, np.where(x > 1.5, x - 0.25, 0))),
]


@pytest.mark.parametrize(("op", "attributes", "formula"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_formulas(
    op: str, attributes: dict[str, float], formula: Callable[[Array], Array], dtype: Any, rtol: float
) -> None:
    x = X.astype(dtype)
    y = run(op, x, **attributes)
    assert np.isfinite(y).all()
    np.testing.assert_allclose(y.astype(np.float64), formula(x.astype(np.float64)), rtol=rtol, atol=1e-38)


@pytest.mark.parametrize(("op", "attributes", "formula"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_short_floats_round_once(
    op: str, attributes: dict[str, float], formula: Callable[[Array], Array], dtype: Any
) -> None:
    if op == "Shrink" and dtype is ml_dtypes.bfloat16:
        pytest.skip("ONNX has no Shrink of bfloat16")
    x = np.linspace(-8, 8, 333).astype(dtype)
    exact = formula(x.astype(np.float64)).astype(dtype)
    y = run(op, x, **attributes)
    # The float32 computation may fall on the other side of a tie, rarely.
    steps = np.abs(y.view(np.int16).astype(np.int32) - exact.view(np.int16).astype(np.int32))
    assert steps.max() <= 1
    assert (steps == 0).mean() > 0.99


@pytest.mark.parametrize(("approximate", "formula"), [("none", gelu), ("tanh", gelu_tanh)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu(approximate: str, formula: Callable[[Array], Array], dtype: Any) -> None:
    x = np.concatenate([np.linspace(-12, 12, 500), [-1e30, -1e4, 1e4, 1e30]]).astype(dtype)
    y = run("Gelu", x, approximate=approximate)
    np.testing.assert_allclose(y, formula(x.astype(np.float64)), rtol=2e-6, atol=3e-7)


def test_contrib_gelus() -> None:
    rng = np.random.default_rng(0)
    x, bias = rng.normal(size=(2, 5), scale=3).astype(np.float32), rng.normal(size=5).astype(np.float32)
    wide = x.astype(np.float64)
    close = partial(np.testing.assert_allclose, rtol=2e-6, atol=3e-7)
    close(run("Gelu", x, domain="com.microsoft"), gelu(wide))
    close(run("BiasGelu", x, bias, domain="com.microsoft"), gelu(wide + bias))
    close(run("FastGelu", x, domain="com.microsoft"), gelu_tanh(wide))
    close(run("FastGelu", x, bias, domain="com.microsoft"), gelu_tanh(wide + bias))
    np.testing.assert_allclose(run("BiasAdd", x, bias, x, domain="com.microsoft"), 2 * wide + bias, rtol=1e-6)
    halves = np.split(np.repeat(wide, 2, axis=1) + np.repeat(bias, 2), 2, axis=-1)
    close(
        run("BiasSplitGelu", np.repeat(x, 2, 1), np.repeat(bias, 2), domain="com.microsoft"),
        halves[0] * gelu(halves[1]),
    )
    quick = wide * sigmoid(np.float64(np.float32(1.702)) * wide)
    close(run("QuickGelu", x, domain="com.microsoft"), quick)


@pytest.mark.parametrize(
    "op", ["Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Softplus", "Mish", "Swish", "HardSigmoid"]
)
def test_nan_passes(op: str) -> None:
    assert np.isnan(run(op, np.array([np.nan], np.float32)))[0]


def test_defaults_follow_the_opset() -> None:
    x = np.array([-1.0, 1.0])
    old, new = run("Selu", x, opset=1), run("Selu", x, opset=6)
    np.testing.assert_allclose(old, [1.0507 * 1.6732 * math.expm1(-1), 1.0507], rtol=1e-7)
    np.testing.assert_allclose(new, [1.05070102 * 1.67326319 * math.expm1(-1), 1.05070102], rtol=1e-7)
    assert (old != new).all()


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_relu_of_integers(dtype: Any) -> None:
    np.testing.assert_array_equal(run("Relu", np.array([-3, 0, 3], dtype)), np.array([0, 0, 3], dtype))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.uint64])
def test_prelu_broadcasts_its_slope(dtype: Any) -> None:
    x = np.array([[[1, 2], [3, 4]]], dtype) if dtype is np.uint64 else np.array([[[1, -2], [-3, 4]]], dtype)
    slope = np.array([[2], [3]], dtype)
    np.testing.assert_array_equal(run("PRelu", x, slope), np.where(x < 0, x * slope, x))


@pytest.mark.parametrize("opset", [1, 6])
def test_prelu_was_per_channel(opset: int) -> None:
    x = -np.ones((2, 3, 4, 3), np.float32)
    y = run("PRelu", x, np.array([1, 2, 3], np.float32), opset=opset)
    np.testing.assert_array_equal(y, -np.broadcast_to(np.array([1, 2, 3], np.float32)[:, None, None], x.shape))
    np.testing.assert_array_equal(run("PRelu", x, np.array([5], np.float32), opset=opset), x * 5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float16, np.float32])
def test_clip_limits(dtype: Any) -> None:
    x, low, high = np.array([1, 5, 9], dtype), np.array(3, dtype), np.array(7, dtype)
    np.testing.assert_array_equal(run("Clip", x, low, high), [3, 5, 7])
    np.testing.assert_array_equal(run("Clip", x, low), [3, 5, 9])
    np.testing.assert_array_equal(run("Clip", x, None, high), [1, 5, 7])
    np.testing.assert_array_equal(run("Clip", x), x)
    np.testing.assert_array_equal(run("Clip", x, high, low), [3, 3, 3])  # low > high: everything is high


def test_clip_without_limits_leaves_infinities_alone() -> None:
    x = np.array([-np.inf, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(run("Clip", x), x)
    np.testing.assert_array_equal(run("Clip", x, np.array(0, np.float32)), [0, np.nan, np.inf])
    np.testing.assert_array_equal(run("Clip", x, opset=1), x)
    end = np.finfo(np.float32).max
    np.testing.assert_array_equal(run("Clip", x, opset=6), [-end, np.nan, end])
    np.testing.assert_array_equal(run("Clip", x, opset=6, min=-1.0, max=2.0), [-1, np.nan, 2])


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_shrink_of_integers_rounds_after_the_addition(dtype: Any) -> None:
    x = np.array([-4, -2, -1, 0, 1, 2, 4], dtype)
    np.testing.assert_array_equal(run("Shrink", x, lambd=1.5, bias=1.5), [-2, 0, 0, 0, 0, 0, 2])
    np.testing.assert_array_equal(run("Shrink", x, lambd=1.0, bias=-1.0), [-5, -3, 0, 0, 0, 3, 5])
    np.testing.assert_array_equal(run("Shrink", np.array([0, 1, 2, 3], np.uint8), lambd=1.5, bias=1.0), [0, 0, 1, 2])
