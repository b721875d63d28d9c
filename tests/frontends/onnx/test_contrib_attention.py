"""Attention, MultiHeadAttention, QAttention of com.microsoft against ONNX Runtime, or numpy where it has no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError, UnsupportedError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

RNG = np.random.default_rng(0)
B, S, N, H = 2, 4, 2, 3
D = N * H
MS: Any = {"domain": "com.microsoft", "num_heads": N}
ENDS, BOTH = np.array([2, 3], np.int32), np.array([3, 4, 1, 2], np.int32)
RAW = np.array([[1, 1, 0, 1], [0, 1, 1, 0]], np.int32)
CUBE = RNG.integers(0, 2, (B, S, S)).astype(np.int32)
CUBE[:, :, 0] = 1


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def agrees(op: str, *inputs: Any, **options: Any) -> None:
    assert_agrees(op, *inputs, rtol=1e-4, atol=1e-5, **{**MS, **options})


X, W, BIAS = floats(B, S, 5), floats(5, 3 * D), floats(3 * D)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", [None, ENDS, BOTH, RAW, CUBE], ids=["none", "ends", "both", "raw", "cube"])
def test_attention_masks(mask: Any, causal: int) -> None:
    agrees("Attention", X, W, BIAS, mask, unidirectional=causal)
    agrees("Attention", X, W, BIAS, mask, unidirectional=causal, mask_filter_value=-1.5, scale=0.3)


@pytest.mark.parametrize("batch", [1, B])
@pytest.mark.parametrize("heads", [1, N])
def test_attention_bias(batch: int, heads: int) -> None:
    agrees("Attention", X, W, BIAS, RAW, None, floats(batch, heads, S, S))


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_a_past(causal: int, masked: bool) -> None:
    past = floats(2, B, N, 3, H)
    mask = RNG.integers(0, 2, (B, 3 + S)).astype(np.int32) if masked else None
    agrees("Attention", X, W, BIAS, mask, past, outputs=("y", "present"), unidirectional=causal)
    agrees("Attention", X, W, BIAS, None, past[:, :, :, :0], outputs=("y", "present"), unidirectional=causal)


def test_attention_with_sizes_of_its_own() -> None:
    v = 2 * N
    agrees("Attention", X, floats(5, 2 * D + v), floats(2 * D + v), qkv_hidden_sizes=[D, D, v])


def attention(q: Any, k: Any, v: Any, added: Any = 0.0, scale: float = H**-0.5) -> Any:
    """In float64, `[B, N, S, H]` each."""
    q, k, v = (part.astype(np.float64) for part in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * scale + added
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def heads(x: Any) -> Any:
    return x.reshape(*x.shape[:2], N, -1).transpose(0, 2, 1, 3)


def merged(x: Any) -> Any:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_attention_with_a_square_mask_and_short_floats(dtype: Any) -> None:
    mask = np.tril(np.ones((B, 1, 6, 6), np.int32))
    x, w, bias = (value.astype(dtype) for value in (X, W, BIAS))
    q, k, v = (heads(part) for part in np.split(x.astype(np.float64) @ w.astype(np.float64) + bias, 3, -1))
    wanted = merged(attention(q, k, v, np.where(mask[:, :, :S, :S] > 0, 0.0, -10000.0)))
    found = run("Attention", x, w, bias, mask, **MS)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-4 if dtype is np.float32 else 2e-3, atol=1e-4)


@pytest.mark.parametrize("kinds", [(np.uint8, np.int8), (np.uint8, np.uint8)])
@pytest.mark.parametrize("causal", [0, 1])
def test_quantised_attention(kinds: Any, causal: int) -> None:
    x, w = (RNG.integers(0, 99, shape).astype(kind) for shape, kind in zip(((B, S, 5), (5, 3 * D)), kinds, strict=True))
    scale, scales = np.array(0.02, np.float32), np.array(0.01, np.float32)
    zeros = np.array(40, kinds[0]), np.array(30, kinds[1])
    agrees("QAttention", x, w, BIAS, scale, scales, ENDS, *zeros, constant=(1, 2, 3, 4, 6, 7), unidirectional=causal)
    past = floats(2, B, N, 3, H)
    inputs = (x, w, BIAS, scale, scales, None, *zeros, past)
    agrees("QAttention", *inputs, constant=(1, 2, 3, 4, 6, 7), unidirectional=1, outputs=("y", "present"))


Q, K, V = floats(B, S, D), floats(B, S, D), floats(B, S, D)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", [None, ENDS, RAW, CUBE], ids=["none", "ends", "raw", "cube"])
def test_multi_head_masks(mask: Any, causal: int) -> None:
    agrees("MultiHeadAttention", Q, K, V, BIAS, mask, unidirectional=causal, mask_filter_value=-1.5)


def test_multi_head_forms() -> None:
    packed = floats(B, S, N, 3, H)
    q, k, v = (heads(part.reshape(B, S, D)) for part in np.moveaxis(packed, 3, 0))
    found = run("MultiHeadAttention", packed, None, None, BIAS, **MS)
    parts = (part + b.reshape(N, 1, H) for part, b in zip((q, k, v), np.split(BIAS, 3), strict=True))
    np.testing.assert_allclose(found, merged(attention(*parts)), rtol=1e-4, atol=1e-5)
    packed = floats(B, 6, N, 2, H)
    k, v = (part.swapaxes(1, 2) for part in np.moveaxis(packed, 3, 0))
    found = run("MultiHeadAttention", Q, packed, **MS)
    np.testing.assert_allclose(found, merged(attention(heads(Q), k, v)), rtol=1e-4, atol=1e-5)
    cross = floats(B, N, 6, H), floats(B, N, 6, H)
    agrees("MultiHeadAttention", Q, *cross)
    agrees("MultiHeadAttention", Q, *cross, np.concatenate([BIAS[:D], np.zeros(2 * D, np.float32)]))
    agrees("MultiHeadAttention", Q, floats(B, 6, D), floats(B, 6, 4 * N), scale=0.4)


@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head_with_a_past(causal: int) -> None:
    past = floats(B, N, 3, H), floats(B, N, 3, H)
    outputs = ("y", "present_key", "present_value")
    mask = RNG.integers(0, 2, (B, 3 + S)).astype(np.int32)
    inputs = (Q, K, V, BIAS, mask, floats(1, N, S, 3 + S), *past)
    agrees("MultiHeadAttention", *inputs, outputs=outputs, unidirectional=causal)


def test_multi_head_scores() -> None:
    """They are those that go into the softmax, masks and all."""
    bias = floats(B, 1, S, S)
    inputs = (Q, K, V, None, RAW, bias)
    _, found = run("MultiHeadAttention", *inputs, outputs=("y", "", "", "qk"), mask_filter_value=-2.0, **MS)
    scores = heads(Q) @ heads(K).swapaxes(-1, -2) * H**-0.5
    np.testing.assert_allclose(found, scores + bias + np.where(RAW > 0, 0, -2.0)[:, None, None], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_multi_head_with_a_buffer(count: int) -> None:
    """The new keys are written behind the `count` that count; what lies behind these is not read."""
    buffers = floats(B, N, 6, H), floats(B, N, 6, H)
    new = Q[:, :2], K[:, :2], V[:, :2]
    inputs = (*new, None, None, None, *buffers, np.array([count], np.int32))
    y, keys, values = run("MultiHeadAttention", *inputs, outputs=("y", "k", "v"), **MS)
    full = [buffer.copy() for buffer in buffers]
    for buffer, part in zip(full, new[1:], strict=True):
        buffer[:, :, count : count + 2] = heads(part)
    np.testing.assert_array_equal(keys, full[0])
    np.testing.assert_array_equal(values, full[1])
    wanted = attention(heads(new[0]), *(buffer[:, :, : count + 2] for buffer in full))
    np.testing.assert_allclose(y, merged(wanted), rtol=1e-4, atol=1e-5)


def test_symbolic_dims() -> None:
    shapes = [["batch", "length", D], ["batch", "keys", D], ["batch", "keys", D], ["batch", "keys"]]
    made = program("MultiHeadAttention", [Q, K, V, None, RAW], shapes=[*shapes[:3], [], shapes[3]], **MS)
    assert str(made.outputs["y"]) == f"float32[batch, length, {D}]"
    made = program("Attention", [X, W, BIAS], shapes=[["batch", "length", 5], [5, 3 * D], [3 * D]], **MS)
    assert str(made.outputs["y"]) == f"float32[batch, length, {D}]"


@pytest.mark.parametrize(
    ("op", "inputs", "options", "words"),
    [
        ("Attention", [X[..., None], W], {}, r"the input is float32\[2, 4, 5, 1\]"),
        ("Attention", [X, W[1:]], {}, r"weights is float32\[4, 18\], expected \[5, 18\]"),
        ("Attention", [X, W, BIAS[1:]], {}, r"bias is float32\[17\], expected \[18\]"),
        ("Attention", [X, W], {"num_heads": 4}, "the size of the queries is 6, expected a positive multiple of the 4"),
        ("Attention", [X, W], {"qkv_hidden_sizes": [6, 12]}, "expected three positive numbers"),
        ("Attention", [X, W, BIAS, RAW[:, 1:]], {}, r"mask_index is int32\[2, 3\], expected \[2, 4\]"),
        ("Attention", [X, W, BIAS, ENDS[:1]], {}, r"mask_index is int32\[1\], expected \[2\] or \[4\]"),
        ("Attention", [X, W, BIAS, None, floats(2, B, N, H)], {}, "past is float32"),
        ("MultiHeadAttention", [Q], {}, r"input 1 is missing|'key'"),
        ("MultiHeadAttention", [Q, K[..., 1:], V], {}, r"key is float32\[2, 4, 5\], expected \[2, 4, 6\]"),
        ("MultiHeadAttention", [floats(B, S, N, 2, H)], {}, r"query is float32\[2, 4, 2, 2, 3\]"),
        ("MultiHeadAttention", [Q, K, V, BIAS[1:]], {}, r"bias is float32\[17\], expected \[18\]"),
        ("MultiHeadAttention", [Q, K, V, None, None, None, heads(K)], {}, "past_key and past_value must both be given"),
        ("MultiHeadAttention", [Q, K, V, None, None, floats(1, 3, S, S)], {}, "attention_bias is"),
    ],
)
def test_what_does_not_fit(op: str, inputs: Any, options: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        program(op, inputs, **{**MS, **options})


def test_what_is_not_done() -> None:
    with pytest.raises(UnsupportedError, match="do_rotary"):
        program("Attention", [X, W], do_rotary=1, **MS)
    with pytest.raises(UnsupportedError, match="3 B \\+ 2 elements"):
        program("Attention", [X, W, BIAS, np.zeros(3 * B + 2, np.int32)], **MS)
