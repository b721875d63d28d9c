"""Reductions, positions of extremes and softmax against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ir import Builder
from argosy.ops.reduce import ArgReduce, Reduce, Softmax
from argosy.ops.view import Shape
from tests.ops.agreement import apply, infer, tensor

Array = NDArray[Any]
KINDS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axes", [(), (0,), (-1,), (2, 0), (1, -3)])
@pytest.mark.parametrize("keep", [True, False])
def test_axes(kind: str, axes: tuple[int, ...], keep: bool) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4, 5)).astype(np.float32)
    (found,) = apply(Reduce(kind, axes, keep), tensor("float32", "a", "b", 5), feeds=[x])
    expected = KINDS[kind](x.astype(np.float64), axis=axes or None, keepdims=keep)  # type: ignore[operator]
    np.testing.assert_allclose(found, expected, rtol=3e-7)


def test_axes_given_at_run_time() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for keep in (True, False):
        kinds = tensor("float32", 2, 3, 4), tensor("int64", 2)
        (found,) = apply(Reduce("sum", None, keep), *kinds, feeds=[x, np.array([-1, 0])])
        np.testing.assert_array_equal(found, x.sum(axis=(0, 2), keepdims=keep))


def test_no_axes_mean_all_or_none() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    kind = tensor("int32", "a", 3)
    (everything,) = apply(Reduce("sum", ()), kind, feeds=[x])
    (nothing,) = apply(Reduce("sum", (), noop_with_empty_axes=True), kind, feeds=[x])
    np.testing.assert_array_equal(everything, [[15]])
    np.testing.assert_array_equal(nothing, x)


@pytest.mark.parametrize(("kind", "expected"), [("sum", 0.0), ("prod", 1.0), ("max", -np.inf), ("min", np.inf)])
def test_an_empty_reduction(kind: str, expected: float) -> None:
    (found,) = apply(Reduce(kind, (1,)), tensor("float32", 2, 0), feeds=[np.zeros((2, 0), np.float32)])
    np.testing.assert_array_equal(found, [[expected], [expected]])
    if kind in ("max", "min"):
        (whole,) = apply(Reduce(kind, (0,)), tensor("int8", 0), feeds=[np.zeros(0, np.int8)])
        assert whole[0] == (-128 if kind == "max" else 127)


def test_an_empty_mean_is_nan() -> None:
    (found,) = apply(Reduce("mean", (0,)), tensor("float32", 0), feeds=[np.zeros(0, np.float32)])
    assert np.isnan(found[0])


def test_bools_have_a_greatest_and_a_least() -> None:
    x = np.array([[True, False], [False, False]])
    (any_,) = apply(Reduce("max", (1,), keep_dims=False), tensor("bool", 2, 2), feeds=[x])
    (all_,) = apply(Reduce("min", (1,), keep_dims=False), tensor("bool", 2, 2), feeds=[x])
    assert any_.tolist() == [True, False]
    assert all_.tolist() == [False, False]


def test_long_sums_keep_their_digits_in_any_order() -> None:
    # Summed in float32 row by row, 16777216 + 1 stays where it is.
    x = np.ones((2**15, 2), np.float32)
    x[0] = 2**24
    (found,) = apply(Reduce("sum", (0,)), tensor("float32", "n", 2), feeds=[x])
    np.testing.assert_array_equal(found, np.full((1, 2), 2**24 + 2**15 - 1, np.float32))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_short_floats(dtype: Any) -> None:
    x = np.ones(4096, dtype)
    (found,) = apply(Reduce("sum", (0,)), tensor(np.dtype(dtype).name, 4096), feeds=[x])
    assert found.dtype == dtype
    assert float(found[0]) == 4096.0


def test_integers_wrap_and_their_mean_truncates() -> None:
    (total,) = apply(Reduce("sum", (0,)), tensor("int32", 2), feeds=[np.full(2, 2**31 - 1, np.int32)])
    assert total[0] == -2
    (mean,) = apply(Reduce("mean", (0,)), tensor("int64", 2), feeds=[np.array([-3, 0])])
    assert mean[0] == -1


def test_nan_is_the_extreme() -> None:
    x = np.array([1.0, np.nan, 3.0], np.float32)
    for kind in ("max", "min"):
        assert np.isnan(apply(Reduce(kind, (0,)), tensor("float32", 3), feeds=[x])[0][0])
    assert apply(ArgReduce("max", 0), tensor("float32", 3), feeds=[x])[0][0] == 1


@pytest.mark.parametrize("element", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("as_operand", [False, True])
def test_known_numbers_wrap_in_their_type(element: Any, kind: str, as_operand: bool) -> None:
    limits = np.iinfo(element)
    x = np.array([[limits.min, limits.max, limits.max], [3, limits.max, 5]], element)
    builder = Builder()
    constant = builder.constant(x)
    if as_operand:
        found = builder.add(Reduce(kind), constant, builder.constant(np.array([1]))).known
    else:
        found = builder.add(Reduce(kind, (1,)), constant).known
    assert found is not None
    exact = {"sum": sum, "prod": np.prod, "max": max, "min": min}[kind]
    wanted = [[int(exact(row)) & (2**limits.bits - 1)] for row in x.astype(object)]  # type: ignore[operator]
    assert [[int(entry) & (2**limits.bits - 1) for entry in row] for row in found] == wanted
    assert all(limits.min <= entry <= limits.max for entry in found.flat)


def test_products_of_dims_stay_symbolic() -> None:
    builder = Builder()
    x = builder.tensor_parameter("x", "float32", ["n", 3, "m"])
    count = builder.add(Reduce("prod", (0,), keep_dims=False), builder.add(Shape(), x))
    assert count.known is not None
    assert str(count.known[()]) == "3*m*n"


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_positions_of_equals(kind: str, last: bool) -> None:
    x = np.array([[2, 1, 2, 1], [0, 0, 0, 0]], np.int32)
    (found,) = apply(ArgReduce(kind, -1, keep_dims=False, select_last=last), tensor("int32", "n", 4), feeds=[x])
    first = {"max": [0, 0], "min": [1, 0]}[kind]
    end = {"max": [2, 3], "min": [3, 3]}[kind]
    assert found.tolist() == (end if last else first)


def test_the_extreme_of_nothing_has_no_position() -> None:
    with pytest.raises(ModelError, match="axis 0, which is empty"):
        ArgReduce("max", 0).evaluate(np.zeros((0, 2), np.float32))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float16, 1e-3), (np.float32, 1e-6), (np.float64, 1e-13)])
def test_softmax(axis: int, log: bool, dtype: Any, rtol: float) -> None:
    x = (np.random.default_rng(0).standard_normal((3, 4, 5)) * 20).astype(dtype)
    kept = x.copy()
    (found,) = apply(Softmax(axis, log), tensor(np.dtype(dtype).name, "a", 4, "b"), feeds=[x])
    wide = x.astype(np.float64)
    expected = wide - wide.max(axis, keepdims=True)
    expected -= np.log(np.exp(expected).sum(axis, keepdims=True))
    np.testing.assert_allclose(found, expected if log else np.exp(expected), rtol=rtol, atol=1e-7)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize(
    ("op", "kind", "words"),
    [
        (Reduce("sum", (3,)), tensor("float32", 2, 3), r"an axis to reduce is 3, expected -2..1"),
        (Reduce("sum", (0,)), tensor("string", 2), "reduction by sum is not defined for string"),
        (Reduce("sum", (0,)), tensor("bool", 2), "reduction by sum is not defined for bool"),
        (ArgReduce("max", 2), tensor("float32", 2, 3), "axis is 2"),
        (Softmax(), tensor("int32", 2), "softmax is not defined for int32"),
    ],
)
def test_contradictions_are_named(op: Any, kind: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(op, kind)
