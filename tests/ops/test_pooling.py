"""Pooling against windows taken one by one; symbolic dims; the rule of ceil_mode."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ops.pooling import Pool
from tests.ops.agreement import apply, infer, tensor

Array = NDArray[Any]


def expected(op: Pool, x: Array) -> Array:
    """One window at a time, only elements inside; averages count pads where the op says so."""
    rank = len(op.kernel)
    spans = [(k - 1) * d + 1 for k, d in zip(op.kernel, op.dilations, strict=True)]
    begins, ends = [int(pad) for pad in op.pads[:rank]], [int(pad) for pad in op.pads[rank:]]
    sizes = []
    for axis, size in enumerate(x.shape[2:]):
        room = size + begins[axis] + ends[axis] - spans[axis]
        count = (-(-room // op.strides[axis]) if op.ceil_mode else room // op.strides[axis]) + 1
        if op.ceil_mode and (count - 1) * op.strides[axis] >= size + begins[axis]:
            count -= 1
        sizes.append(count)
    result = np.zeros((*x.shape[:2], *sizes))
    for place in itertools.product(*map(range, sizes)):
        inside, counted = [], 0
        for tap in itertools.product(*map(range, op.kernel)):
            at = [p * s + t * d - b for p, s, t, d, b in zip(place, op.strides, tap, op.dilations, begins, strict=True)]
            real = all(0 <= a < n for a, n in zip(at, x.shape[2:], strict=True))
            padded = all(-b <= a < n + e for a, n, b, e in zip(at, x.shape[2:], begins, ends, strict=True))
            counted += padded if op.count_include_pad else real
            if real:
                element: tuple[Any, ...] = (..., *at)
                inside.append(x[element])
        values = np.array(inside) if inside else np.zeros((1, *x.shape[:2]))
        target: tuple[Any, ...] = (..., *place)
        if op.kind == "max":
            result[target] = values.max(0)
        elif op.kind == "average":
            result[target] = values.sum(0) / counted
        else:
            result[target] = (np.abs(values) ** op.p).sum(0) ** (1 / op.p)
    return result


KINDS: list[tuple[str, dict[str, Any]]] = [
    ("max", {}),
    ("average", {}),
    ("average", {"count_include_pad": True}),
    ("lp", {"p": 3}),
]
CASES = [
    Pool(kind, kernel, strides, pads, dilations, ceil_mode=ceil, **more)
    for kind, more in KINDS
    for ceil in (False, True)
    for kernel, strides, pads, dilations in [
        ((2, 3), (1, 2), (0, 0, 0, 0), (1, 1)),
        ((3, 2), (2, 3), (1, 0, 1, 1), (1, 2)),
        ((2, 2), (3, 2), (1, 1, 0, 0), (2, 1)),
    ]
]


@pytest.mark.parametrize("op", CASES, ids=repr)
@pytest.mark.parametrize("height", [5, 8])
def test_windows(op: Pool, height: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, height, 7)).astype(np.float32)
    (found,) = apply(op, tensor("float32", "n", 3, "h", "w"), feeds=[x])
    np.testing.assert_allclose(found, expected(op, x.astype(np.float64)), rtol=2e-6, atol=1e-6)


def test_a_window_that_starts_in_the_padding_behind_does_not_count() -> None:
    op = Pool("max", (1,), (2,), (0, 0), (1,), ceil_mode=True)
    (found,) = apply(op, tensor("float32", 1, 1, 2), feeds=[np.array([[[1.0, 2.0]]], np.float32)])
    assert found.tolist() == [[[1.0]]]


@pytest.mark.parametrize("column_major", [False, True])
def test_places_of_the_greatest(column_major: bool) -> None:
    x = np.random.default_rng(1).permutation(2 * 3 * 5 * 4).reshape(2, 3, 5, 4).astype(np.float32)
    op = Pool("max", (2, 2), (2, 1), (1, 0, 0, 1), (1, 1), with_indices=True, column_major=column_major)
    best, places = apply(op, tensor("float32", "n", 3, "h", 4), feeds=[x])
    flat = (x.transpose(0, 1, 3, 2) if column_major else x).reshape(-1)
    np.testing.assert_array_equal(flat[places], best)
    plain = Pool("max", (2, 2), (2, 1), (1, 0, 0, 1), (1, 1)).evaluate(x)[0]
    np.testing.assert_array_equal(best, plain)


def test_the_first_of_equals_and_windows_of_least_values() -> None:
    x = np.array([[[5, 5, -np.inf, -np.inf]]], np.float32)
    op = Pool("max", (2,), (2,), (0, 0), (1,), with_indices=True)
    best, places = apply(op, tensor("float32", 1, 1, 4), feeds=[x])
    assert best.tolist() == [[[5.0, -np.inf]]]
    assert places.tolist() == [[[0, 2]]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float64])
def test_element_types(dtype: Any) -> None:
    x = np.array([[[0, 3, 1, 2]]]).astype(dtype)
    op = Pool("max", (3,), (1,), (1, 1), (1,))
    (found,) = apply(op, tensor(np.dtype(dtype).name, 1, 1, "t"), feeds=[x])
    assert found.astype(int).tolist() == [[[3, 3, 3, 2]]]


def test_nan_is_the_greatest() -> None:
    x = np.array([[[np.nan, 1.0, 2.0]]], np.float32)
    op = Pool("max", (2,), (1,), (0, 0), (1,), with_indices=True)
    best, places = apply(op, tensor("float32", 1, 1, 3), feeds=[x])
    assert np.isnan(best[0, 0, 0])
    assert best[0, 0, 1] == 2.0
    assert places.tolist() == [[[0, 2]]]


@pytest.mark.parametrize(
    ("op", "kind", "words"),
    [
        (Pool("average", (2,), (1,), (0, 0), (1,)), tensor("int32", 1, 1, 4), "average pooling is not defined"),
        (Pool("max", (2,), (1,), (0, 0), (1,)), tensor("float32", 1, 4), "rank 3 or more"),
        (Pool("max", (2, 2), (1, 1), (0,) * 4, (1, 1)), tensor("float32", 1, 1, 4), "kernel_shape has 2 entries"),
        (Pool("max", (6,), (1,), (0, 0), (1,)), tensor("float32", 1, 1, 4), "window of 6 does not fit"),
    ],
)  # fmt: skip
def test_contradictions_are_named(op: Pool, kind: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(op, kind)
