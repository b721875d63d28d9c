"""Support vector machines against ONNX Runtime, or the formulas where it leaves the transform out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from argosy.errors import ModelError, UnsupportedError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import model, program, run

Array = NDArray[Any]
ML = "ai.onnx.ml"
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
BOTH = ("label", "scores")
FEATURES = 4
PARAMETERS: dict[str, Any] = {"kernel_params": [0.25, 0.5, 3.0]}


def rows(dtype: Any = np.float32, count: int = 12) -> Array:
    return (np.random.default_rng(5).normal(size=(count, FEATURES)) * 2).astype(dtype)


def machine(counts: list[int], kernel: str, *, chances: bool = False, texts: bool = False) -> dict[str, Any]:
    """Attributes of a random SVMClassifier with so many support vectors for each class."""
    rng = np.random.default_rng(len(counts))
    classes, vectors = len(counts), sum(counts)
    pairs = classes * (classes - 1) // 2
    made: dict[str, Any] = {
        "kernel_type": kernel,
        "vectors_per_class": counts,
        "support_vectors": rng.normal(size=vectors * FEATURES).tolist(),
        "coefficients": rng.normal(size=(classes - 1) * vectors).tolist(),
        "rho": rng.normal(size=pairs).tolist(),
        **PARAMETERS,
    }
    if texts:
        made["classlabels_strings"] = [f"class {index}" for index in range(classes)]
    else:
        made["classlabels_ints"] = list(range(10, 10 + classes))
    if chances:
        made |= {"prob_a": (-rng.random(pairs)).tolist(), "prob_b": rng.normal(size=pairs).tolist()}
    return made


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [[2, 3], [1, 4, 2], [3, 1, 0, 2, 5]])
@pytest.mark.parametrize("chances", [False, True])
def test_kernels_and_classes(kernel: str, counts: list[int], chances: bool) -> None:
    assert_agrees(
        "SVMClassifier", rows(), domain=ML, outputs=BOTH, shapes=[["n", FEATURES]], rtol=1e-4, atol=1e-5,
        **machine(counts, kernel, chances=chances, texts=kernel == "POLY"),
    )  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("chances", [False, True])
def test_transforms(transform: str, chances: bool) -> None:
    given = machine([2, 2, 2], "RBF", chances=chances)
    if transform == "PROBIT" and not chances:  # the scores must be probabilities
        given |= {"coefficients": [value * 0.01 for value in given["coefficients"]], "rho": [0.4, 0.5, 0.6]}
    assert_agrees(
        "SVMClassifier", rows(), domain=ML, outputs=BOTH, post_transform=transform, rtol=1e-4, atol=1e-5, **given
    )


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_of_two_classes(transform: str) -> None:
    given = machine([2, 3], "RBF")
    if transform in ("NONE", "LOGISTIC"):
        assert_agrees("SVMClassifier", rows(), domain=ML, outputs=BOTH, post_transform=transform, **given)
        return
    _, plain = run("SVMClassifier", rows(), domain=ML, outputs=BOTH, **given)
    _, found = run("SVMClassifier", rows(), domain=ML, outputs=BOTH, post_transform=transform, **given)
    if transform == "PROBIT":  # ONNX Runtime computes one of the two columns, in the place of the other
        inside = (plain[:, 1] > 0) & (plain[:, 1] < 1)
        assert inside.any()
        np.testing.assert_allclose(found[inside, 0], -found[inside, 1], rtol=1e-4, atol=1e-4)
        assert ((found[inside, 1] > 0) == (plain[inside, 1] > 0.5)).all()
        return
    powers = np.exp(plain.astype(np.float64))
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
@pytest.mark.parametrize("chances", [False, True])
def test_types_of_the_input(dtype: Any, chances: bool) -> None:
    given = machine([2, 1, 2], "RBF", chances=chances)
    assert_agrees("SVMClassifier", rows(dtype), domain=ML, outputs=BOTH, atol=1e-5, **given)
    assert_agrees("SVMClassifier", rows(dtype)[0], domain=ML, outputs=BOTH, atol=1e-5, **given)


def test_no_rows() -> None:
    given = machine([2, 1, 2], "RBF", chances=True)
    label, scores = run("SVMClassifier", rows(count=0), domain=ML, outputs=BOTH, shapes=[["n", FEATURES]], **given)
    assert (label.shape, scores.shape) == ((0,), (0, 3))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_linear_machine(transform: str, classes: int) -> None:
    """The label of two classes is not compared: ONNX Runtime says the second wherever a score is positive."""
    share = 0.01 if transform == "PROBIT" else 1.0
    coefficients = np.random.default_rng(9).normal(size=(classes, FEATURES)).astype(np.float32) * np.float32(share)
    given: dict[str, Any] = {
        "classlabels_ints": [4, 9, 2][:classes], "coefficients": coefficients.ravel().tolist(), "rho": [0.5],
        "post_transform": transform,
    }  # fmt: skip
    label, scores = run("SVMClassifier", rows(), domain=ML, outputs=BOTH, **given)
    raw = rows() @ coefficients.T + np.float32(0.5)
    assert label.tolist() == [[4, 9, 2][index] for index in raw.argmax(1)]
    if classes == 1:  # ONNX Runtime transforms a single score for PROBIT only
        expected = {
            "NONE": raw,
            "SOFTMAX": raw * 0 + 1,
            "SOFTMAX_ZERO": raw * 0 + 1,
            "LOGISTIC": 1 / (1 + np.exp(-raw)),
        }
        if transform in expected:
            np.testing.assert_allclose(scores, expected[transform], rtol=1e-5)
        return
    if classes == 3:
        assert_agrees("SVMClassifier", rows(), domain=ML, outputs=BOTH, rtol=1e-4, **PARAMETERS, **given)
        return
    three = dict(given, classlabels_ints=[4, 9])
    reference = ReferenceEvaluator(model("SVMClassifier", [rows()], domain=ML, outputs=BOTH, **PARAMETERS, **three))
    np.testing.assert_allclose(scores, list(reference.run(None, {"x0": rows()}))[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressor(kernel: str, one_class: int) -> None:
    rng = np.random.default_rng(2)
    given: dict[str, Any] = {
        "kernel_type": kernel, "n_supports": 5, "support_vectors": rng.normal(size=5 * FEATURES).tolist(),
        "coefficients": rng.normal(size=5).tolist(), "rho": [0.125], "one_class": one_class, **PARAMETERS,
    }  # fmt: skip
    assert_agrees("SVMRegressor", rows(), domain=ML, shapes=[["n", FEATURES]], rtol=1e-4, atol=1e-5, **given)
    assert_agrees("SVMRegressor", rows()[0], domain=ML, rtol=1e-4, atol=1e-5, **given)
    wide = run("SVMRegressor", rows(np.float64), domain=ML, **given)
    np.testing.assert_allclose(wide, run("SVMRegressor", rows(), domain=ML, **given), rtol=1e-4, atol=1e-5)


def test_distances_cancel_nowhere() -> None:
    """Rows near, at and infinitely far from the support vectors, all of them far from the origin."""
    supports = np.float32(1000) + np.arange(8, dtype=np.float32).reshape(2, 4)
    steps = np.array([0, 1e-3, -0.5, 3, np.inf], np.float32)
    x = supports[:1] + steps[:, None]
    found = run(
        "SVMRegressor", x, domain=ML, kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0], n_supports=2, rho=[0.0],
        support_vectors=supports.ravel().tolist(), coefficients=[1.0, 0.0],
    )  # fmt: skip
    squares = ((x.astype(np.float64) - supports[0]) ** 2).sum(1)
    np.testing.assert_allclose(found[:, 0], np.exp(-0.5 * squares), rtol=1e-6)
    assert_agrees(
        "SVMRegressor", x, domain=ML, kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0], n_supports=2, rho=[0.0],
        support_vectors=supports.ravel().tolist(), coefficients=[1.0, 0.5],
    )  # fmt: skip


def test_linear_regressor_and_its_transform() -> None:
    given: dict[str, Any] = {"coefficients": [1.0, -2.0, 0.5, 0.0], "rho": [0.125], "n_supports": 0}
    assert_agrees("SVMRegressor", rows(), domain=ML, rtol=1e-4, **PARAMETERS, **given)
    raw = rows(np.int64) @ np.array(given["coefficients"]) + 0.125
    found = run("SVMRegressor", rows(np.int64), domain=ML, post_transform="LOGISTIC", **given)
    np.testing.assert_allclose(found[:, 0], 1 / (1 + np.exp(-raw)), rtol=1e-5)
    signs = run("SVMRegressor", rows(np.int64), domain=ML, post_transform="LOGISTIC", one_class=1, **given)
    np.testing.assert_array_equal(signs[:, 0], np.where(raw > 0, 1, -1))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"coefficients": [1.0] * 7}, ModelError, "7 coefficients are given, expected 2 x 5"),
        ({"rho": [1.0]}, ModelError, "'rho' holds 1 numbers, expected 3"),
        ({"support_vectors": [1.0] * 10}, ModelError, "expected 5 x 4"),
        ({"kernel_params": [1.0]}, ModelError, "holds 1 numbers, expected gamma, coef0 and degree"),
        ({"prob_a": [1.0]}, ModelError, "1 prob_a and 0 prob_b are given, expected 3"),
        ({"vectors_per_class": [2, 3]}, ModelError, "2 vectors_per_class are given for 3 labels"),
        ({"vectors_per_class": [2, -1, 4]}, ModelError, "expected sizes"),
        ({"vectors_per_class": [], "prob_a": [1.0]}, UnsupportedError, "without support vectors"),
    ],
)
def test_what_does_not_fit(change: dict[str, Any], error: type[Exception], message: str) -> None:
    given = machine([2, 1, 2], "LINEAR") | change
    with pytest.raises(error, match=message):
        program("SVMClassifier", [rows()], domain=ML, outputs=BOTH, **{k: v for k, v in given.items() if v != []})
