"""Sampling between elements and over regions; deformable convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ops.convolution import Conv
from argosy.ops.deformable import DeformableConv
from argosy.ops.region import MaxRegionPool, RegionAlign
from argosy.ops.sampling import GridSample
from tests.ops.agreement import apply, infer, tensor

Array = NDArray[Any]


def identity_grid(*sizes: int) -> Array:
    """The places of all elements, for align_corners."""
    axes = np.meshgrid(*(np.linspace(-1, 1, size) for size in sizes), indexing="ij")
    return np.stack(axes[::-1], -1)[None].astype(np.float32)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("sizes", [(6,), (4, 5), (3, 4, 5)])
def test_the_places_of_the_elements(mode: str, padding: str, sizes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, *sizes)).astype(np.float32)
    grid = identity_grid(*sizes)
    op = GridSample(mode, padding, align_corners=True)
    kinds = tensor("float32", "n", 2, *sizes), tensor("float32", "n", *(f"o{i}" for i in range(len(sizes))), len(sizes))
    (found,) = apply(op, *kinds, feeds=[x, grid])
    np.testing.assert_allclose(found, x, atol=2e-5)


def test_what_lies_outside() -> None:
    x = np.array([[[1.0, 2.0, 3.0]]], np.float32)
    grid = np.array([[[-5.0 / 3], [-1.0], [1.0], [5.0 / 3], [100.0]]], np.float32)  # places -1.5, -0.5, 2.5, 3.5, …
    expected: dict[str, list[Any]] = {
        "zeros": [0, 0.5, 1.5, 0, 0],
        "border": [1, 1, 3, 3, 3],
        "reflection": [1.5, 1, 3, 2.5, None],
    }
    for padding, values in expected.items():
        (found,) = apply(
            GridSample("linear", padding), tensor("float32", 1, 1, 3), tensor("float32", 1, 5, 1), feeds=[x, grid]
        )
        for have, want in zip(found[0, 0], values, strict=True):
            assert want is None or have == pytest.approx(want, abs=1e-5), padding


def test_integers_are_interpolated_and_truncated() -> None:
    x, grid = np.array([[[0, 9]]], np.int32), np.array([[[-0.5], [0.2]]], np.float32)
    kinds = tensor("int32", 1, 1, 2), tensor("float32", 1, 2, 1)
    (found,) = apply(GridSample("linear", align_corners=True), *kinds, feeds=[x, grid])
    assert found.tolist() == [[[2, 5]]]


def test_far_away_and_nan_places_do_no_harm() -> None:
    x, grid = np.ones((1, 1, 4, 4), np.float32), np.array([[[[1e30, -1e30], [np.nan, 0]]]], np.float32)
    for padding in ("zeros", "border", "reflection"):
        for mode in ("nearest", "linear", "cubic"):
            found = GridSample(mode, padding).evaluate(x, grid)[0]
            assert np.isfinite(found).all()


@pytest.mark.parametrize("half_pixel", [False, True])
def test_a_region_on_the_grid_of_a_ramp(half_pixel: bool) -> None:
    # The mean of a linear function over a bin is its value at the centre.
    y, x = np.meshgrid(np.arange(10.0), np.arange(12.0), indexing="ij")
    image = (2 * y + 3 * x).astype(np.float32)[None, None]
    op = RegionAlign("average", (2, 4), samples=2, half_pixel=half_pixel)
    regions = np.array([[2.0, 1.0, 10.0, 5.0]], np.float32)
    kinds = tensor("float32", "n", 1, 10, 12), tensor("float32", "r", 4), tensor("int64", "r")
    (found,) = apply(op, *kinds, feeds=[image, regions, np.zeros(1, np.int64)])
    shift = 0.5 if half_pixel else 0.0
    rows, columns = 1 + np.array([1.0, 3.0]) - shift, 2 + np.arange(1.0, 8.0, 2.0) - shift
    np.testing.assert_allclose(found[0, 0], 2 * rows[:, None] + 3 * columns, rtol=1e-6)


def test_no_regions_and_regions_of_no_image() -> None:
    op = RegionAlign("average", (2, 2))
    image = np.ones((1, 3, 4, 4), np.float32)
    kinds = tensor("float32", 1, 3, 4, 4), tensor("float32", "r", 4), tensor("int64", "r")
    (found,) = apply(op, *kinds, feeds=[image, np.zeros((0, 4), np.float32), np.zeros(0, np.int64)])
    assert found.shape == (0, 3, 2, 2)
    with pytest.raises(ModelError, match="region 0 is of image 3, but there are 1"):
        op.evaluate(image, np.zeros((1, 4), np.float32), np.array([3]))


def test_bins_of_regions() -> None:
    image = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)
    regions = np.array([[0, 1, 1, 4, 4], [0, 40, 40, 50, 50]], np.float32)
    (found,) = apply(
        MaxRegionPool((2, 2)), tensor("float32", 1, 1, 6, 6), tensor("float32", "r", 5), feeds=[image, regions]
    )
    assert found[0, 0].tolist() == [[14.0, 16.0], [26.0, 28.0]]
    assert not found[1].any()


@pytest.mark.parametrize("offset_group", [1, 2])
def test_without_offsets_it_is_a_convolution(offset_group: int) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((2, 4, 7, 6)).astype(np.float32), rng.standard_normal((6, 2, 3, 2)).astype(np.float32)
    plain = Conv((2, 1), (1, 0, 1, 1), (1, 2), 2)
    expected = plain.evaluate(x, w)[0]
    offset = np.zeros((2, offset_group * 12, *expected.shape[2:]), np.float32)
    op = DeformableConv((2, 1), (1, 0, 1, 1), (1, 2), 2, offset_group)
    kinds = tensor("float32", "n", 4, 7, 6), tensor("float32", 6, 2, 3, 2), tensor("float32", "n", *offset.shape[1:])
    (found,) = apply(op, *kinds, feeds=[x, w, offset])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    offset[:] = 1.0  # all taps one row and one column on
    moved = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)))[:, :, 1:, 1:]
    inner = DeformableConv((1, 1), (0,) * 4, (1, 1), 2, offset_group)
    shape = (2, offset_group * 12, 5, 5)
    (shifted,) = inner.evaluate(x, w, np.ones(shape, np.float32))
    np.testing.assert_allclose(shifted, Conv((1, 1), (0,) * 4, (1, 1), 2).evaluate(moved, w)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "operands", "words"),
    [
        (GridSample(), (tensor("float32", 1, 1, 4, 4), tensor("float32", 1, 2, 2, 3)), "does not fit"),
        (GridSample("lanczos"), (tensor("float32", 1, 1, 4), tensor("float32", 1, 2, 1)), "no sampling 'lanczos'"),
        (GridSample(), (tensor("float32", 2, 1, 4), tensor("float32", 3, 2, 1)), "batch of x is 2, that of the grid 3"),
        (
            RegionAlign("average", (1, 1)),
            (tensor("float32", 1, 1, 4, 4), tensor("float32", 2, 4), tensor("int64", 3)),
            "one image",
        ),
        (MaxRegionPool((1, 1)), (tensor("float32", 1, 1, 4, 4), tensor("float32", 2, 4)), r"regions \[n, 5\]"),
    ],
)
def test_contradictions_are_named(op: Any, operands: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(op, *operands)
