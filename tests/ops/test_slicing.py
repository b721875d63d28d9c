"""Slice, Pad and ReverseSequence against numpy, at every size of a symbolic dim."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ir import TensorType
from argosy.ops.view import Pad, ReverseSequence, Slice
from tests.ops.agreement import apply, infer, tensor

FAR = 2**63 - 1
positions = st.one_of(st.integers(-9, 9), st.sampled_from([FAR, -FAR, 2**31 - 1, -(2**31)]))


def onnx_positions(start: int, end: int, step: int, size: int) -> list[int]:
    """What ONNX's words say: negative positions from the end, then clamped."""
    start, end = (start + size if start < 0 else start), (end + size if end < 0 else end)
    if step > 0:
        return list(range(min(max(start, 0), size), min(max(end, 0), size), step))
    return list(range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step))


@given(positions, positions, st.integers(-4, 4).filter(bool), st.integers(0, 7))
def test_slice_of_a_symbolic_axis(start: int, end: int, step: int, size: int) -> None:
    x = np.arange(2 * size).reshape(2, size)
    op = Slice((start,), (end,), (1,), (step,))
    (found,) = apply(op, tensor("int64", 2, "n"), feeds=[x])
    np.testing.assert_array_equal(found, x[:, onnx_positions(start, end, step, size)])


@given(positions, positions, st.integers(-4, 4).filter(bool), st.integers(0, 7))
def test_slice_of_a_fixed_axis(start: int, end: int, step: int, size: int) -> None:
    (kind,) = infer(Slice((start,), (end,), (0,), (step,)), tensor("int64", size))
    assert kind == tensor("int64", len(onnx_positions(start, end, step, size)))


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (0, FAR, 1, "n"),
        (0, 2**31 - 1, 1, "n"),
        (-1, -FAR, -1, "n"),
        (1, FAR, 1, "max(0, n - 1)"),
        (0, -1, 1, "max(0, n - 1)"),
        (-1, FAR, 1, "min(1, n)"),
        (0, 5, 1, "min(5, n)"),
        (0, FAR, 2, "ceildiv(n, 2)"),
    ],
)
def test_the_dims_of_usual_slices_are_simple(start: int, end: int, step: int, expected: str) -> None:
    (kind,) = infer(Slice((start,), (end,), (0,), (step,)), tensor("float32", "n", 8))
    assert str(kind) == f"float32[{expected}, 8]"


def test_positions_at_run_time() -> None:
    x = np.arange(10.0)
    at = tensor("int64", 1)
    start, end, step = np.array([7]), np.array([1]), np.array([-2])
    (found,) = apply(Slice(), tensor("float64", "n"), at, at, None, at, feeds=[x, start, end, step])
    np.testing.assert_array_equal(found, x[7:1:-2])
    (kind,) = infer(Slice(), tensor("float64", 4, 10), at, at, np.array([1]))
    assert isinstance(kind, TensorType)
    assert kind.shape[0] == 4


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (Slice((0,), (1,), (0,), (0,)), "a step is 0"),
        (Slice((0,), (1,), (2,)), "axis is 2, expected -2..1"),
        (Slice((0, 0), (1, 1), (1, -1)), "name one axis twice"),
        (Slice((0, 0), (1,), (0, 1)), "1 ends are given for 2 axes"),
    ],
)
def test_slice_says_what_is_wrong(op: Slice, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        infer(op, tensor("float32", 3, 4))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, ml_dtypes.bfloat16])
def test_pad_modes(mode: str, dtype: Any) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    (found,) = apply(Pad(mode, (1, 2, 0, 3)), tensor(_name(dtype), "h", "w"), feeds=[x])
    expected = np.pad(x.astype(np.int64), ((1, 0), (2, 3)), mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(found.astype(np.int64), expected)


def _name(dtype: Any) -> str:
    return str(np.dtype(dtype).name)


@pytest.mark.parametrize("mode", ["reflect", "wrap"])
def test_pads_longer_than_the_axis_repeat(mode: str) -> None:
    x = np.arange(3)
    (found,) = apply(Pad(mode, (7, 8)), tensor("int64", "n"), feeds=[x])
    np.testing.assert_array_equal(found, np.pad(x, (7, 8), mode))  # type: ignore[call-overload]


def test_negative_pads_take_away() -> None:
    x = np.arange(10)
    (found,) = apply(Pad("constant", (-3, 2)), tensor("int64", "n"), feeds=[x])
    np.testing.assert_array_equal(found, [3, 4, 5, 6, 7, 8, 9, 0, 0])
    with pytest.raises(ModelError, match="take away more than axis 0"):
        infer(Pad("constant", (-3, -2)), tensor("int64", 4))


def test_pad_value_axes_and_strings() -> None:
    x = np.ones((2, 3), np.float16)
    value = np.array(7, np.float16)
    (found,) = apply(Pad("constant", (1, 0), (-1,)), tensor("float16", 2, "w"), None, value, feeds=[x])
    np.testing.assert_array_equal(found, np.pad(x, ((0, 0), (1, 0)), constant_values=7))
    words = np.array(["a", "b"], object)
    assert apply(Pad("constant", (1, 1)), tensor("string", 2), feeds=[words])[0].tolist() == ["", "a", "b", ""]
    with pytest.raises(ModelError, match="the pad value is float32, expected float16"):
        infer(Pad("constant", (1, 1)), tensor("float16", 2), None, np.array(1, np.float32))


def test_pads_at_run_time_leave_other_axes_alone() -> None:
    (kind,) = infer(Pad("edge"), tensor("float32", "n", 5), tensor("int64", 2), None, np.array([1]))
    assert isinstance(kind, TensorType)
    assert str(kind.shape[0]) == "n"
    assert not isinstance(kind.shape[1], int)


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0), (2, 1)])
def test_reverse_sequence(batch: int, time: int) -> None:
    x = np.arange(3 * 4 * 2).reshape(3, 4, 2)
    lengths = np.arange(x.shape[batch]) % (x.shape[time] + 1)
    expected = x.copy()
    for index, length in enumerate(lengths):
        part: NDArray[Any] = np.moveaxis(expected, (batch, time), (0, 1))[index]
        part[:length] = part[:length][::-1].copy()
    (found,) = apply(ReverseSequence(batch, time), tensor("int64", 3, 4, 2), lengths, feeds=[x])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("x", [(3, 4), (3, 4, 0)])
@pytest.mark.parametrize("length", [-1, 4, 16, 2**62])
def test_reverse_sequence_of_more_steps_than_there_are(x: tuple[int, ...], length: int) -> None:
    op = ReverseSequence(1, 0)
    with pytest.raises(ModelError, match=f"sequence_lens has {length}, expected 0 to the 3 steps of axis 0"):
        op.evaluate(np.zeros(x, np.float32), np.array([0, 3, length, 1]))
