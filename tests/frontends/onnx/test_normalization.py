"""Normalisations against ONNX Runtime, and against their definitions in float64."""

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
X = RNG.standard_normal((2, 4, 3, 5)).astype(np.float32)
SCALE, BIAS, MEAN = (RNG.standard_normal(4).astype(np.float32) for _ in range(3))
VARIANCE = RNG.uniform(0.5, 2, 4).astype(np.float32)
DYNAMIC = ("n", "c", "h", "w")


def channel(parameter: Array) -> Array:
    return parameter.astype(np.float64).reshape(4, 1, 1)


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization(opset: int) -> None:
    shapes = [("n", 4, "h", "w"), *[(4,)] * 4]
    for x in (X, X[:, :, 0, 0]):
        given = [shapes[0][: x.ndim], *shapes[1:]]
        assert_agrees("BatchNormalization", x, SCALE, BIAS, MEAN, VARIANCE, opset=opset, epsilon=1e-3, shapes=given)


def test_batch_normalization_before_opset_7() -> None:
    expected = (X - channel(MEAN)) / np.sqrt(channel(VARIANCE) + 1e-5) * channel(SCALE) + channel(BIAS)
    for options in ({"is_test": 1}, {"is_test": 0}, {"is_test": 1, "spatial": 1, "consumed_inputs": [0, 0, 0, 1, 1]}):
        found = run(
            "BatchNormalization", X, SCALE, BIAS, MEAN, VARIANCE, opset=6 if len(options) == 1 else 1, **options
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_batch_normalization_of_every_place() -> None:
    scale, bias, mean = (RNG.standard_normal((4, 3, 5)).astype(np.float32) for _ in range(3))
    variance = RNG.uniform(0.5, 2, (4, 3, 5)).astype(np.float32)
    found = run("BatchNormalization", X, scale, bias, mean, variance, opset=7, spatial=0)
    np.testing.assert_allclose(found, (X - mean) / np.sqrt(variance + 1e-5) * scale + bias, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [9, 15])
def test_batch_normalization_in_training(opset: int) -> None:
    options: dict[str, Any] = {"training_mode": 1} if opset == 15 else {}
    names = ("y", "mean", "variance") if opset == 15 else ("y", "mean", "variance", "saved_mean", "saved_variance")
    found = run(
        "BatchNormalization", X, SCALE, BIAS, MEAN, VARIANCE, opset=opset, outputs=names, momentum=0.75, **options
    )
    wide = X.astype(np.float64)
    mean, variance = wide.mean((0, 2, 3)), wide.var((0, 2, 3))
    y = (wide - channel(mean)) / np.sqrt(channel(variance) + 1e-5) * channel(SCALE) + channel(BIAS)
    expected = [y, MEAN * 0.75 + mean * 0.25, VARIANCE * 0.75 + variance * 0.25, mean, variance]
    for have, want in zip(found, expected, strict=False):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_short_floats_round_once(dtype: Any) -> None:
    x = (X * 100).astype(dtype)
    found = run("BatchNormalization", x, SCALE, BIAS, MEAN, VARIANCE)
    wide = x.astype(np.float64)
    expected = (wide - channel(MEAN)) / np.sqrt(channel(VARIANCE) + 1e-5) * channel(SCALE) + channel(BIAS)
    assert found.dtype == dtype
    step = float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0.51 * step, atol=1e-4)


def test_instance_normalization() -> None:
    assert_agrees(
        "InstanceNormalization", X, SCALE, BIAS, opset=11, epsilon=1e-3, shapes=[("n", 4, "h", "w"), (4,), (4,)]
    )


@pytest.mark.parametrize("axis", [-1, 1, 2, -3])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_normalization(axis: int, bias: bool) -> None:
    shape = X.shape[axis:]
    scale, offset = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
    inputs = [X, scale, offset] if bias else [X, scale]
    shapes = [DYNAMIC, *[shape] * (len(inputs) - 1)]
    assert_agrees("LayerNormalization", *inputs, opset=17, axis=axis, outputs=("y", "mean", "inverse"), shapes=shapes)


def test_layer_normalization_keeps_far_means() -> None:
    x = np.array([[1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3]], np.float32)
    found = run("LayerNormalization", x, np.ones(4, np.float32))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(found, (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5), rtol=1e-5)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_normalization(opset: int) -> None:
    count = 2 if opset == 18 else 4
    scale, bias = SCALE[:count], BIAS[:count]
    found = run(
        "GroupNormalization", X, scale, bias, opset=opset, num_groups=2, shapes=[("n", 4, "h", "w"), (count,), (count,)]
    )
    wide = X.astype(np.float64).reshape(2, 2, -1)
    standard = (wide - wide.mean(2, keepdims=True)) / np.sqrt(wide.var(2, keepdims=True) + 1e-5)
    repeat = 4 // count
    expected = standard.reshape(X.shape) * channel(np.repeat(scale, repeat)) + channel(np.repeat(bias, repeat))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_opset_18_with_a_scale_for_each_channel() -> None:
    np.testing.assert_array_equal(
        run("GroupNormalization", X, SCALE, BIAS, opset=18, num_groups=2),
        run("GroupNormalization", X, SCALE, BIAS, opset=21, num_groups=2),
    )


@pytest.mark.parametrize(
    ("op", "inputs", "words"),
    [
        ("LayerNormalization", [X, np.ones(5, np.int8)], "scale or bias has type int8"),
        ("InstanceNormalization", [X, SCALE.astype(np.float16), BIAS], "must have the type of the input, float32"),
        ("SkipLayerNormalization", [X, X, SCALE], "expected rank 2 or 3"),
        ("SkipLayerNormalization", [X[0], X[0], SCALE], r"gamma is float32\[4\], expected \[5\]"),
    ],
)
def test_parameters_that_do_not_fit(op: str, inputs: list[Array], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        program(op, inputs, domain="com.microsoft" if op.startswith("Skip") else "")


def test_groups_that_do_not_divide_the_channels() -> None:
    with pytest.raises(ModelError, match="4 channels do not divide into 3 groups"):
        program("GroupNormalization", [X, SCALE, BIAS], num_groups=3)


def test_rms_normalization() -> None:
    found = run("RMSNormalization", X, SCALE[:3, None] * np.ones(5, np.float32), axis=2, epsilon=1e-2)
    wide = X.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean((2, 3), keepdims=True) + 1e-2) * SCALE[:3, None]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    assert_agrees("LRN", X, opset=13, size=size, alpha=0.5, beta=0.6, bias=1.5, shapes=[("n", 4, "h", "w")])


def test_an_even_window_of_lrn_reaches_one_further_on() -> None:
    found = run("LRN", X, size=2, alpha=0.5, beta=0.6, bias=1.5)
    squares = np.pad(X.astype(np.float64) ** 2, ((0, 0), (0, 1), (0, 0), (0, 0)))
    expected = X / (1.5 + 0.25 * (squares[:, :-1] + squares[:, 1:])) ** 0.6
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p: int) -> None:
    assert_agrees("LpNormalization", X, opset=11, axis=1, p=p)
    assert not run("LpNormalization", np.zeros((2, 3), np.float32), p=p).any()


def test_mean_variance_normalization() -> None:
    assert_agrees("MeanVarianceNormalization", X, opset=13, axes=[0, 2, 3], rtol=1e-4)


def test_skip_layer_normalization() -> None:
    x, skip = (RNG.standard_normal((2, 3, 8)).astype(np.float32) for _ in range(2))
    gamma, beta, bias = (RNG.standard_normal(8).astype(np.float32) for _ in range(3))
    for beta_, bias_ in ((beta, bias), (beta, None), (None, None)):
        inputs = [x, skip, gamma, beta_, bias_]
        found = run("SkipLayerNormalization", *inputs, domain="com.microsoft", outputs=("y", "mean", "inverse", "sum"))
        total = x.astype(np.float64) + skip + (0 if bias_ is None else bias_)
        standard = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-12)
        np.testing.assert_allclose(found[0], standard * gamma + (0 if beta_ is None else beta_), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[3], total, rtol=1e-6, atol=1e-6)
        while inputs[-1] is None:
            inputs.pop()
        assert_agrees("SkipLayerNormalization", *inputs, domain="com.microsoft", rtol=1e-4, atol=1e-5)


def test_simplified_layer_normalization() -> None:
    x, skip = (RNG.standard_normal((2, 3, 8)).astype(np.float32) for _ in range(2))
    gamma = RNG.standard_normal(8).astype(np.float32)
    assert_agrees("SkipSimplifiedLayerNormalization", x, skip, gamma, domain="com.microsoft", rtol=1e-4, atol=1e-5)
    found = run("SimplifiedLayerNormalization", x, gamma, domain="com.microsoft")
    wide = x.astype(np.float64)
    np.testing.assert_allclose(found, wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * gamma, rtol=1e-5)
