"""Arithmetic, comparison and bits against numpy: every element type, edge values, the forms before opset 7."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from argosy.errors import ModelError
from tests.frontends.onnx.one_node import model, program, run

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("op", "expected"), [("Add", 9), ("Sub", 5), ("Mul", 14), ("Div", 3)])
def test_arithmetic_keeps_the_element_type(op: str, expected: int, dtype: Any) -> None:
    y = run(op, np.array([[7]], dtype), np.array(2, dtype))
    assert y.dtype == dtype
    assert y.shape == (1, 1)
    assert float(y.item()) == (3.5 if op == "Div" and dtype in (*FLOATS, ml_dtypes.bfloat16) else expected)


def test_integer_division_truncates_and_has_no_infinity() -> None:
    y = run("Div", np.array([7, -7, 7, -7, 5], np.int32), np.array([2, 2, -2, -2, 0], np.int32))
    np.testing.assert_array_equal(y, [3, -3, -3, 3, 0])


def test_short_floats_round_once() -> None:
    a, b = np.array([1.0009766], np.float16), np.array([2048.0], np.float16)
    expected = (a.astype(np.float64) * b.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(run("Mul", a, b), expected)


@pytest.mark.parametrize("op", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"])
def test_comparisons_with_nan_are_false(op: str) -> None:
    a, b = np.array([1.0, NAN, 2.0, -0.0], np.float32), np.array([NAN, NAN, 1.0, 0.0], np.float32)
    function = {
        "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less, "LessOrEqual": np.less_equal,
        "Equal": np.equal,
    }[op]  # fmt: skip
    y = run(op, a, b)
    assert y.dtype == np.bool_
    np.testing.assert_array_equal(y, function(a, b))


def test_equal_compares_text() -> None:
    a, b = np.array(["a", "ü"], object), np.array(["a", "u"], object)
    np.testing.assert_array_equal(run("Equal", a, b), [True, False])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_of_integers(dtype: Any, fmod: int) -> None:
    signed = np.issubdtype(dtype, np.signedinteger)
    a = np.array([7, -7, 7, -7] if signed else [7, 9, 100, 3], dtype)
    b = np.array([3, 3, -3, -3] if signed else [3, 4, 7, 5], dtype)
    expected = (np.fmod if fmod else np.mod)(a, b)
    np.testing.assert_array_equal(run("Mod", a, b, fmod=fmod), expected)


def test_mod_of_floats_needs_fmod_before_opset_28() -> None:
    x = np.array([5.5], np.float32)
    with pytest.raises(ModelError, match="'fmod'"):
        program("Mod", [x, x], opset=13)
    assert run("Mod", x, np.array([-2.0], np.float32), opset=13, fmod=1) == 1.5
    assert run("Mod", x, np.array([-2.0], np.float32), opset=28) == -0.5


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bit_shift_out_of_range(dtype: Any) -> None:
    signed = np.issubdtype(dtype, np.signedinteger)
    width = np.dtype(dtype).itemsize * 8
    x = np.array([5, -5 if signed else 5, 1], dtype)
    by = np.array([1, 1, width], dtype)
    left = run("BitShift", x, by, direction="LEFT")
    np.testing.assert_array_equal(left, np.array([10, -10 if signed else 10, 0], dtype))
    right = run("BitShift", x, by, direction="RIGHT")
    np.testing.assert_array_equal(right, np.array([2, -3 if signed else 2, 0], dtype))
    if signed:
        negative = np.array([-1, -1, -1], dtype)
        np.testing.assert_array_equal(run("BitShift", x, negative, direction="LEFT"), [0, 0, 0])
        np.testing.assert_array_equal(run("BitShift", x, negative, direction="RIGHT"), [0, -1, 0])


def test_bit_shift_names_a_wrong_direction() -> None:
    x = np.array([1], np.uint8)
    with pytest.raises(ModelError, match="'UP', expected one of LEFT, RIGHT"):
        program("BitShift", [x, x], direction="UP")


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("negative", [0, 1])
@pytest.mark.parametrize("dtype", [*FLOATS, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_isinf_detects_the_signs_asked_for(positive: int, negative: int, dtype: Any) -> None:
    x = np.array([INF, -INF, NAN, 1.0, -0.0]).astype(dtype)
    y = run("IsInf", x, detect_positive=positive, detect_negative=negative)
    np.testing.assert_array_equal(y, [bool(positive), bool(negative), False, False, False])


@pytest.mark.parametrize("base", [np.int32, np.int64, *FLOATS])
@pytest.mark.parametrize("exponent", [*INTEGERS, *FLOATS])
def test_pow_has_the_type_of_its_base(base: Any, exponent: Any) -> None:
    x, y = np.array([1, 2, 3], base), np.array([3, 2, 0], exponent)
    z = run("Pow", x, y)
    assert z.dtype == base
    np.testing.assert_array_equal(z, np.array([1, 4, 1], base))


def test_pow_of_integers_truncates_negative_powers() -> None:
    x, y = np.array([2, 1, -1, 5], np.int64), np.array([-1, -5, -3, 3], np.int64)
    np.testing.assert_array_equal(run("Pow", x, y), [0, 1, -1, 125])


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(
    ("shape", "axis"), [((), None), ((1, 1), None), ((5,), None), ((4, 5), None), ((3, 4), 1), ((2,), 0), ((3,), -3)]
)
@pytest.mark.parametrize("op", ["Add", "Sub", "Greater", "Pow"])
def test_old_broadcast(op: str, shape: tuple[int, ...], axis: int | None, opset: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.random((2, 3, 4, 5), np.float32)
    b = rng.random(shape, np.float32)
    attributes = {} if axis is None else {"axis": axis}
    y = run(op, a, b, opset=opset, broadcast=1, **attributes)
    stretched = b
    if axis is not None:
        first = axis % 4
        stretched = b.reshape(b.shape + (1,) * (4 - first - b.ndim))
    function = {"Add": np.add, "Sub": np.subtract, "Greater": np.greater, "Pow": np.power}[op]
    np.testing.assert_allclose(y, function(a, stretched), rtol=1e-6)


def test_old_ops_broadcast_only_when_told() -> None:
    a, b = np.zeros((2, 3), np.float32), np.zeros((3,), np.float32)
    with pytest.raises(ModelError, match="'broadcast' is not set"):
        program("Add", [a, b], opset=6)
    with pytest.raises(ModelError, match="does not fit"):
        program("Add", [a, b], opset=6, broadcast=1, axis=2)


def test_symbolic_dims_broadcast() -> None:
    made = program("Add", [np.zeros((1, 3)), np.zeros((2, 1))], shapes=[["n", 3], [2, "m"]])
    assert str(made.outputs["y"]) == "float64[2, 3]"


@pytest.mark.parametrize("op", ["Asinh", "Acosh", "Atanh", "Erf", "Sign", "Round", "Tan", "Sqrt", "Reciprocal", "Log"])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,)])
def test_unary_ops_agree_with_the_reference(op: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(size=shape, scale=2).astype(np.float32)
    with np.errstate(all="ignore"):
        expected: Any = ReferenceEvaluator(model(op, [x])).run(None, {"x0": x})
    np.testing.assert_allclose(run(op, x), expected[0], rtol=2e-6, atol=1e-7)
