"""LinearClassifier and LinearRegressor against ONNX Runtime, or onnx.reference where the two differ."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import onnxruntime.datasets
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

import argosy
from argosy.errors import ModelError
from argosy.frontends.onnx import ImportOptions, load
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import model, program, run

Array = NDArray[Any]
ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
RNG = np.random.default_rng(7)
W = RNG.normal(size=(3, 4)).astype(np.float32)
B = RNG.normal(size=3).astype(np.float32)
BOTH = ("label", "scores")


def rows(dtype: Any = np.float32, count: int = 9) -> Array:
    return (np.random.default_rng(3).normal(size=(count, 4)) * 3).astype(dtype)


def expit(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    return np.asarray(np.exp(x) / np.exp(x).sum(1, keepdims=True))


def between(transform: str) -> float:
    """Small coefficients where the transform takes probabilities."""
    return 0.01 if transform == "PROBIT" else 1.0


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("texts", [False, True])
def test_many_classes(transform: str, texts: bool) -> None:
    labels: dict[str, Any] = {"classlabels_strings": ["a", "b", "ü"]} if texts else {"classlabels_ints": [7, -1, 3]}
    share = between(transform)
    assert_agrees(
        "LinearClassifier", rows(), domain=ML, outputs=BOTH, shapes=[["n", 4]], post_transform=transform,
        coefficients=(W * share).ravel().tolist(), intercepts=(0.5 + B * share).tolist(), rtol=1e-4, **labels,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_types_of_the_input(dtype: Any) -> None:
    given: dict[str, Any] = {"coefficients": W.ravel().tolist(), "intercepts": B.tolist()}
    assert_agrees("LinearClassifier", rows(dtype), domain=ML, outputs=BOTH, classlabels_ints=[0, 1, 2], **given)
    found = run("LinearRegressor", rows(dtype), domain=ML, targets=3, **given)
    exact = rows(dtype).astype(np.float64) @ W.T.astype(np.float64) + B
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=1e-7 if dtype == np.float64 else 1e-5, atol=1e-6)


def test_a_vector_is_one_row() -> None:
    given: dict[str, Any] = {"coefficients": W.ravel().tolist(), "intercepts": B.tolist()}
    assert_agrees("LinearClassifier", rows()[0], domain=ML, outputs=BOTH, classlabels_ints=[0, 1, 2], **given)
    assert_agrees("LinearRegressor", rows()[0], domain=ML, targets=3, **given)


@pytest.mark.parametrize("labels", [[4, 9], ["no", "yes"]])
def test_two_classes_with_the_coefficients_of_one(labels: list[Any]) -> None:
    name = "classlabels_ints" if isinstance(labels[0], int) else "classlabels_strings"
    given: dict[str, Any] = {"coefficients": W[0].tolist(), "intercepts": [0.25], name: labels}
    assert_agrees("LinearClassifier", rows(), domain=ML, outputs=BOTH, post_transform="LOGISTIC", **given)
    x = rows()
    score = x @ W[0] + np.float32(0.25)
    pair = np.stack([-score, score], 1)
    for transform, expected in (("NONE", pair), ("SOFTMAX", softmax(pair)), ("SOFTMAX_ZERO", softmax(pair))):
        found, scores = run("LinearClassifier", x, domain=ML, outputs=BOTH, post_transform=transform, **given)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
        assert found.tolist() == [labels[int(value > 0)] for value in score]
    reference = ReferenceEvaluator(model("LinearClassifier", [x], domain=ML, outputs=BOTH, **given))
    np.testing.assert_allclose(list(reference.run(None, {"x0": x}))[1], pair, rtol=1e-5, atol=1e-6)


def test_probit_of_two_classes_takes_a_probability() -> None:
    x = np.array([[0.1], [0.5], [0.9]], np.float32)
    given: dict[str, Any] = {"coefficients": [1.0], "intercepts": [0.0], "classlabels_ints": [0, 1]}
    _, scores = run("LinearClassifier", x, domain=ML, outputs=BOTH, post_transform="PROBIT", **given)
    quantile = [NormalDist().inv_cdf(p) for p in (0.1, 0.5, 0.9)]
    np.testing.assert_allclose(scores, np.stack([np.negative(quantile), quantile], 1), atol=5e-3)


@pytest.mark.parametrize("name", ["classlabels_ints", "classlabels_strings"])
def test_one_row_without_two_labels(name: str) -> None:
    """ONNX Runtime wants two labels or more by now; what it answered before is 1 and 0."""
    text = name.endswith("strings")
    label, scores = run(
        "LinearClassifier", np.array([[2.0], [-2.0]], np.float32), domain=ML, outputs=BOTH, coefficients=[1.0],
        intercepts=[0.0], post_transform="LOGISTIC", **{name: ["only"] if text else [5]},
    )  # fmt: skip
    assert label.tolist() == (["1", "0"] if text else [1, 0])
    np.testing.assert_allclose(scores, expit(np.array([[2.0], [-2.0]])), rtol=1e-6)


def test_intercepts_may_be_left_out() -> None:
    x = rows()
    label, scores = run(
        "LinearClassifier", x, domain=ML, outputs=BOTH, coefficients=W.ravel().tolist(), classlabels_ints=[1, 2, 3]
    )
    np.testing.assert_allclose(scores, x @ W.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(label, (x @ W.T).argmax(1) + 1)
    _, scores = run("LinearClassifier", x, domain=ML, outputs=BOTH, coefficients=W[0].tolist(), classlabels_ints=[1, 2])
    np.testing.assert_allclose(scores[:, 1], x @ W[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["LinearClassifier", "LinearRegressor"])
def test_of_too_many_coefficients_the_first_are_read(op: str, caplog: pytest.LogCaptureFixture) -> None:
    """Row by row of the width that the input has, as ONNX Runtime reads them; told, and refused where that is asked."""
    given: dict[str, Any] = {"coefficients": W.ravel().tolist(), "intercepts": B.tolist(), "domain": ML}
    given |= {"classlabels_ints": [0, 1, 2], "outputs": BOTH} if op == "LinearClassifier" else {"targets": 3}
    assert_agrees(op, rows()[:, :2], **given)
    assert f"{op} (node 0 → " in caplog.text
    assert (
        "12 coefficients are given for 3 x 2 (the features of its input), of which the first 6 are read" in caplog.text
    )
    with pytest.raises(ModelError, match="12 coefficients are given for 3 x 2"):
        load(model(op, [rows()[:, :2]], **given), ImportOptions(strict=True))


def test_what_is_no_row_more_is_refused() -> None:
    given: dict[str, Any] = {"coefficients": [1.0] * 7, "intercepts": B.tolist(), "classlabels_ints": [0, 1, 2]}
    with pytest.raises(ModelError, match="7 coefficients are given for 3 x 2, which is no multiple of the rows"):
        run("LinearClassifier", rows()[:, :2], domain=ML, outputs=BOTH, **given)


def test_the_model_that_onnxruntime_ships() -> None:
    """It declares two features of the four that it was trained on."""
    path = onnxruntime.datasets.get_example("logreg_iris.onnx")
    x = np.array([[5.1, 3.5], [6.2, 2.9], [7.7, 2.6]], np.float32)
    label, maps = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"float_input": x})
    for target in ("ref", "cpu"):
        found = argosy.Session(argosy.compile(path, targets=[target]), device=target).run({"float_input": x})
        np.testing.assert_array_equal(found["label"], label)
        for ours, theirs in zip(found["probabilities"], maps, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)  # theirs is one minus the chance of the others


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("shapes", [[["n", 4]], [["n", "features"]]])
def test_regressor(transform: str, shapes: list[list[Any]]) -> None:
    share = between(transform)
    assert_agrees(
        "LinearRegressor", rows(), domain=ML, shapes=shapes, targets=3, post_transform=transform, rtol=1e-4,
        coefficients=(W * share).ravel().tolist(), intercepts=(0.5 + B * share).tolist(),
    )  # fmt: skip


def test_regressor_of_one_target() -> None:
    assert_agrees("LinearRegressor", rows(), domain=ML, targets=1, coefficients=W[0].tolist())
    found = run("LinearRegressor", rows(), domain=ML, coefficients=W[0].tolist(), post_transform="LOGISTIC")
    np.testing.assert_allclose(found, expit(rows() @ W[0])[:, None], rtol=1e-5, atol=1e-6)


def test_no_rows() -> None:
    label, scores = run(
        "LinearClassifier", rows(count=0), domain=ML, outputs=BOTH, shapes=[["n", 4]], classlabels_ints=[1, 2, 3],
        coefficients=W.ravel().tolist(), intercepts=B.tolist(), post_transform="SOFTMAX",
    )  # fmt: skip
    assert (label.shape, scores.shape) == ((0,), (0, 3))


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("LinearRegressor", {"coefficients": [1.0] * 3}, r"3 coefficients are given, expected 1 x 4"),
        ("LinearRegressor", {"coefficients": [1.0] * 8, "targets": 2, "intercepts": [1.0]}, "1 intercepts are given"),
        ("LinearClassifier", {"coefficients": [1.0] * 8, "classlabels_ints": [1, 2, 3]}, "3 labels are given for 2"),
        ("LinearClassifier", {"coefficients": [1.0] * 4}, "both or neither of the attributes"),
        ("LinearClassifier", {"coefficients": [1.0] * 4, "classlabels_ints": [1], "post_transform": "X"}, "'X'"),
    ],
)
def test_what_does_not_fit(op: str, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        program(op, [rows()], domain=ML, outputs=BOTH if op == "LinearClassifier" else ("y",), **attributes)
