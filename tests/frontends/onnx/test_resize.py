"""Resize and Upsample against ONNX Runtime, and against the reference where that engine differs from ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import model, program, run

Array = NDArray[Any]
X = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]


def sizes(height: int, width: int) -> Array:
    return np.array([1, 2, height, width], np.int64)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("shape", [(10, 14), (3, 4), (5, 11), (1, 1)], ids=str)
def test_sizes(coordinates: str, mode: str, shape: tuple[int, int]) -> None:
    options: dict[str, Any] = {"coordinate_transformation_mode": coordinates, "mode": mode}
    inputs = [X, None, None, sizes(*shape)]
    if mode == "nearest":
        options["nearest_mode"] = "floor" if coordinates == "asymmetric" else "round_prefer_floor"
    assert_agrees("Resize", *inputs, opset=13, constant=(3,), rtol=1e-4, atol=1e-5, **options)
    assert_agrees("Resize", *inputs, opset=13, rtol=1e-4, atol=1e-5, **options)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("scale", [2.0, 0.5, 1.5])
def test_nearest(nearest: str, scale: float) -> None:
    scales = np.array([1, 1, scale, scale], np.float32)
    for opset in (11, 13, 19):
        roi = np.zeros(0, np.float32) if opset == 11 else None
        shapes = [("n", "c", "h", "w"), (0,), (4,)]
        assert_agrees("Resize", X, roi, scales, opset=opset, nearest_mode=nearest, constant=(2,), shapes=shapes)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("exclude", [0, 1])
def test_against_the_reference(mode: str, antialias: int, exclude: int) -> None:
    scales = np.array([0.6, 0.4], np.float32)
    inputs = [X.astype(np.float64), None, scales]
    options: dict[str, Any] = {
        "mode": mode,
        "antialias": antialias,
        "exclude_outside": exclude,
        "axes": [2, 3],
        "cubic_coeff_a": -0.5,
    }
    results: Any = ReferenceEvaluator(model("Resize", inputs, **options)).run(None, {"x0": inputs[0], "x2": scales})
    expected = results[0]
    tolerance = 1e-12 if mode == "linear" else 1e-6  # the reference computes cubic weights in float32
    np.testing.assert_allclose(run("Resize", *inputs, **options), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_the_aspect_policy(policy: str) -> None:
    for axes, shape in (([2, 3], [9, 9]), ([3, 2], [8, 9])):
        options: dict[str, Any] = {"mode": "linear", "keep_aspect_ratio_policy": policy, "axes": axes}
        assert_agrees(
            "Resize", X, None, None, np.array(shape), opset=19, constant=(3,), rtol=1e-4, atol=1e-5, **options
        )


@pytest.mark.parametrize("constant", [(), (1, 3)])
def test_crops(constant: Any) -> None:
    roi = np.array([0, 0, 0.25, -0.2, 1, 1, 0.75, 1.2], np.float32)
    options: dict[str, Any] = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 9.0,
        "mode": "linear",
    }
    assert_agrees("Resize", X, roi, None, sizes(4, 6), opset=13, constant=constant, rtol=1e-4, atol=1e-5, **options)


def test_half_pixel_symmetric() -> None:
    scales = np.array([1, 1, 0.6, 1.3], np.float32)
    options: dict[str, Any] = {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": "linear"}
    assert_agrees("Resize", X, None, scales, opset=19, constant=(2,), rtol=1e-4, atol=1e-5, **options)


def test_bytes() -> None:
    x = np.array([[[[0, 255], [255, 0]]]], np.uint8)
    found = run("Resize", x, None, None, np.array([1, 1, 3, 3]), mode="linear", constant=(3,))
    assert found.dtype == np.uint8
    assert found[0, 0].tolist() == [[0, 128, 255], [128, 128, 128], [255, 128, 0]]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("op", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_the_forms_before_opset_11(mode: str, op: str, opset: int) -> None:
    scales = [np.array([1, 1, 2, 3], np.float32), np.array([1, 1, 1.5, 1], np.float32)]
    if op == "Resize":
        scales.append(np.array([1, 1, 0.6, 0.5], np.float32))
    for scale in scales:
        assert_agrees(op, X, scale, opset=opset, mode=mode, constant=(1,), rtol=1e-4, atol=1e-5)


def test_scales_as_attributes() -> None:
    expected = X.repeat(2, 2).repeat(3, 3)
    np.testing.assert_array_equal(run("Upsample", X, opset=7, scales=[1.0, 1.0, 2.0, 3.0]), expected)
    np.testing.assert_array_equal(run("Upsample", X, opset=1, height_scale=2.0, width_scale=3.0), expected)


def test_scales_and_sizes_exclude_each_other() -> None:
    with pytest.raises(ModelError, match=r"Resize \(node 0 → 'y'\): has both scales and sizes, expected one of them"):
        program("Resize", [X, None, np.ones(4, np.float32), sizes(5, 7)])
    with pytest.raises(ModelError, match="has neither scales nor sizes"):
        program("Resize", [X])
