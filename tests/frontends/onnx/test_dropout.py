"""Dropout passes its input on in inference, with a mask of the type that the opset gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import UnsupportedError
from tests.frontends.onnx.one_node import program, run

X = np.array([[1.0, -2.0, np.nan]], np.float32)


@pytest.mark.parametrize(
    ("opset", "attributes", "mask"),
    [
        (1, {"is_test": 1}, np.float32),
        (6, {"is_test": 1}, np.float32),
        (7, {}, np.float32),
        (10, {"ratio": 0.75}, np.bool_),
    ],
)
def test_old_forms(opset: int, attributes: dict[str, Any], mask: Any) -> None:
    y, kept = run("Dropout", X, opset=opset, outputs=("y", "mask"), **attributes)
    np.testing.assert_array_equal(y, X)
    assert kept.dtype == mask
    assert kept.shape == X.shape
    assert kept.all()


@pytest.mark.parametrize("opset", [12, 22])
def test_inference_ignores_the_ratio(opset: int) -> None:
    ratio = np.array(0.9, np.float32)
    y, kept = run("Dropout", X, ratio, opset=opset, outputs=("y", "mask"), seed=3)
    np.testing.assert_array_equal(y, X)
    assert kept.dtype == np.bool_
    assert kept.all()
    np.testing.assert_array_equal(run("Dropout", X, ratio, np.array(False), constant=(2,)), X)


def test_training_with_ratio_zero_is_inference() -> None:
    np.testing.assert_array_equal(run("Dropout", X, np.array(0, np.float32), np.array(True), constant=(1, 2)), X)


def test_training_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="training mode"):
        program("Dropout", [X, np.array(0.5, np.float32), np.array(True)])
    with pytest.raises(UnsupportedError, match="is_test = 0"):
        program("Dropout", [X], opset=6)
