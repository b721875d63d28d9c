"""Pointwise ops: types, broadcasting, one rounding at the store, and what is known while compiling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.errors import InternalError, ModelError
from argosy.ir import Builder, Formula, Symbol, TensorType, Value, dtype, symbol_dim
from argosy.ir.dim import ceildiv, dim_max, floordiv
from argosy.ops.dim_values import DimValues
from argosy.ops.pointwise import Pointwise, evaluate_formula

N = symbol_dim(Symbol("N"))
M = symbol_dim(Symbol("M", 1))


def tensor(builder: Builder, *dims: Any, kind: str = "float32") -> Value:
    return builder.tensor_parameter(f"p{len(builder._parameters)}", kind, dims)


# ---- types


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((2, 3), (2, 3), (2, 3)),
        ((2, 1), (1, 3), (2, 3)),
        ((3,), (2, 3), (2, 3)),
        ((), (2,), (2,)),
        ((0,), (1,), (0,)),
        ((N, 1), (1, M), (N, M)),
        ((N,), (4,), (4,)),
        ((N,), (N,), (N,)),
        ((N, 3), (), (N, 3)),
        ((N,), (M,), (dim_max(N, M),)),
    ],
)
def test_dims_broadcast(left: tuple[Any, ...], right: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    b = Builder()
    assert b.pointwise("add", tensor(b, *left), tensor(b, *right)).shape == expected


@given(st.lists(st.lists(st.integers(1, 3), max_size=4).map(tuple), min_size=1, max_size=3))
def test_broadcasting_is_that_of_numpy(shapes: list[tuple[int, ...]]) -> None:
    b = Builder()
    operands = [tensor(b, *shape) for shape in shapes]
    formula = Formula.trace(lambda first, *others: sum((other * 1 for other in others), start=first + 0), len(shapes))
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ModelError, match="do not broadcast"):
            b.pointwise(formula, *operands)
        return
    assert b.pointwise(formula, *operands).shape == expected
    assert evaluate_formula(formula, [np.ones(shape, np.float32) for shape in shapes]).shape == expected


def test_an_unknown_rank_stays_unknown() -> None:
    b = Builder()
    x = b.parameter("x", TensorType(dtype("float16"), None))
    y = b.pointwise("lt", x, tensor(b, 3, kind="float16"))
    assert y.type == TensorType(dtype("bool"), None)


def test_operands_must_be_present_tensors_of_fitting_types() -> None:
    b = Builder()
    x = tensor(b, 2)
    with pytest.raises(InternalError, match="a pointwise operand is absent"):
        b.add(Pointwise(Formula.of("add")), x, None)
    with pytest.raises(ModelError, match="one element type, found float32, int8"):
        b.pointwise("add", x, tensor(b, 2, kind="int8"))
    with pytest.raises(ModelError, match="and is not defined for float32"):
        b.pointwise("and", x, x)
    with pytest.raises(ModelError, match="a formula of 2 inputs is applied to 1"):
        b.pointwise("add", x)


# ---- values


def test_short_floats_round_once_at_the_store() -> None:
    # In float16 each step would lose the one: 2048 + 1 is 2048 there.
    formula = Formula.trace(lambda x: (x + 1) - 2048, 1)
    for kind in ("float16", "bfloat16"):
        start = np.array([2048]).astype(dtype(kind).numpy)
        found = evaluate_formula(formula, [start])
        assert found.dtype == start.dtype
        assert found.astype(float).tolist() == [1.0]


def test_a_conversion_inside_rounds() -> None:
    formula = Formula.trace(lambda x: x.convert(dtype("float16")).convert(dtype("float32")) - 2048, 1)
    assert evaluate_formula(formula, [np.array([2049.0], np.float32)]).tolist() == [0.0]


def test_sub_byte_integers_compute_in_bytes_and_wrap_at_the_store() -> None:
    formula = Formula.trace(lambda x: x + x, 1)
    values = np.array([7, -8, 3]).astype(dtype("int4").numpy)
    assert evaluate_formula(formula, [values]).tolist() == [-2, 0, 6]


def test_constants_take_the_type_of_their_neighbour() -> None:
    third = Formula.trace(lambda x: x * 0.3, 1)
    x = np.array([1.0], np.float32)
    assert evaluate_formula(third, [x]).tolist() == [float(np.float32(0.3))]
    assert evaluate_formula(third, [x.astype(np.float64)]).tolist() == [0.3]
    assert evaluate_formula(
        Formula.trace(lambda x: (x < 3).select(x, 7), 1), [np.array([1, 5], np.uint8)]
    ).tolist() == [1, 7]


@pytest.mark.parametrize(
    ("kind", "constant", "fits"),
    [
        ("int8", 127, True),
        ("int8", 128, False),
        ("uint8", -1, False),
        ("uint64", 2**64 - 1, True),
        ("int32", 0.5, False),
        ("int32", 2.0, True),
        ("int32", float("nan"), False),
        ("float16", 1e30, True),
    ],
)
def test_constants_that_do_not_fit_are_refused(kind: str, constant: float, fits: bool) -> None:
    formula = Formula.trace(lambda x: x + constant, 1)
    if fits:
        assert formula.result_dtype([dtype(kind)]) is dtype(kind)
        evaluate_formula(formula, [np.zeros(1, dtype(kind).numpy)])
    else:
        with pytest.raises(ModelError, match=f"is no {kind}"):
            formula.result_dtype([dtype(kind)])


def test_operands_that_a_formula_ignores_still_broadcast() -> None:
    formula = Formula.trace(lambda x, _: -x, 2)
    assert evaluate_formula(formula, [np.ones((2, 1)), np.ones(3)]).shape == (2, 3)


def test_evaluation_changes_no_argument() -> None:
    x = np.array([1.0, -1.0])
    x.flags.writeable = False
    Pointwise(Formula.trace(lambda a: (a < 0).select(-a, a), 1)).evaluate(x)
    assert x.tolist() == [1.0, -1.0]


# ---- what is known while compiling


def known(b: Builder, *items: Any) -> Value:
    """An int64 tensor whose elements are these numbers and dims."""
    return b.add(DimValues(items))


def found(value: Value) -> list[Any] | None:
    return None if value.known is None else value.known.tolist()


def test_numbers_are_computed() -> None:
    b = Builder()
    x = b.constant(np.array([7, -7, 9]))
    assert found(b.pointwise("div", x, b.constant(np.array([2, 2, 0])))) == [3, -3, 0]
    assert found(b.pointwise("lt", x, b.constant(np.array(0)))) == [False, True, False]
    y = b.pointwise(lambda a: a.convert(dtype("float32")) * 0.5, x)
    assert found(y) == [3.5, -3.5, 4.5]
    assert found(b.convert(y, dtype("int32"))) == [3, -3, 4]


def test_dims_are_computed() -> None:
    b = Builder()
    shape = known(b, N, M, 4)
    two = b.constant(np.array(2))
    assert found(b.pointwise("add", shape, two)) == [N + 2, M + 2, 6]
    assert found(b.pointwise("mul", shape, shape)) == [N * N, M * M, 16]
    assert found(b.pointwise("div", shape, two)) == [floordiv(N, 2), floordiv(M, 2), 2]
    assert found(b.pointwise("neg", shape)) == [-N, -M, -4]
    assert found(b.pointwise("max", shape, two)) == [dim_max(N, 2), dim_max(M, 2), 4]
    assert found(b.convert(shape, dtype("int32"))) == [N, M, 4]
    assert found(b.pointwise(lambda a: (a + 1 - a).eq(1).convert(dtype("int64")) + a, shape)) == [N + 1, M + 1, 5]


def test_a_choice_between_dims_is_known_where_it_is_certain() -> None:
    b = Builder()
    shape = known(b, N + 1, 0)
    chosen = b.pointwise(lambda a: a.eq(0).select(1, a), shape)  # N + 1 is never 0
    assert found(chosen) == [N + 1, 1]
    assert found(b.pointwise(lambda a: a.eq(0).select(1, a), known(b, N, 0))) is None  # N may be


@pytest.mark.parametrize(
    "function", [lambda a: a.convert(dtype("float32")), lambda a: a < 3, lambda a: a / -2, lambda a: a.shr(1)]
)
def test_what_has_no_meaning_on_dims_is_unknown(function: Any) -> None:
    b = Builder()
    assert found(b.pointwise(function, known(b, N, 4))) is None


def test_division_of_what_may_be_negative_is_unknown() -> None:
    b = Builder()
    assert found(b.pointwise("div", known(b, N - 1), b.constant(np.array([2])))) is None
    assert found(b.pointwise("div", known(b, N), known(b, N))) is None  # N may be 0
    assert found(b.pointwise("div", known(b, N * M), known(b, M))) == [N]


def test_known_values_are_those_of_a_run() -> None:
    """The equation of a shape program, on dims and then on numbers."""
    b = Builder()
    shape = known(b, N, M)
    rounded = b.pointwise(lambda a: (a + 3) / 4 * 4, shape)
    assert found(rounded) == [4 * floordiv(N + 3, 4), 4 * floordiv(M + 3, 4)]
    assert found(b.pointwise(lambda a: a - 1, rounded)) == [4 * floordiv(N + 3, 4) - 1, 4 * floordiv(M + 3, 4) - 1]
    assert ceildiv(N + 3, 4) != floordiv(N + 3, 4)
