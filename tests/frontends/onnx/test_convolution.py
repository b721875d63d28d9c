"""Convolutions against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program

Array = NDArray[Any]
RNG = np.random.default_rng(0)


def random(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9), (4, 3, 3), {}),
    ((2, 3, 9), (4, 3, 1), {"strides": [2]}),
    ((1, 4, 8, 7), (6, 2, 3, 2), {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
    ((2, 4, 8, 7), (4, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    ((2, 4, 8, 7), (8, 1, 3, 3), {"group": 4, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((2, 4, 8, 7), (8, 4, 2, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((2, 4, 8, 7), (8, 4, 2, 4), {"auto_pad": "VALID"}),
    ((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"pads": [0, 1, 1, 1, 0, 0], "strides": [1, 2, 1]}),
    ((1, 1, 40), (5, 1, 16), {"strides": [4]}),
]


@pytest.mark.parametrize(("x", "w", "options"), CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("opset", [7, 11, 22])
def test_conv(x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any], opset: int) -> None:
    assert_agrees("Conv", random(*x), random(*w), random(w[0]), opset=opset, rtol=1e-4, atol=1e-5, **options)
    symbolic = ("n", x[1], *(f"s{axis}" for axis in range(len(x) - 2)))
    assert_agrees("Conv", random(*x), random(*w), opset=opset, shapes=[symbolic, w], rtol=1e-4, atol=1e-5, **options)


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 5), (3, 4, 3), {}),
    ((2, 4, 5, 6), (4, 3, 3, 2), {"group": 2, "strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]}),
    ((1, 2, 5, 6), (2, 3, 3, 3), {"strides": [3, 2], "output_shape": [16, 13]}),
    ((1, 2, 5, 6), (2, 3, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 5, 6), (2, 3, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 3, 4), (2, 3, 2, 2), {"dilations": [2, 1], "pads": [1, 1, 1, 1]}),
    ((1, 2, 3, 4, 2), (2, 1, 2, 2, 2), {"strides": [2, 1, 2]}),
]


@pytest.mark.parametrize(("x", "w", "options"), TRANSPOSED, ids=str)
def test_conv_transpose(x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any]) -> None:
    bias = random(w[1] * options.get("group", 1))
    symbolic = ("n", x[1], *(f"s{axis}" for axis in range(len(x) - 2)))
    assert_agrees("ConvTranspose", random(*x), random(*w), bias, opset=11, rtol=1e-4, atol=1e-5, **options)
    shapes = [symbolic, w]
    assert_agrees("ConvTranspose", random(*x), random(*w), opset=11, shapes=shapes, rtol=1e-4, atol=1e-5, **options)


@pytest.mark.parametrize("kernel", [[3], [3, 2]])
def test_a_kernel_shape_that_the_weight_contradicts(kernel: list[int]) -> None:
    with pytest.raises(ModelError, match=r"Conv \(node 0 → 'y'\): kernel_shape is .* the weight has the shape"):
        program("Conv", [random(1, 2, 5, 5), random(3, 2, 3, 3)], kernel_shape=kernel)


def test_an_unknown_auto_pad() -> None:
    with pytest.raises(ModelError, match="'auto_pad' is 'SAME', expected one of NOTSET, VALID, SAME_UPPER, SAME_LOWER"):
        program("Conv", [random(1, 2, 5), random(3, 2, 3)], auto_pad="SAME")
