"""Constant in all its forms, ConstantOfShape, Range, EyeLike, Trilu."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from argosy.errors import ModelError, UnsupportedError
from tests.frontends.onnx.one_node import program, run


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value_float": 2.5}, np.array(2.5, np.float32)),
        ({"value_floats": [1.0, 2.0]}, np.array([1, 2], np.float32)),
        ({"value_int": -3}, np.array(-3)),
        ({"value_ints": [1, 2]}, np.array([1, 2])),
        ({"value_string": "x"}, np.array("x", object)),
        ({"value_strings": ["x", "yz"]}, np.array(["x", "yz"], object)),
        ({"value": helper.make_tensor("t", TensorProto.INT8, [2], [1, -1])}, np.array([1, -1], np.int8)),
    ],
)
def test_constant(attributes: dict[str, Any], expected: Any) -> None:
    found = run("Constant", **attributes)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("indices", [[1, 5], [0, 1, 1, 2]])
def test_sparse_constant(indices: list[int]) -> None:
    values = helper.make_tensor("v", TensorProto.FLOAT, [2], [7, 8])
    shape = [2] if len(indices) == 2 else [2, 2]
    places = helper.make_tensor("i", TensorProto.INT64, shape, indices)
    found = run("Constant", sparse_value=helper.make_sparse_tensor(values, places, [2, 3]))
    np.testing.assert_array_equal(found, [[0, 7, 0], [0, 0, 8]])
    outside = helper.make_tensor("i", TensorProto.INT64, [2], [0, 6])
    with pytest.raises(ModelError, match=r"indices do not fit its dims \[2, 3\]"):
        program("Constant", [], sparse_value=helper.make_sparse_tensor(values, outside, [2, 3]))


def test_constant_without_a_value() -> None:
    with pytest.raises(ModelError, match="none of the attributes"):
        program("Constant", [])


def test_constant_of_a_known_shape_is_a_splat() -> None:
    element = helper.make_tensor("v", TensorProto.INT32, [1], [7])
    made = program("ConstantOfShape", [np.array([1000, 1000])], constant=[0], value=element)
    (literal,) = [literal for literal in made.literals if literal.shape == (1000, 1000)]
    assert literal.is_splat
    assert literal.nbytes == 4
    np.testing.assert_array_equal(run("ConstantOfShape", np.array([2, 0])), np.zeros((2, 0), np.float32))
    assert run("ConstantOfShape", np.array([], np.int64)).shape == ()
    with pytest.raises(ModelError, match="holds a negative size"):
        program("ConstantOfShape", [np.array([-1])], constant=[0])


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float32, np.float64])
def test_range(dtype: Any) -> None:
    scalars = [np.array(value, dtype) for value in (10, 4, -2)]
    np.testing.assert_array_equal(run("Range", *scalars, opset=11), np.array([10, 8, 6], dtype))
    with pytest.raises(ModelError, match="the delta of a range is 0"):
        run("Range", *scalars[:2], np.zeros((), dtype), opset=11)


def test_range_of_halves_in_another_precision() -> None:
    halves = [np.array(value, np.float16) for value in (0, 1, 0.1)]
    expected = (np.arange(10, dtype=np.float32) * np.float32(np.float16(0.1))).astype(np.float16)
    np.testing.assert_array_equal(run("Range", *halves, stash_type=1)[:10], expected)
    with pytest.raises(UnsupportedError, match="stash_type"):
        program("Range", halves, stash_type=10)


@pytest.mark.parametrize("k", [0, 2, -1])
def test_eye_like(k: int) -> None:
    x = np.zeros((3, 5), np.int32)
    np.testing.assert_array_equal(run("EyeLike", x, k=k), np.eye(3, 5, k, np.int32))
    assert run("EyeLike", x, dtype=TensorProto.DOUBLE).dtype == np.float64
    made = program("EyeLike", [x], shapes=[("n", 5)])
    assert str(*made.outputs.values()) == "int32[n, 5]"


def test_trilu_defaults_to_upper() -> None:
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(run("Trilu", x), np.triu(x))
    np.testing.assert_array_equal(run("Trilu", x, np.array(-1), upper=0), np.tril(x, -1))
