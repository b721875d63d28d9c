"""Scaler, Normalizer, Imputer, FeatureVectorizer, CategoryMapper against ONNX Runtime and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

Array = NDArray[Any]
ML = "ai.onnx.ml"
TYPES = [np.float32, np.float64, np.int32, np.int64]
X = np.array([[1, -2, 3], [0, 0, 0], [-4, -5, -6], [7, 0, -7]])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [1, 3])
def test_scaler(dtype: Any, count: int) -> None:
    given: dict[str, Any] = {"offset": [0.5, -1.0, 2.0][:count], "scale": [2.0, 0.1, -3.0][:count]}
    assert_agrees("Scaler", X.astype(dtype), domain=ML, shapes=[["n", 3]], **given)
    assert_agrees("Scaler", X[0].astype(dtype), domain=ML, **given)


def test_scaler_without_one_of_the_two() -> None:
    x = X.astype(np.float32)
    np.testing.assert_array_equal(run("Scaler", x, domain=ML, offset=[1.0]), x - 1)
    np.testing.assert_array_equal(run("Scaler", x, domain=ML, scale=[1.0, 2.0, 4.0]), x * [1, 2, 4])
    np.testing.assert_array_equal(run("Scaler", X, domain=ML), x)


def test_scaler_computes_doubles_as_doubles() -> None:
    found = run("Scaler", np.array([[16777217.0]]), domain=ML, offset=[16777216.0], scale=[1.0])
    np.testing.assert_array_equal(found, np.array([[1.0]], np.float32))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(dtype: Any, norm: str) -> None:
    assert_agrees("Normalizer", X.astype(dtype), domain=ML, shapes=[["n", 3]], norm=norm)
    assert_agrees("Normalizer", X[0].astype(dtype), domain=ML, norm=norm)
    assert_agrees("Normalizer", X[:0].astype(dtype), domain=ML, shapes=[["n", 3]], norm=norm)


def test_imputer_of_floats() -> None:
    x = np.array([[1.0, np.nan, -3.0], [np.nan, 0.0, 1.0]], np.float32)
    for replaced in (np.nan, 1.0, 0.0):
        for imputed in ([9.0], [7.0, 8.0, 9.0]):
            given: dict[str, Any] = {"imputed_value_floats": imputed, "replaced_value_float": float(replaced)}
            assert_agrees("Imputer", x, domain=ML, shapes=[["n", 3]], **given)
            found = run("Imputer", x.astype(np.float64), domain=ML, **given)
            missing = np.isnan(x) if np.isnan(replaced) else x == replaced
            np.testing.assert_array_equal(found, np.where(missing, imputed, x.astype(np.float64)))


def test_imputer_of_integers() -> None:
    for imputed in ([9], [7, 8, 9]):
        given: dict[str, Any] = {"imputed_value_int64s": imputed, "replaced_value_int64": -2}
        assert_agrees("Imputer", X, domain=ML, shapes=[["n", 3]], **given)
        found = run("Imputer", X.astype(np.int32), domain=ML, **given)
        np.testing.assert_array_equal(found, np.where(X == -2, imputed, X).astype(np.int32))


@pytest.mark.parametrize(
    ("x", "given", "message"),
    [
        (X, {"imputed_value_floats": [1.0]}, "'imputed_value_floats', but its input is int64"),
        (X, {}, "'imputed_value_int64s' is missing"),
        (X, {"imputed_value_int64s": [1, 2]}, "holds 2 numbers, expected 1 or 3"),
        (X.astype(np.int32), {"imputed_value_int64s": [2**40]}, "do not fit int32"),
    ],
)
def test_imputer_that_does_not_fit(x: Array, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        program("Imputer", [x], domain=ML, **given)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dims", [[["n", 3], ["n", 2]], [["n", "a"], ["n", "b"]]])
@pytest.mark.parametrize("sizes", [[3, 2], [1, 2], [5, 0], [2, 4]])
def test_feature_vectorizer(dtype: Any, dims: list[list[Any]], sizes: list[int]) -> None:
    inputs = X.astype(dtype), X[:, :2].astype(dtype) * 2
    assert_agrees("FeatureVectorizer", *inputs, domain=ML, shapes=dims, inputdimensions=sizes)


def test_feature_vectorizer_of_vectors() -> None:
    assert_agrees("FeatureVectorizer", X[0], X[1, :2], domain=ML, inputdimensions=[3, 2])
    np.testing.assert_array_equal(
        run("FeatureVectorizer", X[0], X[1], domain=ML), np.array([[1, -2, 3, 0, 0, 0]], np.float32)
    )
    with pytest.raises(ModelError, match="expected a size for each of 1 inputs"):
        program("FeatureVectorizer", [X], domain=ML, inputdimensions=[3, 2])


def test_category_mapper() -> None:
    given: dict[str, Any] = {
        "cats_strings": ["a", "b", "ü"], "cats_int64s": [5, -1, 7], "default_int64": 42, "default_string": "none",
    }  # fmt: skip
    assert_agrees("CategoryMapper", np.array([["ü", "x"], ["a", "b"]], object), domain=ML, **given)
    assert_agrees("CategoryMapper", np.array([7, 0, -1]), domain=ML, **given)
    with pytest.raises(ModelError, match="2 cats_strings are given for 1 cats_int64s"):
        program("CategoryMapper", [np.array([1])], domain=ML, cats_strings=["a", "b"], cats_int64s=[1])
