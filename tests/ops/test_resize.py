"""Resizing: symbolic sizes, identities, the scale rule. The frontend's tests compare values with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir.types import TensorType
from argosy.ops.resize import COORDINATES, Resize, scaled_size
from tests.ops.agreement import apply, infer, tensor


@pytest.mark.parametrize("size", [1, 3, 4, 9])
@pytest.mark.parametrize("scale", [2.0, 0.5, float(np.float32(1 / 3)), float(np.float32(0.6)), 1.25])
def test_scales_of_symbolic_sizes(size: int, scale: float) -> None:
    op = Resize("nearest", "asymmetric", scales=(1.0, scale))
    (found,) = apply(op, tensor("float32", 2, "t"), feeds=[np.zeros((2, size), np.float32)])
    assert found.shape == (2, int(np.floor(np.float32(size) * np.float32(scale))))


def test_a_scale_that_is_no_simple_fraction_gives_a_fresh_dim() -> None:
    scale = float(np.float32(1.2345678))
    (kind,) = infer(Resize("nearest", scales=(scale,)), tensor("float32", "t"))
    assert isinstance(kind, TensorType)
    assert "resize" in str(kind.shape[0])
    assert scaled_size(100, scale) == 123


@pytest.mark.parametrize("size", [2, 5])
def test_sizes_that_are_dims(size: int) -> None:
    like = tensor("float32", "h", "w")
    op = Resize("linear", sizes=(like.shape[1], like.shape[0]))
    (found,) = apply(op, like, feeds=[np.zeros((size, 7), np.float32)])
    assert found.shape == (7, size)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "coordinates", [name for name in COORDINATES if name not in ("tf_crop_and_resize", "tf_half_pixel_for_nn")]
)
def test_the_same_size_gives_the_same_elements(mode: str, coordinates: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    (found,) = apply(Resize(mode, coordinates, sizes=(3, 4)), tensor("float32", 3, 4), feeds=[x])
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_a_constant_stays_constant(mode: str, antialias: bool) -> None:
    x = np.full((7, 5), 3.5, np.float32)
    (found,) = apply(Resize(mode, sizes=(3, 8), antialias=antialias), tensor("float32", "h", 5), feeds=[x])
    np.testing.assert_allclose(found, np.full((3, 8), 3.5), rtol=1e-6)


def test_nearest_moves_elements_of_any_type() -> None:
    x = np.array(["a", "b"], object)
    (found,) = apply(Resize("nearest", "asymmetric", sizes=(4,), nearest="floor"), tensor("string", 2), feeds=[x])
    assert found.tolist() == ["a", "a", "b", "b"]


def test_integers_round_and_saturate() -> None:
    x = np.array([0, 255, 255, 0], np.uint8)
    (found,) = apply(Resize("cubic", sizes=(8,)), tensor("uint8", 4), feeds=[x])
    assert found.dtype == np.uint8
    assert found.max() == 255


@pytest.mark.parametrize(("aspect", "shape"), [("not_larger", (3, 6)), ("not_smaller", (4, 8))])
def test_the_aspect_ratio(aspect: str, shape: tuple[int, int]) -> None:
    op = Resize("linear", sizes=(4, 6), aspect=aspect)
    (found,) = apply(op, tensor("float32", 2, 4), feeds=[np.zeros((2, 4), np.float32)])
    assert found.shape == shape
    (kind,) = infer(op, tensor("float32", "h", "w"))
    assert isinstance(kind, TensorType)
    assert not any(isinstance(dim, int) for dim in kind.shape)


def test_scales_and_sizes_at_run_time() -> None:
    x = np.arange(4, dtype=np.float32)
    (found,) = apply(
        Resize("nearest", "asymmetric", nearest="floor"),
        tensor("float32", 4),
        None,
        tensor("float32", 1),
        feeds=[x, np.array([2.0], np.float32)],
    )
    np.testing.assert_array_equal(found, np.repeat(x, 2))
    kinds = tensor("float32", 4), None, None, tensor("int64", 1)
    (found,) = apply(Resize("nearest", "asymmetric", nearest="floor"), *kinds, feeds=[x, np.array([8])])
    np.testing.assert_array_equal(found, np.repeat(x, 2))


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (Resize("bicubic", sizes=(4,)), "mode is 'bicubic', expected one of nearest, linear, cubic"),
        (Resize("linear", sizes=(4, 4)), "2 sizes are given for 1 axes"),
        (Resize("linear", scales=(2.0, 2.0)), "2 scales are given for 1 axes"),
        (Resize("linear"), "neither scales nor sizes"),
        (Resize("linear", sizes=(4,), axes=(1,)), "axis is 1, expected -1..0"),
    ],
)
def test_contradictions_are_named(op: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(op, tensor("float32", 3))


def test_a_crop_needs_a_region() -> None:
    with pytest.raises(ModelError, match="region of 2 numbers, found None"):
        Resize("linear", "tf_crop_and_resize", sizes=(4,)).evaluate(np.zeros(3, np.float32))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (1, 2)])
def test_lists_of_a_number_for_each_axis(shape: tuple[int, ...]) -> None:
    x, none = tensor("float32", 3, 4), tensor("float32", 0)
    scales, sizes = tensor("float32", *shape), tensor("int64", *shape)
    with pytest.raises(ModelError, match=r"the scales are float32\[.*\], expected one for each of 2 axes"):
        infer(Resize("linear"), x, none, scales)
    with pytest.raises(ModelError, match=r"are (int64|float32)\[.*\], expected one for each of 2 axes"):
        infer(Resize("linear"), x, none, tensor("float32", 0), sizes)
    infer(Resize("linear"), x, none, tensor("float32", 2), tensor("int64", 0))
    infer(Resize("linear"), x, none, tensor("float32", 0), tensor("int64", 2))
