"""Top-k, unique, non-maximum suppression and running sums: ties, order, bounds, element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ir import TensorType
from argosy.ops.scan import Cumulative
from argosy.ops.sort import NonMaxSuppression, TopK, Unique
from tests.ops.agreement import apply, infer, tensor

Array = NDArray[Any]
SMALL = st.lists(st.integers(-3, 3), min_size=1, max_size=9)


@given(SMALL, st.integers(0, 9), st.booleans())
def test_topk_keeps_equal_elements_in_order(values: list[int], k: int, largest: bool) -> None:
    x, k = np.array(values), min(k, len(values))
    found, places = apply(TopK(0, largest), tensor("int64", "n"), np.array([k]), feeds=[x])
    expected = sorted(range(len(values)), key=lambda place: (-values[place] if largest else values[place], place))[:k]
    assert places.tolist() == expected
    np.testing.assert_array_equal(found, x[expected])


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, ml_dtypes.bfloat16, np.int64])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_topk_of_every_type_along_any_axis(dtype: Any, axis: int) -> None:
    x = np.random.default_rng(7).permutation(24).reshape(4, 6).astype(dtype)
    found, places = apply(TopK(axis), tensor(np.dtype(dtype).name, "n", 6), np.array([2]), feeds=[x])
    np.testing.assert_array_equal(found, np.flip(np.sort(x.astype(int), axis), axis).take([0, 1], axis).astype(dtype))
    np.testing.assert_array_equal(np.take_along_axis(x, places, axis), found)


def test_topk_of_extreme_integers() -> None:
    x = np.array([0, 2**64 - 1, 5], np.uint64)
    assert apply(TopK(), tensor("uint64", 3), np.array(2), feeds=[x])[1].tolist() == [1, 2]
    least = np.array([-(2**63), 2**63 - 1, 0])
    assert apply(TopK(), tensor("int64", 3), np.array(3), feeds=[least])[1].tolist() == [1, 2, 0]


def test_topk_with_k_from_the_run_or_too_large() -> None:
    values, _ = infer(TopK(-1), tensor("float32", "n", 9), tensor("int64", 1))
    assert isinstance(values, TensorType)
    assert str(values.shape[0]) == "n"
    assert not isinstance(values.shape[1], int)
    with pytest.raises(ModelError, match=r"k is 5, expected 0\.\.3, the size of axis 0"):
        infer(TopK(0), tensor("float32", 3), np.array([5]))
    with pytest.raises(ModelError, match=r"k is 5, expected 0\.\.3"):
        apply(TopK(0), tensor("float32", "n"), np.array([5]), feeds=[np.zeros(3, np.float32)])


@given(SMALL, st.booleans())
def test_unique(values: list[int], ordered: bool) -> None:
    x = np.array(values)
    found, first, inverse, counts = apply(Unique(None, ordered), tensor("int64", "n"), feeds=[x])
    expected = sorted(set(values)) if ordered else list(dict.fromkeys(values))
    assert found.tolist() == expected
    assert first.tolist() == [values.index(value) for value in expected]
    assert counts.tolist() == [values.count(value) for value in expected]
    np.testing.assert_array_equal(found[inverse], x)


@pytest.mark.parametrize("element", ["int64", "string"])
def test_unique_slices(element: str) -> None:
    x = np.array([[1, 0, 1], [0, 0, 0], [1, 0, 1]])
    if element == "string":
        x = x.astype(str).astype(object)
    found, first, inverse, counts = apply(Unique(0, sorted=False), tensor(element, "n", 3), feeds=[x])
    np.testing.assert_array_equal(found, x[:2])
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([0, 1], [0, 1, 0], [2, 1])


def intersection_over_union(a: Array, b: Array) -> float:
    height = max(min(a[2], b[2]) - max(a[0], b[0]), 0)
    width = max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    shared = height * width
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return float(shared / union) if union > 0 else 0.0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 4), st.sampled_from([0.0, 0.3, 0.7]), st.booleans())
def test_non_max_suppression(seed: int, most: int, threshold: float, centered: bool) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.random((2, 6, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + rng.random((2, 6, 2)).astype(np.float32)], -1)
    scores = np.round(rng.random((2, 3, 6)), 1).astype(np.float32)
    expected = []
    for batch in range(2):
        for kind in range(3):
            kept: list[int] = []
            for box in sorted(range(6), key=lambda i: (-scores[batch, kind, i], i)):
                if scores[batch, kind, box] > np.float32(0.2) and len(kept) < most:
                    overlaps = (intersection_over_union(boxes[batch, box], boxes[batch, other]) for other in kept)
                    if all(overlap <= threshold for overlap in overlaps):
                        kept.append(box)
            expected += [[batch, kind, box] for box in kept]
    given_boxes = boxes[..., [2, 1, 0, 3]]  # any two opposite corners
    if centered:
        centers, extents = (boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]
        given_boxes = np.concatenate([centers[..., ::-1], extents[..., ::-1]], -1)
    limits = (np.array([most]), np.array([threshold], np.float32), np.array([0.2], np.float32))
    kinds = (tensor("float32", 2, "n", 4), tensor("float32", 2, "c", "n"))
    (found,) = apply(NonMaxSuppression(centered), *kinds, *limits, feeds=[given_boxes, scores])
    np.testing.assert_array_equal(found, np.array(expected).reshape(-1, 3))


def test_without_a_limit_no_box_is_selected() -> None:
    boxes, scores = np.zeros((1, 2, 4), np.float32), np.ones((1, 1, 2), np.float32)
    kinds = (tensor("float32", 1, 2, 4), tensor("float32", 1, 1, 2))
    assert apply(NonMaxSuppression(), *kinds, feeds=[boxes, scores])[0].shape == (0, 3)
    with pytest.raises(ModelError, match="differ in batch or count"):
        infer(NonMaxSuppression(), tensor("float32", 1, 2, 4), tensor("float32", 1, 1, 3))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_running_sums_and_products(exclusive: bool, reverse: bool, axis: int) -> None:
    x = np.arange(1, 7, dtype=np.float64).reshape(2, 3)
    for kind, run, neutral in (("sum", np.cumsum, 0), ("prod", np.cumprod, 1)):
        (found,) = apply(Cumulative(kind, exclusive, reverse), tensor("float64", "n", "m"), np.array(axis), feeds=[x])
        turned = np.flip(x, axis) if reverse else x
        expected = run(turned, axis)
        if exclusive:
            expected = np.insert(np.delete(expected, -1, axis), 0, neutral, axis)
        np.testing.assert_array_equal(found, np.flip(expected, axis) if reverse else expected)


def test_a_running_sum_of_halves_rounds_each_result_once() -> None:
    x = np.array([2048, 1, 1], np.float16)
    (found,) = apply(Cumulative("sum"), tensor("float16", "n"), np.array(0), feeds=[x])
    assert found.tolist() == [2048, 2048, 2050]
    (wrapped,) = apply(Cumulative("sum"), tensor("int8", 2), np.array(0), feeds=[np.array([100, 100], np.int8)])
    assert wrapped.tolist() == [100, -56]
