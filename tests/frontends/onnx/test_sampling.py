"""Sampling and regions of interest against ONNX Runtime."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import run

Array = NDArray[Any]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
GRID = RNG.uniform(-1.6, 1.6, (2, 4, 7, 2)).astype(np.float32)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_sample(mode: str, padding: str, corners: int) -> None:
    options: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    shapes = [("n", 3, "h", "w"), ("n", "oh", "ow", 2)]
    assert_agrees("GridSample", X, GRID, opset=16, shapes=shapes, rtol=1e-4, atol=1e-5, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_grid_sample_of_volumes(mode: str) -> None:
    x, grid = (
        RNG.standard_normal((1, 2, 3, 4, 5)).astype(np.float32),
        RNG.uniform(-1.2, 1.2, (1, 2, 3, 4, 3)).astype(np.float32),
    )
    assert_agrees("GridSample", x, grid, opset=20, mode=mode, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("size", "corners"),
    [
        *itertools.product([(1, 3, 4, 5), (2, 1, 3, 2), (3, 2, 2, 3, 4), (1, 1, 4, 2, 3)], [0, 1]),
        ((2, 1, 1, 3), 0),
        ((1, 2, 1, 1, 1), 0),
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_affine_grid(size: tuple[int, ...], corners: int, dtype: Any, known: bool) -> None:
    """A batch of one too. With corners, along an axis of size 1, ONNX Runtime takes the other end."""
    rank = len(size) - 2
    theta = RNG.standard_normal((size[0], rank, rank + 1)).astype(dtype)
    shapes = [("n", rank, rank + 1), (rank + 2,)]
    given = np.array(size)
    constant = (1,) if known else ()
    assert_agrees("AffineGrid", theta, given, opset=20, align_corners=corners, shapes=shapes, constant=constant)


def test_affine_grid_along_one_element() -> None:
    theta = np.array([[[2.0, 0.5, 0.25], [-1.0, 3.0, 0.125]]], np.float32)
    found = run("AffineGrid", theta, np.array([1, 1, 1, 2]), opset=20, align_corners=1)
    x, y = np.array([-1.0, 1.0]), -1.0
    expected = np.stack([2 * x + 0.5 * y + 0.25, -x + 3 * y + 0.125], -1).reshape(1, 1, 2, 2)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_roi_align(mode: str, ratio: int, coordinates: str) -> None:
    regions = np.array([[0, 0, 4, 4], [1.5, -2, 9, 3.5], [2, 2, 2.5, 2.25]], np.float32)
    options: dict[str, Any] = {
        "mode": mode,
        "sampling_ratio": ratio,
        "output_height": 3,
        "output_width": 2,
        "spatial_scale": 0.75,
    }
    images = np.array([0, 1, 1])
    assert_agrees(
        "RoiAlign",
        X,
        regions,
        images,
        opset=16,
        coordinate_transformation_mode=coordinates,
        rtol=1e-4,
        atol=1e-5,
        **options,
    )
    if coordinates == "output_half_pixel":
        assert_agrees("RoiAlign", X, regions, images, opset=10, rtol=1e-4, atol=1e-5, **options)


def test_max_roi_pool() -> None:
    regions = np.array([[0, 0, 0, 3, 3], [1, 1, 2, 7, 9], [1, 9, 9, 12, 12]], np.float32)
    assert_agrees("MaxRoiPool", X, regions, opset=11, pooled_shape=[2, 3], spatial_scale=0.5)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_deform_conv(mask: bool, groups: int) -> None:
    x, w = RNG.standard_normal((2, 4, 6, 5)).astype(np.float32), RNG.standard_normal((4, 2, 3, 2)).astype(np.float32)
    offset = RNG.uniform(-2, 2, (2, groups * 12, 3, 6)).astype(np.float32)
    weights = RNG.uniform(0, 1, (2, groups * 6, 3, 6)).astype(np.float32) if mask else None
    inputs = [x, w, offset, RNG.standard_normal(4).astype(np.float32), weights]
    options: dict[str, Any] = {"strides": [2, 1], "pads": [1, 1, 1, 1], "group": 2, "offset_group": groups}
    assert_agrees("DeformConv", *(inputs if mask else inputs[:4]), opset=19, rtol=1e-4, atol=1e-5, **options)
