"""Pooling against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError, UnsupportedError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

Array = NDArray[Any]
X = np.random.default_rng(0).standard_normal((2, 3, 8, 7)).astype(np.float32)

WINDOWS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2]},
    {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    {"kernel_shape": [1, 1], "strides": [3, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "VALID"},
]


@pytest.mark.parametrize("options", WINDOWS, ids=str)
@pytest.mark.parametrize("opset", [12, 22])
def test_max_pool(options: dict[str, Any], opset: int) -> None:
    shapes = [("n", 3, "h", "w")]
    assert_agrees("MaxPool", X, opset=opset, outputs=("y", "places"), shapes=shapes, **options)
    assert_agrees("MaxPool", (X * 40).astype(np.int8), opset=opset, **options)


@pytest.mark.parametrize("options", [{"strides": [2]}, {"pads": [1, 2], "ceil_mode": 1, "strides": [2]}], ids=str)
def test_one_and_three_axes(options: dict[str, Any]) -> None:
    line = X.reshape(2, 3, 56)
    assert_agrees("MaxPool", line, opset=12, outputs=("y", "places"), kernel_shape=[3], **options)
    assert_agrees("AveragePool", line, opset=12, kernel_shape=[3], **options)
    box = X.reshape(2, 3, 4, 2, 7)
    assert_agrees("MaxPool", box, opset=12, outputs=("y", "places"), kernel_shape=[2, 1, 3], strides=[2, 1, 2])


def test_max_pool_with_dilations_and_column_major_places() -> None:
    options: dict[str, Any] = {"kernel_shape": [2, 3], "dilations": [2, 1], "strides": [2, 1]}
    assert_agrees("MaxPool", X, opset=12, outputs=("y", "places"), storage_order=1, **options)


@pytest.mark.parametrize("options", WINDOWS, ids=str)
@pytest.mark.parametrize("include", [0, 1])
def test_average_pool(options: dict[str, Any], include: int) -> None:
    assert_agrees("AveragePool", X, opset=11, count_include_pad=include, shapes=[("n", 3, "h", "w")], **options)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(p: int) -> None:
    for options in WINDOWS[:2]:
        assert_agrees("LpPool", X, opset=11, p=p, **options)
    assert_agrees("GlobalLpPool", X, opset=11, p=p)


@pytest.mark.parametrize("op", ["GlobalMaxPool", "GlobalAveragePool"])
def test_global_pools(op: str) -> None:
    assert_agrees(op, X, opset=11, shapes=[("n", "c", "h", "w")])


def test_lp_pool_of_opset_1_has_a_float_p() -> None:
    np.testing.assert_allclose(run("GlobalLpPool", X, opset=1, p=1.0), np.abs(X).sum((2, 3), keepdims=True), rtol=1e-5)
    whole = list(X.shape[2:])
    found = run("LpPool", X, opset=1, p=3.0, kernel_shape=whole)
    np.testing.assert_allclose(found, (np.abs(X) ** 3).sum((2, 3), keepdims=True) ** (1 / 3), rtol=1e-5)


@pytest.mark.parametrize("op", ["LpPool", "GlobalLpPool"])
@pytest.mark.parametrize("p", [float("inf"), float("nan"), -1.0, 0.0, 0, -1])
def test_norms_that_there_are_not(op: str, p: float) -> None:
    options: Any = {"kernel_shape": [2, 2]} if op == "LpPool" else {}
    with pytest.raises(ModelError, match=rf"{op} \(node 0 → 'y'\): .*p'? is {p:g}, expected a positive number"):
        program(op, [X], opset=11 if isinstance(p, int) else 1, p=p, **options)


def test_an_lp_pool_of_a_fraction() -> None:
    with pytest.raises(UnsupportedError, match="attribute 'p' is 2.5, expected a whole number"):
        program("LpPool", [X], opset=1, p=2.5, kernel_shape=[2, 2])


@pytest.mark.parametrize("output_shape", [None, [2, 3, 9, 8]])
def test_max_unpool_undoes_max_pool(output_shape: Any) -> None:
    even = X[:, :, :, :6]
    best, places = run("MaxPool", even, outputs=("y", "places"), kernel_shape=[2, 2], strides=[2, 2])
    shape = None if output_shape is None else np.array(output_shape)
    for constant in ((), () if shape is None else (2,)):
        found = run("MaxUnpool", best, places, shape, kernel_shape=[2, 2], strides=[2, 2], constant=constant)
        inner = found[:, :, :8, :6]
        np.testing.assert_array_equal(inner[inner != 0], even[inner != 0])
        assert (inner != 0).sum() == best.size
        assert found.shape == ((2, 3, 8, 6) if output_shape is None else tuple(output_shape))
