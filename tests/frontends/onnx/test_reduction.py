"""Reductions and softmax against ONNX Runtime, in the old forms and the new."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

Array = NDArray[Any]
X = np.random.default_rng(0).uniform(0.5, 2.0, (3, 4, 5)).astype(np.float32)
OPS = [
    f"Reduce{name}" for name in ("Sum", "Mean", "Prod", "Max", "Min", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [None, [0], [-1], [2, 0]], ids=str)
def test_axes_as_an_attribute_and_as_an_input(op: str, keep: int, axes: Any) -> None:
    given = {} if axes is None else {"axes": axes}
    assert_agrees(op, X, opset=11, keepdims=keep, **given)
    operand = None if axes is None else np.array(axes, np.int64)
    assert_agrees(op, X, operand, opset=18, keepdims=keep, constant=() if axes is None else (1,))
    if axes is not None:
        assert_agrees(op, X, operand, opset=18, keepdims=keep)


@pytest.mark.parametrize("op", OPS)
def test_no_axes_with_noop(op: str) -> None:
    # ONNX: the formulas around a reduction remain.
    expected = {"ReduceL1": np.abs, "ReduceL2": np.abs, "ReduceLogSum": np.log, "ReduceSumSquare": np.square}
    found = run(op, X, np.zeros(0, np.int64), constant=(1,), noop_with_empty_axes=1)
    np.testing.assert_allclose(found, expected.get(op, np.asarray)(X), rtol=1e-6)


def test_log_sum_exp_of_large_numbers_and_infinities() -> None:
    x = np.array([[1000.0, 1000.0], [-np.inf, -np.inf], [np.inf, 0.0], [np.nan, 0.0]], np.float32)
    for keep in (0, 1):
        found = run("ReduceLogSumExp", x, np.array([1]), constant=(1,), keepdims=keep).reshape(-1)
        np.testing.assert_allclose(found, [1000 + np.log(2), -np.inf, np.inf, np.nan], rtol=1e-6)
        at_run_time = run("ReduceLogSumExp", x, np.array([1]), keepdims=keep).reshape(-1)
        np.testing.assert_array_equal(at_run_time, found)


@pytest.mark.parametrize("op", ["ReduceL2", "ReduceSumSquare", "ReduceL1"])
def test_float16_rounds_once(op: str) -> None:
    x = np.full(1000, 8.0, np.float16)
    wide = {"ReduceL2": np.sqrt(64000.0), "ReduceSumSquare": 64000.0, "ReduceL1": 8000.0}[op]
    assert float(run(op, x).item()) == float(np.float16(wide))
    assert run(op, x.astype(ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


def test_integer_norms() -> None:
    x = np.array([3, -4], np.int32)
    assert run("ReduceL2", x).item() == 5
    assert run("ReduceL1", x).item() == 7


def test_max_of_bool() -> None:
    assert run("ReduceMax", np.array([[False, True], [False, False]]), np.array([1]), keepdims=0).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_positions(op: str, last: int) -> None:
    x = np.random.default_rng(1).integers(0, 3, (4, 5, 6)).astype(np.float32)
    for axis in (0, -1):
        for keep in (0, 1):
            assert_agrees(op, x, opset=13, axis=axis, keepdims=keep, select_last_index=last)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [1, 11, 13])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_softmax_flattens_before_opset_13(op: str, opset: int, axis: int | None) -> None:
    options: dict[str, Any] = {} if axis is None else {"axis": axis}
    if opset == 1 and axis == -1:
        return
    assert_agrees(op, X, opset=max(opset, 7), **options)


@pytest.mark.parametrize("size", [2, 6])
def test_flattening_symbolic_dims(size: int) -> None:
    x = np.random.default_rng(2).standard_normal((size, 3, 4)).astype(np.float32)
    assert_agrees("Softmax", x, opset=11, axis=1, shapes=[("n", "c", 4)])
    assert_agrees("Hardmax", x, opset=13, axis=1, shapes=[("n", "c", 4)])


def test_errors_name_the_node() -> None:
    with pytest.raises(
        ModelError, match=r"ReduceSum \(node 0 → 'y'\): an axis to reduce is 3, expected -3..2 for rank 3"
    ):
        program("ReduceSum", [X, np.array([3])], constant=(1,))
