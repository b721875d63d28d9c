"""Norms, activations and convolutions of com.microsoft against ONNX Runtime, or numpy where it has no kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

RNG = np.random.default_rng(0)
MS: Any = {"domain": "com.microsoft"}


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


SHAPES = [((2, 3, 8), (2, 3, 8)), ((2, 3, 8), (1, 3, 8)), ((2, 3, 8), (3, 8)), ((4, 8), (4, 8))]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("extra", [(), ("beta",), ("bias",), ("beta", "bias")])
def test_skip_layer_normalization(shapes: Any, extra: Any) -> None:
    x, skip = (floats(*shape) for shape in shapes)
    beta, bias = (floats(8) if name in extra else None for name in ("beta", "bias"))
    # ONNX Runtime does not give the mean and the deviation.
    options: Any = {"outputs": ("y", "", "", "s"), "epsilon": 1e-5, **MS}
    assert_agrees("SkipLayerNormalization", x, skip, floats(8), beta, bias, **options)
    assert_agrees("SkipSimplifiedLayerNormalization", x, skip, floats(8), bias, **options)


def test_moments_of_skip_layer_normalization() -> None:
    x, skip, gamma = floats(2, 3, 8), floats(2, 3, 8), floats(8)
    _, mean, inverse, total = run("SkipLayerNormalization", x, skip, gamma, outputs=("y", "m", "i", "s"), **MS)
    np.testing.assert_allclose(total, x + skip, rtol=1e-6)
    np.testing.assert_allclose(mean, total.mean(-1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(inverse, 1 / total.std(-1, keepdims=True), rtol=1e-5)


def test_simplified_layer_normalization() -> None:
    for axis in (-1, 1):
        assert_agrees("SimplifiedLayerNormalization", floats(2, 3, 8), floats(8), outputs=("y", "i"), axis=axis)


def test_stash_type_0_is_the_type_of_the_input() -> None:
    x, scale = floats(2, 3, 8).astype(np.float16), np.ones(8, np.float16)
    _, mean, inverse = run("LayerNormalization", x, scale, outputs=("y", "m", "i"), stash_type=0)
    assert mean.dtype == inverse.dtype == np.float16
    np.testing.assert_allclose(mean, x.astype(float).mean(-1, keepdims=True), rtol=1e-3, atol=1e-4)
    _, mean, _ = run("LayerNormalization", x, scale, outputs=("y", "m", "i"))
    assert mean.dtype == np.float32


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("extra", [False, True])
def test_embed_layer_normalization(segments: bool, extra: bool) -> None:
    ids, kinds = RNG.integers(0, 9, (2, 5), np.int32), RNG.integers(0, 2, (2, 5), np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32) if extra else None
    places = RNG.integers(0, 7, (2, 5), np.int32) if extra else None
    inputs = [ids, kinds if segments else None, floats(9, 8), floats(7, 8), floats(2, 8) if segments else None]
    inputs += [floats(8), floats(8), mask, places]
    outputs = ("y", "mask_index", "sum")
    assert_agrees("EmbedLayerNormalization", *inputs, outputs=outputs, epsilon=1e-6, **MS)


def group_norm(x: Any, gamma: Any, beta: Any, groups: int) -> Any:
    """In float64, of `[N, C, …]`."""
    grouped = x.astype(np.float64).reshape(x.shape[0], groups, -1)
    moments = grouped.mean(-1, keepdims=True), grouped.var(-1, keepdims=True)
    standard = ((grouped - moments[0]) / np.sqrt(moments[1] + 1e-5)).reshape(x.shape)
    shape = (-1, *(1,) * (x.ndim - 2))
    return standard * gamma.reshape(shape) + beta.reshape(shape)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
def test_group_norm(last: int, activation: int) -> None:
    x, gamma, beta = floats(2, 6, 3, 4), floats(6), floats(6)
    wanted = group_norm(x, gamma, beta, 3)
    wanted = wanted / (1 + np.exp(-wanted)) if activation else wanted
    given, wanted = (np.moveaxis(a, 1, -1) if last else a for a in (x, wanted))
    options: Any = {"groups": 3, "channels_last": last, "activation": activation, **MS}
    np.testing.assert_allclose(run("GroupNorm", given, gamma, beta, **options), wanted, rtol=1e-4, atol=1e-5)
    half = run("GroupNorm", given.astype(np.float16), gamma, beta, **options)
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, wanted, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
def test_skip_group_norm(last: int, flat: bool) -> None:
    x, gamma, beta, bias = floats(2, 6, 3, 4), floats(6), floats(6), floats(6)
    skip = floats(2, 6) if flat else floats(2, 6, 3, 4)
    total = x + (skip[..., None, None] if flat else skip) + bias[:, None, None]
    wanted = group_norm(total, gamma, beta, 2)
    x, total, wanted = (np.moveaxis(a, 1, -1) if last else a for a in (x, total, wanted))
    skip = np.moveaxis(skip, 1, -1) if last and not flat else skip
    options: Any = {"groups": 2, "channels_last": last, "activation": 0, "outputs": ("y", "s"), **MS}
    y, s = run("SkipGroupNorm", x, gamma, beta, skip, bias, **options)
    np.testing.assert_allclose(s, total, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "count"),
    [("Gelu", 1), ("BiasGelu", 2), ("FastGelu", 1), ("FastGelu", 2), ("QuickGelu", 1)],
)
def test_activation(op: str, count: int) -> None:
    assert_agrees(op, *(floats(2, 3, 8), floats(8))[:count], rtol=1e-4, atol=1e-5, **MS)


def test_bias_add_and_bias_split_gelu() -> None:
    x, bias, skip = floats(2, 3, 8), floats(8), floats(2, 3, 8)
    np.testing.assert_allclose(run("BiasAdd", x, bias, skip, **MS), x + bias + skip, rtol=1e-6)
    left, right = np.split((x + bias).astype(np.float64), 2, -1)
    erf = np.vectorize(math.erf)
    wanted = left * right * 0.5 * (1 + erf(right / np.sqrt(2)))
    np.testing.assert_allclose(run("BiasSplitGelu", x, bias, **MS), wanted, rtol=1e-5, atol=1e-6)


def test_nhwc_convolutions() -> None:
    x, w, b = floats(2, 4, 6, 7), floats(6, 2, 3, 3), floats(6)
    wanted = run("Conv", x, w, b, group=2, pads=[1, 1, 0, 0])
    moved = np.moveaxis(x, 1, -1)
    found = run("NhwcConv", moved, w, b, group=2, pads=[1, 1, 0, 0], **MS)
    np.testing.assert_allclose(found, np.moveaxis(wanted, 1, -1), rtol=1e-5, atol=1e-6)
    addend = floats(*found.shape)
    fused = run("NhwcFusedConv", moved, w, b, addend, group=2, pads=[1, 1, 0, 0], activation="Relu", **MS)
    np.testing.assert_allclose(fused, np.maximum(found + addend, 0), rtol=1e-5, atol=1e-6)
    pixels = RNG.integers(0, 256, (1, 6, 7, 3), np.uint8)
    assert_agrees("NhwcMaxPool", pixels, kernel_shape=[2, 2], strides=[2, 2], **MS)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Relu", []),
        ("Tanh", []),
        ("Sigmoid", []),
        ("LeakyRelu", [0.2]),
        ("Clip", [-0.5, 0.5]),
        ("HardSigmoid", [0.3, 0.4]),
    ],
)
def test_fused_activations(name: str, parameters: list[float]) -> None:
    x, w, b = floats(1, 3, 6, 7), floats(4, 3, 3, 3), floats(4)
    options: Any = {"activation": name, "rtol": 1e-4, "atol": 1e-5, **MS}
    given: Any = {"activation_params": parameters} if parameters else {}
    assert_agrees("FusedConv", x, w, b, **given, **options)
    given = dict(zip(("activation_alpha", "activation_beta"), parameters, strict=False))
    if name != "Clip":
        assert_agrees("FusedGemm", floats(3, 4), floats(4, 5), floats(5), **given, **options)


def test_inputs_are_checked() -> None:
    x, gamma = floats(2, 3, 8), floats(8)
    with pytest.raises(ModelError, match=r"bias is float32\[4\], expected \[8\]"):
        program("SkipLayerNormalization", [x, x, gamma, None, gamma[:4]], **MS)
    with pytest.raises(ModelError, match=r"the input is float32\[1, 2, 3, 8\], expected rank 2 or 3"):
        program("SkipLayerNormalization", [x[None], x, gamma], **MS)
    with pytest.raises(ModelError, match="attribute 'groups' is missing"):
        program("GroupNorm", [x, gamma, gamma], activation=0, **MS)
    with pytest.raises(ModelError, match=r"gamma is float32\[4\], expected \[8\]"):
        program("GroupNorm", [x, gamma[:4], gamma[:4]], activation=0, groups=2, **MS)
    ids = np.zeros((2, 3), np.int32)
    with pytest.raises(ModelError, match="segment_ids and segment_embedding must both be given"):
        program("EmbedLayerNormalization", [ids, ids, floats(9, 8), floats(7, 8), None, gamma, gamma], **MS)
