"""Formulas: how they are traced from Python, which types they take, and how they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from argosy.errors import ModelError
from argosy.ir import DTYPES, Expr, Formula, dtype
from argosy.ir.formula import Constant, Step
from argosy.ir.scalar import PRIMITIVES

F32, F16, I64, BOOL = dtype("float32"), dtype("float16"), dtype("int64"), dtype("bool")
LETTERS = {"float": "f", "int": "i", "uint": "i", "bool": "b", "complex": "c", "string": "s"}


@pytest.mark.parametrize(
    ("function", "arity", "text"),
    [
        (lambda x, y: x + y, 2, "|x0, x1| add(x0, x1)"),
        (lambda x: 1 - x, 1, "|x0| sub(1, x0)"),
        (lambda x: 2.0 / x * 3, 1, "|x0| t0 = div(2.0, x0); mul(t0, 3)"),
        (lambda x: 1 + (2 * -x), 1, "|x0| t0 = neg(x0); t1 = mul(2, t0); add(1, t1)"),
        (lambda x: (x < 0).select(x * 0.1, x), 1, "|x0| t0 = lt(x0, 0); t1 = mul(x0, 0.1); select(t0, t1, x0)"),
        (lambda x, y: x > y, 2, "|x0, x1| lt(x1, x0)"),
        (lambda x: (x > 0).and_(x >= 2), 1, "|x0| t0 = lt(0, x0); t1 = le(2, x0); and(t0, t1)"),
        (
            lambda x, y: (x >= y).or_(x <= 3).not_(),
            2,
            "|x0, x1| t0 = le(x1, x0); t1 = le(x0, 3); t2 = or(t0, t1); not(t2)",
        ),
        (lambda x, y: x == y, 2, "|x0, x1| eq(x0, x1)"),
        (lambda x: x.convert(F16), 1, "|x0| convert[float16](x0)"),
        (lambda x: x.exp() / (x.exp() + 1), 1, "|x0| t0 = exp(x0); t1 = add(t0, 1); div(t0, t1)"),
        (lambda x: x.select(True, False), 1, "|x0| select(x0, true, false)"),
    ],
)
def test_python_becomes_steps(function: Callable[..., Expr], arity: int, text: str) -> None:
    assert str(Formula.trace(function, arity)) == text


def test_a_formula_computes_something() -> None:
    with pytest.raises(ModelError, match="must end with the step"):
        Formula.trace(lambda x: x, 1)
    with pytest.raises(ModelError, match="must end with the step"):
        Formula.trace(lambda x: [x * 2, x + 1][0], 1)


def test_only_primitives_are_methods() -> None:
    with pytest.raises(AttributeError, match="gelu"):
        Formula.trace(lambda x: x.gelu(), 1)
    with pytest.raises(TypeError, match="compared with str"):
        Formula.trace(lambda x: x == "a", 1)


def test_the_name_of_a_single_primitive() -> None:
    assert Formula.of("add").primitive == "add"
    assert Formula.trace(lambda x, y: y + x, 2).primitive is None
    assert Formula.trace(lambda x: x + 1, 1).primitive is None


def test_constants_are_told_apart_by_type_and_sign() -> None:
    values: list[Any] = [1, 1.0, True, 0.0, -0.0, float("nan"), float("inf")]
    assert len({Constant(value) for value in values}) == len(values)
    assert Constant(float("nan")) == Constant(float("nan"))


def typed(primitive: str, *kinds: str, target: str | None = None) -> str:
    formula = Formula.of(primitive, dtype(target) if target else None)
    return formula.result_dtype([dtype(kind) for kind in kinds]).name


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_primitive_takes_the_kinds_of_its_domain(name: str) -> None:
    row = PRIMITIVES[name]
    target = "float16" if row.signature == "convert" else None
    for kind, described in DTYPES.items():
        operands = {"select": ("bool", kind, kind), "power": (kind, "int8")}.get(row.signature, (kind,) * row.arity)
        if LETTERS[described.kind] in row.domain:
            expected = {"compare": "bool", "test": "bool", "convert": "float16"}.get(row.signature, kind)
            assert typed(name, *operands, target=target) == expected
        else:
            with pytest.raises(ModelError, match=f"is not defined for {kind}"):
                typed(name, *operands, target=target)


def test_types_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelError, match="one element type, found float32, float16"):
        typed("add", "float32", "float16")
    with pytest.raises(ModelError, match="select needs a bool condition, found int8"):
        typed("select", "int8", "float32", "float32")
    with pytest.raises(ModelError, match="constant arguments only"):
        Formula(0, (Step("add", (Constant(1), Constant(2))),)).result_dtype([])
    with pytest.raises(ModelError, match="convert needs a target type"):
        typed("convert", "int8")
    with pytest.raises(ModelError, match="a formula of 2 inputs is applied to 1"):
        typed("add", "int8")


def test_storage_types_of_every_step() -> None:
    formula = Formula.trace(lambda x: (x.convert(F32) < 0.5).select(x.isnan(), True).convert(I64), 1)
    assert formula.step_dtypes([F16]) == (F32, BOOL, BOOL, BOOL, I64)
