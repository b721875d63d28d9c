"""GroupQueryAttention and RotaryEmbedding of com.microsoft against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from argosy.errors import ModelError, UnsupportedError
from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.interpreter import Interpreter
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import model, program, run

RNG = np.random.default_rng(0)
B, N, K, H = 2, 4, 2, 16
MS: Any = {"domain": "com.microsoft"}
GROUPS: Any = {"num_heads": N, "kv_num_heads": K, "outputs": ("y", "present_key", "present_value"), **MS}


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


COS, SIN = floats(32, H // 2), floats(32, H // 2)


def counts(*values: int) -> Any:
    return np.array(values, np.int32)


def agrees(*inputs: Any, ends: Any, valid: Any = None, **options: Any) -> None:
    """Agrees with ONNX Runtime where the result is specified: valid queries, and keys up to the end of each batch."""
    proto = model("GroupQueryAttention", inputs, opset=21, **{**GROUPS, **options})
    proto.ir_version = 10
    feeds = {f"x{index}": value for index, value in enumerate(inputs) if value is not None}
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    made = load(proto)
    found = Interpreter(made.main).run([feeds[name] for name in made.inputs], Env())
    for want, have, axis in zip(expected, found, (0, 1, 1, 1), strict=False):
        assert want.shape == have.shape
        for b, end in enumerate(ends):
            if axis == 0:
                rows = slice(None if valid is None else valid[b])
                np.testing.assert_allclose(have[b, rows], want[b, rows], rtol=1e-4, atol=1e-5)
            elif len(expected) == 3:
                np.testing.assert_allclose(have[b, :, :end], want[b, :, :end], rtol=1e-5, atol=1e-6)


def projected(length: int, *, packed: bool) -> list[Any]:
    if packed:
        return [floats(B, length, (N + 2 * K) * H), None, None]
    return [floats(B, length, N * H), floats(B, length, K * H), floats(B, length, K * H)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotary", [None, 0, 1])
def test_prompt(packed: bool, rotary: int | None) -> None:
    turn = [COS, SIN] if rotary is not None else []
    options = {"do_rotary": 1, "rotary_interleaved": rotary} if rotary is not None else {}
    inputs = projected(5, packed=packed)
    agrees(*inputs, None, None, counts(4, 4), counts(5), *turn, ends=(5, 5), **options)
    # The second sequence ends with padding.
    agrees(*inputs, None, None, counts(4, 2), counts(5), *turn, ends=(5, 3), valid=(5, 3), **options)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("capacity", [6, 12])
@pytest.mark.parametrize("rotary", [None, 0, 1])
def test_one_more_token(packed: bool, capacity: int, rotary: int | None) -> None:
    turn = [COS, SIN] if rotary is not None else []
    options = {"do_rotary": 1, "rotary_interleaved": rotary} if rotary is not None else {}
    past = floats(B, K, capacity, H), floats(B, K, capacity, H)
    agrees(*projected(1, packed=packed), *past, counts(6, 4), counts(7), *turn, ends=(7, 5), **options)


@pytest.mark.parametrize("window", [1, 3, 20])
@pytest.mark.parametrize("length", [1, 6])
def test_local_window(window: int, length: int) -> None:
    if length == 1:
        past = floats(B, K, 6, H), floats(B, K, 6, H)
        agrees(*projected(1, packed=False), *past, counts(6, 4), counts(7), ends=(7, 5), local_window_size=window)
    else:
        agrees(*projected(6, packed=False), None, None, counts(5, 5), counts(6), ends=(6, 6), local_window_size=window)


@pytest.mark.parametrize(
    "options",
    [{"softcap": 1.5}, {"smooth_softmax": 1}, {"scale": 0.2}, {"causal": 0}, {"softcap": 1.5, "smooth_softmax": 1}],
    ids=str,
)
def test_options(options: Any) -> None:
    agrees(*projected(5, packed=False), None, None, counts(4, 4), counts(5), ends=(5, 5), **options)


@pytest.mark.parametrize("batch", [1, B])
@pytest.mark.parametrize("heads", [1, N])
def test_attention_bias(batch: int, heads: int) -> None:
    nothing = [None] * 3
    bias = floats(batch, heads, 5, 5)
    agrees(*projected(5, packed=False), None, None, counts(4, 4), counts(5), *nothing, bias, ends=(5, 5))
    past, bias = (floats(B, K, 9, H), floats(B, K, 9, H)), floats(batch, heads, 1, 7)
    inputs = (*projected(1, packed=False), *past, counts(6, 4), counts(7), *nothing, bias)
    agrees(*inputs, ends=(7, 5), softcap=2.0)


def test_sinks_and_positions() -> None:
    inputs = [*projected(5, packed=False), None, None, counts(4, 4), counts(5), COS, SIN]
    agrees(*inputs, None, None, floats(N), ends=(5, 5), do_rotary=1)
    past = floats(B, K, 6, H), floats(B, K, 6, H)
    inputs = [*projected(1, packed=False), *past, counts(6, 4), counts(7), COS, SIN, np.array([[9], [3]], np.int64)]
    agrees(*inputs, ends=(7, 5), do_rotary=1)


def test_padded_chunks() -> None:
    """`query_seqlens` says how many tokens of each chunk count."""
    past = floats(B, K, 12, H), floats(B, K, 12, H)
    inputs = [*projected(4, packed=False), *past, counts(6, 4), counts(12), COS, SIN, *[None] * 7, counts(4, 2)]
    agrees(*inputs, ends=(7, 5), valid=(4, 2), do_rotary=1)


@pytest.mark.parametrize("kind", [1, 2])
def test_scores(kind: int) -> None:
    inputs = [*projected(5, packed=False), None, None, counts(4, 4), counts(5)]
    outputs = ("y", "present_key", "present_value", "qk")
    *_, scores = run("GroupQueryAttention", *inputs, **{**GROUPS, "outputs": outputs}, qk_output=kind, constant=(6,))
    q, k = inputs[0].reshape(B, 5, N, H).swapaxes(1, 2), inputs[1].reshape(B, 5, K, H).swapaxes(1, 2)
    wanted = q @ np.repeat(k, N // K, 1).swapaxes(-1, -2) * H**-0.5
    below = np.tril(np.ones((5, 5), bool))
    if kind == 2:
        weights = np.where(below, np.exp(wanted), 0)
        wanted = weights / weights.sum(-1, keepdims=True)
    assert scores.shape == wanted.shape
    np.testing.assert_allclose(scores[..., below], wanted[..., below], rtol=1e-4, atol=1e-5)


def test_norms_of_heads() -> None:
    q, k, v = projected(5, packed=False)
    weights = floats(H), floats(H)
    rest = [None, None, counts(4, 4), counts(5), COS, SIN]
    found = run(
        "GroupQueryAttention", q, k, v, *rest, *[None] * 5, *weights, do_rotary=1, qk_norm_epsilon=1e-3, **GROUPS
    )

    def normalized(x: Any, weight: Any) -> Any:
        heads = x.reshape(B, 5, -1, H)
        return (heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-3) * weight).reshape(x.shape)

    q, k = (normalized(x, weight) for x, weight in zip((q, k), weights, strict=True))
    wanted = run("GroupQueryAttention", q, k, v, *rest, do_rotary=1, **GROUPS)
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_half_precision() -> None:
    inputs = [value.astype(np.float16) for value in projected(5, packed=False)]
    wide = [value.astype(np.float32) for value in inputs]
    rest = (None, None, counts(4, 4), counts(5))
    found = run("GroupQueryAttention", *inputs, *rest, **GROUPS)
    wanted = run("GroupQueryAttention", *wide, *rest, **GROUPS)
    for have, want in zip(found, wanted, strict=True):
        assert have.dtype == np.float16
        np.testing.assert_allclose(have, want, rtol=2e-3, atol=1e-3)


def test_symbolic_dims() -> None:
    past = floats(B, K, 6, H)
    inputs = [*projected(1, packed=False), past, past, counts(6, 4), counts(7)]
    kept = ["batch", K, "past", H]
    shapes = [["batch", "length", N * H], *[["batch", "length", K * H]] * 2, kept, kept, ["batch"], [1]]
    made = program("GroupQueryAttention", inputs, shapes=shapes, **GROUPS)
    assert str(made.outputs["y"]) == f"float32[batch, length, {N * H}]"
    made = program("GroupQueryAttention", inputs, shapes=shapes, constant=(6,), **GROUPS)
    assert str(made.outputs["present_key"]) == f"float32[batch, {K}, max(7, past), {H}]"


def test_a_tensor_of_one_element_stands_for_no_key(caplog: pytest.LogCaptureFixture) -> None:
    query, nothing = projected(5, packed=True)[0], np.zeros(1, np.float16)
    rest = (None, None, counts(4, 4), counts(5))
    found = run("GroupQueryAttention", query, nothing, nothing, *rest, **GROUPS)
    assert "taken as absent" in caplog.text
    np.testing.assert_array_equal(found[0], run("GroupQueryAttention", query, None, None, *rest, **GROUPS)[0])


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({0: floats(B, 5, N * H + 1)}, {}, "the size of the query is 65"),
        ({1: floats(B, 5, N * H)}, {}, r"key is float32\[2, 5, 64\], expected \[2, 5, 32\]"),
        ({1: None}, {}, "key and value must both be given, or neither"),
        ({3: floats(B, K, 4, H)}, {}, "past_key and past_value must both be given, or neither"),
        (
            {3: floats(B, N, 4, H), 4: floats(B, N, 4, H)},
            {},
            r"past_key is float32\[2, 4, 4, 16\], expected \[2, 2, 4, 16\]",
        ),
        ({5: counts(4)}, {}, r"seqlens_k is int32\[1\], expected \[2\]"),
        ({5: None}, {}, r"input 5 \('seqlens_k' of GroupQueryAttention\) is missing"),
        ({}, {"kv_num_heads": 3}, "num_heads is 4 and kv_num_heads 3"),
        ({}, {"do_rotary": 1}, "cos_cache or sin_cache is missing"),
    ],
)
def test_what_does_not_fit(change: Any, options: Any, words: str) -> None:
    inputs = [*projected(5, packed=False), None, None, counts(4, 4), counts(5)]
    for index, value in change.items():
        inputs[index] = value
    with pytest.raises(ModelError, match=words):
        program("GroupQueryAttention", inputs, **{**GROUPS, **options})


def test_what_is_not_done() -> None:
    inputs = [*projected(1, packed=False), np.zeros((B, K, 6, H), np.int8), np.zeros((B, K, 6, H), np.int8)]
    with pytest.raises(UnsupportedError, match="the cache is quantised"):
        program("GroupQueryAttention", [*inputs, counts(4, 4), counts(5)], **GROUPS)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("ids", [np.array([[3, 5, 0], [1, 2, 9]]), np.array([4])], ids=["each", "first"])
@pytest.mark.parametrize("form", ["flat", "heads", "part"])
def test_rotary_embedding(interleaved: int, ids: Any, form: str) -> None:
    x = floats(B, N, 3, H) if form == "heads" else floats(B, 3, N * H)
    half = H // 4 if form == "part" else H // 2
    options: Any = {"num_heads": N, "rotary_embedding_dim": 2 * half} if form == "part" else {}
    caches = floats(10, half), floats(10, half)
    assert_agrees("RotaryEmbedding", x, ids.astype(np.int64), *caches, interleaved=interleaved, **options, **MS)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({0: floats(2, 3)}, {}, r"the input is float32\[2, 3\], expected rank 3 or 4"),
        ({0: floats(B, 3, N * H + 1)}, {}, "the input has 65 elements a token"),
        ({1: np.zeros((1, 3), np.int64)}, {}, r"position_ids is int64\[1, 3\], expected \[1\] or \[2, 3\]"),
        ({3: SIN[:, 1:]}, {}, r"sin_cache is float32\[32, 7\], expected \[32, 8\]"),
        ({}, {"rotary_embedding_dim": 8}, "attribute 'num_heads' is 0"),
        ({}, {"rotary_embedding_dim": 6, "num_heads": N}, "attribute 'rotary_embedding_dim' is 6"),
        ({}, {"scale": 0.0}, "attribute 'scale' is 0, expected a positive number"),
        ({}, {"scale": 2.0}, "attribute 'scale' is 2"),
    ],
)
def test_rotary_inputs_are_checked(change: Any, options: Any, words: str) -> None:
    inputs = [floats(B, 3, N * H), np.zeros((B, 3), np.int64), COS, SIN]
    for index, value in change.items():
        inputs[index] = value
    with pytest.raises(ModelError, match=words):
        program("RotaryEmbedding", inputs, **options, **MS)
