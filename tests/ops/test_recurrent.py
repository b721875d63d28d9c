"""Recurrent layers: symbolic dims, short floats, sequence lengths, errors; values against a loop in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ops.recurrent import GATES, Recurrent
from tests.ops.agreement import apply, infer, tensor

Array = NDArray[Any]
DEFAULTS = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}


def layer(kind: str, direction: str = "forward", **options: Any) -> Recurrent:
    names = DEFAULTS[kind] * (2 if direction == "bidirectional" else 1)
    zeros = (0.0,) * len(names)
    return Recurrent(kind, direction, names, zeros, zeros, **options)


def weights(kind: str, directions: int, inputs: int, hidden: int, rng: np.random.Generator) -> list[Array]:
    rows = GATES[kind] * hidden
    shapes = [(directions, rows, inputs), (directions, rows, hidden), (directions, 2 * rows)]
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def forward(kind: str, x: Array, w: Array, r: Array, b: Array) -> tuple[Array, Array]:
    """One direction over one sequence `[steps, inputs]` from zero states, in float64: all h, and the last c."""
    hidden = r.shape[1]
    h, c, outputs = np.zeros(hidden), np.zeros(hidden), []
    wb, rb = np.split(b.astype(np.float64), 2)
    for step in x.astype(np.float64):
        left, right = w @ step + wb, r @ h + rb
        if kind == "rnn":
            h = np.tanh(left + right)
        elif kind == "gru":
            z, reset = np.split(sigmoid((left + right)[: 2 * hidden]), 2)
            n = np.tanh(left[2 * hidden :] + r[2 * hidden :] @ (reset * h) + rb[2 * hidden :])
            h = (1 - z) * n + z * h
        else:
            i, o, f, g = np.split(left + right, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), c


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, [4, 1, 3]])
@pytest.mark.parametrize("steps", [4, 6])
def test_layers(kind: str, direction: str, lengths: Sequence[int] | None, steps: int) -> None:
    rng = np.random.default_rng(0)
    batch, inputs, hidden = 3, 2, 5
    op = layer(kind, direction)
    x = rng.standard_normal((steps, batch, inputs)).astype(np.float32)
    w, r, b = weights(kind, op.directions, inputs, hidden, rng)
    given = np.array(lengths or [steps] * batch, np.int32)
    kinds = [tensor("float32", "t", "n", inputs), *(tensor("float32", *v.shape) for v in (w, r, b))]
    feeds = [x, w, r, b]
    if lengths:
        kinds.append(tensor("int32", "n"))
        feeds.append(given)
    y, y_h, *rest = apply(op, *kinds, feeds=feeds)
    for n, length in enumerate(given):
        for d in range(op.directions):
            backward = direction == "reverse" or d == 1
            sequence = x[:length, n][::-1] if backward else x[:length, n]
            want, last = forward(kind, sequence, w[d], r[d], b[d])
            np.testing.assert_allclose(y_h[d, n], want[-1], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(y[:length, d, n], want[::-1] if backward else want, rtol=1e-5, atol=1e-6)
            assert not y[length:, d, n].any()
            if rest:
                np.testing.assert_allclose(rest[0][d, n], last, rtol=1e-5, atol=1e-6)


def test_float16_is_computed_in_float32() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20, 2, 3)).astype(np.float16)
    w, r, b = (value.astype(np.float16) for value in weights("lstm", 1, 3, 4, rng))
    kinds = [tensor("float16", *value.shape) for value in (x, w, r, b)]
    short = apply(layer("lstm"), *kinds, feeds=[x, w, r, b])
    wide = layer("lstm").evaluate(*(value.astype(np.float32) for value in (x, w, r, b)))
    for found, expected in zip(short, wide, strict=True):
        np.testing.assert_array_equal(found, expected.astype(np.float16))


def test_operands_are_left_alone() -> None:
    rng = np.random.default_rng(2)
    values = [rng.standard_normal((5, 2, 3)).astype(np.float32), *weights("gru", 1, 3, 4, rng)]
    h0 = np.ones((1, 2, 4), np.float32)
    kept = [value.copy() for value in (*values, h0)]
    layer("gru").evaluate(*values, None, h0)
    for value, copy in zip((*values, h0), kept, strict=True):
        np.testing.assert_array_equal(value, copy)


def test_no_steps_give_the_initial_state() -> None:
    w, r, b = weights("lstm", 1, 3, 4, np.random.default_rng(3))
    h0, c0 = np.ones((1, 2, 4), np.float32), np.full((1, 2, 4), 2, np.float32)
    y, y_h, y_c = layer("lstm").evaluate(np.zeros((0, 2, 3), np.float32), w, r, b, None, h0, c0)
    assert y.shape == (0, 1, 2, 4)
    np.testing.assert_array_equal(y_h, h0)
    np.testing.assert_array_equal(y_c, c0)


X, W, R = tensor("float32", "t", 2, 3), tensor("float32", 1, 16, 3), tensor("float32", 1, 16, 4)


@pytest.mark.parametrize(
    ("op", "operands", "words"),
    [
        (layer("lstm"), (X, tensor("float32", 1, 16, 5), R), r"X is .* expected the shape \[t, 2, 5\]"),
        (layer("lstm"), (X, tensor("float32", 1, 12, 3), R), r"W is .* expected the shape \[1, 16, 3\]"),
        (layer("lstm"), (X, W, R, tensor("float32", 1, 16)), r"B is .* expected the shape \[1, 32\]"),
        (layer("lstm", "bidirectional"), (X, W, R), r"W is .* expected the shape \[2, 16, 3\]"),
        (layer("lstm"), (X, W, R, None, None, tensor("float32", 1, 3, 4)), r"initial_h is .* \[1, 2, 4\]"),
        (layer("lstm"), (tensor("float32", 2, 3), W, R), "must have rank 3"),
        (Recurrent("lstm", "forward", ("tanh",), (0.0,), (0.0,)), (X, W, R), "1 activations are given, expected 3"),
        (Recurrent("rnn", "forward", ("cosh",), (0.0,), (0.0,)), (X, W, R), "unknown activation 'cosh'"),
    ],
)
def test_contradictions_are_named(op: Recurrent, operands: Sequence[Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(op, *operands)
