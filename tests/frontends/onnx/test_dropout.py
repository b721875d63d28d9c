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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("constant", [(), (2,), (1, 2)])
def test_training_drops_and_scales(dtype: Any, constant: tuple[int, ...]) -> None:
    x = np.arange(1, 4001).reshape(40, 100).astype(dtype)
    ratio = np.array(0.25, np.float32)
    y, kept = run("Dropout", x, ratio, np.array(True), outputs=("y", "mask"), constant=constant)
    assert kept.dtype == np.bool_
    assert abs(kept.mean() - 0.75) < 0.03
    assert 0 < kept[0].sum() < 100
    np.testing.assert_allclose(
        y, np.where(kept, x.astype(np.float64) / 0.75, 0), rtol=1e-3 if dtype is np.float16 else 1e-6
    )


def test_training_mode_may_be_known_at_run_time_only() -> None:
    x = np.ones((10, 10), np.float32)
    y, kept = run("Dropout", x, np.array(0.5, np.float32), np.array(False), outputs=("y", "mask"))
    np.testing.assert_array_equal(y, x)
    assert kept.all()


def test_everything_is_dropped_at_ratio_one() -> None:
    y, kept = run("Dropout", np.ones(9, np.float32), np.array(1.0), np.array(True), outputs=("y", "mask"))
    assert not y.any()
    assert not kept.any()


def test_seeds_draw_different_masks() -> None:
    x, ratio, training = np.ones(64, np.float32), np.array(0.5, np.float32), np.array(True)
    masks = [run("Dropout", x, ratio, training, outputs=("y", "mask"), seed=seed)[1] for seed in (1, 1, 2, -1)]
    np.testing.assert_array_equal(masks[0], masks[1])
    assert (masks[0] != masks[2]).any()
    assert (masks[0] != masks[3]).any()


def test_old_training_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="is_test = 0"):
        program("Dropout", [X], opset=6)
