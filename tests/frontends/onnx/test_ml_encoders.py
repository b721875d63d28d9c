"""LabelEncoder, OneHotEncoder, Binarizer, ArrayFeatureExtractor: every version and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from argosy.errors import ModelError
from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.interpreter import Interpreter
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import model, program, run

ML = "ai.onnx.ml"
NUMBERS = [np.float32, np.float64, np.int64, np.int32]
X = np.array([[3.0, 1.0], [7.0, 3.0]], np.float32)


def test_label_encoder_of_version_1() -> None:
    names, texts = ["b", "a"], np.array([["a", "?"]], object)
    encoded = run("LabelEncoder", texts, classes_strings=names, default_int64=9, domain=ML)
    np.testing.assert_array_equal(encoded, [[1, 9]])
    decoded = run("LabelEncoder", np.array([1, 5]), classes_strings=names, domain=ML)
    assert decoded.tolist() == ["a", "_Unused"]


@pytest.mark.parametrize("key", [np.int64, np.int32, np.int16, np.float32, np.float64, object])
@pytest.mark.parametrize("value", [np.int64, np.int32, np.int16, np.float32, np.float64, object])
def test_label_encoder_of_version_4(key: Any, value: Any) -> None:
    def tensor(numbers: list[int], dtype: Any) -> onnx.TensorProto:
        array = np.array(numbers)
        return numpy_helper.from_array(array.astype(str).astype(object) if dtype is object else array.astype(dtype))

    x = numpy_helper.to_array(tensor([2, 5, 1], key))
    made = model(
        "LabelEncoder", [x], domain=ML, keys_tensor=tensor([1, 2], key), values_tensor=tensor([10, 20], value),
        default_tensor=tensor([-7], value),
    )  # fmt: skip
    made.opset_import[1].version = 4
    expected = numpy_helper.to_array(tensor([20, -7, 10], value))
    (found,) = Interpreter(load(made).main).run([x], Env())
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_one_hot_encoder(dtype: Any) -> None:
    x = X.astype(dtype)
    expected = np.array([[[0, 1], [1, 0]], [[0, 0], [0, 1]]], np.float32)
    np.testing.assert_array_equal(run("OneHotEncoder", x, cats_int64s=[1, 3], domain=ML), expected)
    found = run("OneHotEncoder", x[:1], cats_int64s=[1, 3], zeros=0, domain=ML)
    np.testing.assert_array_equal(found, expected[:1])
    with pytest.raises(ModelError, match="OneHotEncoder") as caught:
        run("OneHotEncoder", x, cats_int64s=[1, 3], zeros=0, domain=ML)
    assert "2" in caught.value.what  # the place of an unknown one, behind the two that are known


def test_one_hot_encoder_of_strings() -> None:
    words = np.array(["b", "?"], object)
    assert run("OneHotEncoder", words, cats_strings=["a", "b"], domain=ML).tolist() == [[0, 1], [0, 0]]
    assert run("OneHotEncoder", words[:1], cats_strings=["a", "b"], zeros=0, domain=ML).tolist() == [[0, 1]]
    with pytest.raises(ModelError):
        run("OneHotEncoder", words, cats_strings=["a", "b"], zeros=0, domain=ML)
    with pytest.raises(ModelError, match="both or neither"):
        program("OneHotEncoder", [X], domain=ML)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("threshold", [0.0, 1.0, 1.5, -0.5, -2.0, 1e30, -1e30, float("nan")])
def test_binarizer(dtype: Any, threshold: float) -> None:
    limits = [np.iinfo(dtype).min, np.iinfo(dtype).max] if np.dtype(dtype).kind == "i" else [-3e38, 3e38]
    x = np.array([-2, -1, 0, 1, 2, *limits], dtype)
    found = run("Binarizer", x, domain=ML, threshold=threshold)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x > np.float64(np.float32(threshold)))
    if dtype is np.float32:
        assert_agrees("Binarizer", x, domain=ML, threshold=threshold)


@pytest.mark.parametrize("dtype", [*NUMBERS, object])
def test_features_by_index(dtype: Any) -> None:
    x = (
        np.array([["a", "b", "c"], ["d", "e", "f"]], object)
        if dtype is object
        else np.arange(6).reshape(2, 3).astype(dtype)
    )
    assert_agrees("ArrayFeatureExtractor", x, np.array([[2, 0]]), domain=ML)
    assert_agrees("ArrayFeatureExtractor", x[0], np.array([1]), domain=ML)
