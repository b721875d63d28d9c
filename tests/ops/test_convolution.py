"""Convolutions: inferred symbolic dims agree with the results, rows are cut up without a trace, integers are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ir.dtype import INT32
from argosy.ops import convolution
from argosy.ops.convolution import Conv, ConvTranspose
from tests.ops.agreement import apply, infer, tensor

Array = NDArray[Any]


def direct(x: Array, w: Array, strides: tuple[int, int], pads: tuple[int, ...], dilations: tuple[int, int]) -> Array:
    """A 2-D convolution element by element of the output, in float64 or int64."""
    padded = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    sizes = [(n - span) // s + 1 for n, span, s in zip(padded.shape[2:], spans, strides, strict=True)]
    result = np.zeros((x.shape[0], w.shape[0], *sizes), np.result_type(x, w))
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            top, left = i * strides[0], j * strides[1]
            part = padded[:, :, top : top + spans[0] : dilations[0], left : left + spans[1] : dilations[1]]
            result[:, :, i, j] = np.einsum("nchw,mchw->nm", part, w)
    return result


@pytest.mark.parametrize("height", [5, 6, 11])
@pytest.mark.parametrize(
    ("strides", "pads", "dilations"),
    [((1, 1), (0,) * 4, (1, 1)), ((2, 3), (1, 0, 2, 1), (1, 1)), ((2, 1), (2,) * 4, (2, 1))],
)
def test_symbolic_dims(
    height: int, strides: tuple[int, int], pads: tuple[int, ...], dilations: tuple[int, int]
) -> None:
    rng = np.random.default_rng(0)
    x, w = (
        rng.standard_normal((2, 3, height, 8)).astype(np.float32),
        rng.standard_normal((4, 3, 3, 2)).astype(np.float32),
    )
    kinds = tensor("float32", "n", 3, "h", "w"), tensor("float32", 4, 3, 3, 2)
    (found,) = apply(Conv(strides, pads, dilations), *kinds, feeds=[x, w])
    wide = direct(x.astype(np.float64), w.astype(np.float64), strides, pads, dilations)
    np.testing.assert_allclose(found, wide, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("auto_pad", ["same_upper", "same_lower"])
@pytest.mark.parametrize("size", [1, 5, 6, 7, 8])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_over_symbolic_sizes(auto_pad: str, size: int, stride: int) -> None:
    x, w = np.arange(size, dtype=np.float32).reshape(1, 1, size) + 1, np.ones((1, 1, 4), np.float32)
    op = Conv((stride,), (0, 0), (1,), auto_pad=auto_pad)
    (found,) = apply(op, tensor("float32", 1, 1, "t"), tensor("float32", 1, 1, 4), feeds=[x, w])
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + 4 - size, 0)
    before = total // 2 if auto_pad == "same_upper" else total - total // 2
    padded = np.pad(x[0, 0], (before, total - before + stride))
    expected = [padded[i * stride : i * stride + 4].sum() for i in range(outputs)]
    np.testing.assert_array_equal(found[0, 0], expected)


@pytest.mark.parametrize(("group", "multiplier"), [(1, 2), (2, 3), (6, 1), (6, 2)])
def test_groups(group: int, multiplier: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 6, 7, 5)).astype(np.float32)
    w = rng.standard_normal((group * multiplier, 6 // group, 3, 3)).astype(np.float32)
    op = Conv((1, 1), (1,) * 4, (1, 1), group)
    (found,) = apply(op, tensor("float32", "n", 6, 7, 5), tensor("float32", *w.shape), feeds=[x, w])
    parts = zip(np.split(x, group, 1), np.split(w, group, 0), strict=True)
    expected = np.concatenate([direct(a.astype(np.float64), b, (1, 1), (1,) * 4, (1, 1)) for a, b in parts], 1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_cutting_the_rows_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.integers(-8, 8, (3, 4, 9, 7)).astype(np.float32), rng.integers(-8, 8, (6, 2, 3, 3)).astype(np.float32)
    op = Conv((1, 1), (1,) * 4, (1, 1), 2)
    whole = op.evaluate(x, w)[0]
    for elements in (1, 700, 2000):
        monkeypatch.setattr(convolution, "_PATCH_ELEMENTS", elements)
        np.testing.assert_array_equal(op.evaluate(x, w)[0], whole)
    monkeypatch.setattr(convolution, "_SHIFT_LIMIT", 0)
    depthwise = rng.integers(-8, 8, (4, 1, 3, 3)).astype(np.float32)
    gathered = Conv((1, 1), (1,) * 4, (1, 1), 4).evaluate(x, depthwise)[0]
    monkeypatch.undo()
    np.testing.assert_array_equal(Conv((1, 1), (1,) * 4, (1, 1), 4).evaluate(x, depthwise)[0], gathered)


def test_integer_sums_are_exact_and_take_an_integer_bias() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.integers(0, 256, (1, 40, 5, 5), np.uint8), rng.integers(-128, 128, (3, 40, 3, 3), np.int8)
    bias = np.array([2**31 - 1, 0, -5], np.int32)
    kinds = tensor("uint8", 1, 40, 5, 5), tensor("int8", 3, 40, 3, 3), tensor("int32", 3)
    (found,) = apply(Conv((1, 1), (1,) * 4, (1, 1), dtype=INT32), *kinds, feeds=[x, w, bias])
    exact = direct(x.astype(np.int64), w.astype(np.int64), (1, 1), (1,) * 4, (1, 1)) + bias.reshape(3, 1, 1)
    np.testing.assert_array_equal(found, exact.astype(np.int32))


def test_float16_rounds_once_with_its_bias() -> None:
    x, w, bias = np.full((1, 1, 3), 1.0, np.float16), np.full((1, 1, 3), 2048.0 / 3, np.float16), np.ones(1, np.float16)
    kinds = tensor("float16", 1, 1, 3), tensor("float16", 1, 1, 3), tensor("float16", 1)
    (found,) = apply(Conv((1,), (0, 0), (1,)), *kinds, feeds=[x, w, bias])
    assert float(found.item()) == float(np.float16(3 * float(w[0, 0, 0]) + 1))


def test_empty_tensors() -> None:
    kinds = tensor("float32", "n", 2, 5), tensor("float32", 3, 2, 3)
    (found,) = apply(
        Conv((1,), (0, 0), (1,)), *kinds, feeds=[np.zeros((0, 2, 5), np.float32), np.ones((3, 2, 3), np.float32)]
    )
    assert found.shape == (0, 3, 3)


@pytest.mark.parametrize("size", [1, 4, 5])
@pytest.mark.parametrize(
    "op",
    [
        ConvTranspose((2,), (1, 0), (1,)),
        ConvTranspose((3,), (0, 0), (2,), output_padding=(2,)),
        ConvTranspose((2,), (0, 0), (1,), auto_pad="same_lower"),
        ConvTranspose((2,), (0, 0), (1,), auto_pad="same_upper"),
        ConvTranspose((1,), (0, 0), (1,), output_shape=(3,)),
    ],
    ids=repr,
)
def test_the_transpose_of_a_convolution(op: ConvTranspose, size: int) -> None:
    """<convolution(y), x> = <y, transpose(x)> with the pads that the transpose found."""
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((2, 4, size)).astype(np.float32), rng.standard_normal((4, 2, 3)).astype(np.float32)
    (found,) = apply(op, tensor("float32", "n", 4, "t"), tensor("float32", 4, 2, 3), feeds=[x, w])
    y = rng.standard_normal(found.shape)
    begin = int(op.geometry((size,), (3,))[1][0])
    stride, dilation = op.strides[0], op.dilations[0]
    reach = (size - 1) * stride + 2 * dilation + 1
    padded = np.zeros((2, 2, max(reach, begin + y.shape[2])))
    padded[:, :, begin : begin + y.shape[2]] = y
    windows = [padded[:, :, i * stride : i * stride + 2 * dilation + 1 : dilation] for i in range(size)]
    forward = np.stack([np.einsum("nmk,cmk->nc", window, w.astype(np.float64)) for window in windows], 2)
    np.testing.assert_allclose((forward * x).sum(), (y * found).sum(), rtol=1e-4)


@pytest.mark.parametrize(
    ("op", "x", "w", "words"),
    [
        (Conv((1,), (0, 0), (1,)), tensor("float32", 1, 2, 5), tensor("float32", 3, 4, 3), "2 channels, .* is for 4"),
        (Conv((1,), (0, 0), (1,)), tensor("float32", 1, 2, 5), tensor("float32", 3, 2, 7), "window of 7 does not fit"),
        (Conv((1, 1), (0, 0), (1,)), tensor("float32", 1, 2, 5), tensor("float32", 3, 2, 3), "strides has 2 entries"),
        (Conv((0,), (0, 0), (1,)), tensor("float32", 1, 2, 5), tensor("float32", 3, 2, 3), r"strides is \[0\]"),
        (Conv((1,), (0, 0), (1,), 2), tensor("float32", 1, 4, 5), tensor("float32", 3, 2, 3), "3 output .* 2 groups"),
        (Conv((1,), (0, 0), (1,)), tensor("float32", 1, 2, 5, 5), tensor("float32", 3, 2, 3), "one rank, 3 or more"),
        (ConvTranspose((1,), (0, 0), (1,)), tensor("float32", 1, 2, 5), tensor("float32", 3, 4, 3), "is for 3"),
        (ConvTranspose((1,), (0, 0), (1,), 0), tensor("float32", 1, 3, 5), tensor("float32", 3, 4, 3), "3 .* 0 groups"),
        (ConvTranspose((1,), (0, 0), (1,), -1), tensor("float32", 1, 3, 5), tensor("float32", 3, 4, 3), "-1 groups"),
        (ConvTranspose((1,), (0, 0), (1,), 2), tensor("float32", 1, 3, 5), tensor("float32", 3, 4, 3), "3 .* 2 groups"),
    ],
)  # fmt: skip
def test_contradictions_are_named(op: Any, x: Any, w: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(op, x, w)
