"""Gathers, scatters, one_hot, nonzero, compress, range and triangle against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.reference.ops.op_scatter_elements import scatter_elements

from argosy.errors import ModelError
from argosy.ir import Builder, TensorType
from argosy.ir.op import Op
from argosy.ops.index import (
    Compress,
    Gather,
    GatherElements,
    GatherND,
    NonZero,
    OneHot,
    Range,
    ScatterElements,
    ScatterND,
    Triangle,
)
from argosy.ops.view import Broadcast, Shape
from tests.ops.agreement import apply, infer, tensor

Array = NDArray[Any]
X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
KIND = tensor("float32", "a", "b", 5)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "indices", [np.array(-1), np.array([2, 0, -3]), np.zeros((2, 0), np.int64), np.array([[1, -2]])]
)
def test_gather(axis: int, indices: Array) -> None:
    (found,) = apply(Gather(axis), KIND, indices, feeds=[X])
    np.testing.assert_array_equal(found, np.take(X, indices, axis))


def test_gather_elements_of_fewer_indices_than_data() -> None:
    indices = np.array([[[0, -1], [3, 2]]], np.int32)
    (found,) = apply(GatherElements(1), KIND, indices, feeds=[X])
    np.testing.assert_array_equal(found, np.take_along_axis(X[:1, :, :2], indices.astype(int) % 4, 1))


def test_gather_nd_with_batch_dims() -> None:
    indices = np.array([[[0, 1], [-1, -1]], [[2, 2], [3, 0]], [[1, 1], [1, -5]]])
    (found,) = apply(GatherND(1), KIND, indices, feeds=[X])
    expected = [[X[b, i, j] for i, j in indices[b]] for b in range(3)]
    np.testing.assert_array_equal(found, expected)
    (rows,) = apply(GatherND(), KIND, np.array([[2], [0]]), feeds=[X])
    np.testing.assert_array_equal(rows, X[[2, 0]])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, ml_dtypes.bfloat16])
def test_scatter_elements(reduction: str, dtype: Any) -> None:
    x = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    indices = np.array([[0, 1, 2, -1], [2, -2, 0, 0]])
    updates = (np.arange(8).reshape(2, 4) - 3).astype(dtype)
    (found,) = apply(ScatterElements(0, reduction), tensor(np.dtype(dtype).name, "a", 4), indices, updates, feeds=[x])
    expected = scatter_elements(x.astype(np.float64), indices, updates.astype(np.float64), 0, reduction)  # type: ignore[no-untyped-call]
    np.testing.assert_array_equal(found.astype(np.float64), expected)


def test_a_scatter_of_halves_rounds_once() -> None:
    x = np.array([2048], np.float16)
    updates = np.ones(2, np.float16)
    (found,) = apply(ScatterElements(0, "add"), tensor("float16", 1), np.zeros(2, np.int64), updates, feeds=[x])
    assert found[0] == 2050


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_scatter_nd(reduction: str) -> None:
    x = np.zeros((4, 3), np.float32)
    indices, updates = np.array([[1], [-1]]), np.array([[1, 2, 3], [-4, 5, 6]], np.float32)
    (found,) = apply(ScatterND(reduction), tensor("float32", "n", 3), indices, updates, feeds=[x])
    expected = x.copy()
    expected[[1, 3]] = np.maximum(updates, 0) if reduction == "max" else updates
    np.testing.assert_array_equal(found, expected)
    assert not x.any()


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        (Gather(0), (np.array([3]),), "the index 3 is outside axis 0 of size 3"),
        (Gather(0), (np.array([-4]),), "the index -4 is outside axis 0 of size 3"),
        (Gather(3), (np.array([0]),), "axis is 3, expected -3..2"),
        (Gather(0), (np.array([0.0]),), "the indices are float64, expected int32 or int64"),
        (GatherElements(0), (np.array([0]),), "the indices have rank 1"),
        (GatherND(3), (np.array([[0]]),), "batch_dims is 3"),
        (GatherND(), (np.zeros((2, 4), np.int64),), "4 coordinates after 0 batch dims do not fit"),
        (ScatterElements(0, "mean"), (np.zeros((1, 1, 1), int), X[:1, :1, :1]), "the reduction is 'mean'"),
        (
            ScatterElements(0),
            (np.zeros((1, 1, 1), int), np.ones((1, 1, 1))),
            "the updates are float64, expected float32",
        ),
        (ScatterND(), (np.array([[0]]), X), "the updates are float32.*, expected"),
        (Compress(0), (np.array([1, 0]),), "the condition is int64.*, expected bool of rank 1"),
        (Compress(0), (np.array([False, True, False, True]),), "the condition selects element 3 of 3"),
    ],
)
def test_messages(op: Op, operands: tuple[Array, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        apply(op, tensor("float32", 3, 4, 5), *operands, feeds=[X])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis: int) -> None:
    indices = np.array([[0, -1, 7], [2, 3, -5]])
    values = np.array([5, 9], np.int8)
    (found,) = apply(OneHot(axis), tensor("int64", "n", 3), np.array(4), values, feeds=[indices])
    expected = np.full((2, 3, 4), 5, np.int8)
    for place in ((0, 0, 0), (0, 1, 3), (1, 0, 2), (1, 1, 3)):
        expected[place] = 9
    np.testing.assert_array_equal(found, np.moveaxis(expected, -1, axis))


def test_nonzero() -> None:
    x = np.array([[1, 0], [0, 2]], np.int32)
    (found,) = apply(NonZero(), tensor("int32", "a", "b"), feeds=[x])
    np.testing.assert_array_equal(found, np.stack(np.nonzero(x)))
    assert apply(NonZero(), tensor("float32"), feeds=[np.array(3, np.float32)])[0].shape == (0, 1)
    builder = Builder()
    x0 = builder.tensor_parameter("x", "float32", ("n", 4))
    ones = builder.add(Broadcast(), builder.constant(np.array(1)), builder.add(Shape(), x0))
    assert str(builder.add(NonZero(), ones).type) == "int64[2, 4*n]"


def test_compress() -> None:
    condition = np.array([False, True])
    (found,) = apply(Compress(1), KIND, condition, feeds=[X])
    np.testing.assert_array_equal(found, X[:, 1:2])
    np.testing.assert_array_equal(apply(Compress(), KIND, condition, feeds=[X])[0], [1.0])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 5, 1), (5, 0, -2), (3, 3, 1), (1, 0, 1), (-3, 4, 3)])
def test_range(dtype: Any, start: int, limit: int, delta: int) -> None:
    scalars = [np.array(value, dtype) for value in (start, limit, delta)]
    kind = tensor(np.dtype(dtype).name)
    expected = np.arange(start, limit, delta).astype(dtype)
    np.testing.assert_array_equal(apply(Range(), kind, kind, kind, feeds=scalars)[0], expected)
    assert infer(Range(), *scalars) == (tensor(np.dtype(dtype).name, len(expected)),)


def test_range_of_dims() -> None:
    builder = Builder()
    x = builder.tensor_parameter("x", "float32", ("n", "m"))
    n, m = (builder.add(Gather(0), builder.add(Shape(), x), builder.constant(np.array(i))) for i in (0, 1))
    zero, two = builder.constant(np.array(0)), builder.constant(np.array(2))
    assert str(builder.add(Range(), zero, n, two).type) == "int64[ceildiv(n, 2)]"
    later = builder.pointwise(lambda a: a + 3, m)
    three = builder.add(Range(), m, later, builder.constant(np.array(1)))
    assert [str(value) for value in three.known.tolist()] == ["m", "m + 1", "m + 2"]  # type: ignore[union-attr]


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("k", [None, -2, 0, 1, 9])
def test_triangle(upper: bool, k: int | None) -> None:
    diagonal = None if k is None else np.array(k)
    (found,) = apply(Triangle(upper), KIND, diagonal, feeds=[X])
    np.testing.assert_array_equal(found, (np.triu if upper else np.tril)(X, k or 0))


def test_upper_bounds_of_data_dependent_dims() -> None:
    (kind,) = infer(NonZero(), tensor("bool", 3, 4))
    assert isinstance(kind, TensorType)
    (symbol,) = kind.shape[1].terms[0][0]  # type: ignore[union-attr]
    assert (symbol.lower, symbol.upper) == (0, 12)  # type: ignore[union-attr]
