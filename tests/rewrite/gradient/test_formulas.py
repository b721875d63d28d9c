"""Derivatives of formulas: every primitive, corners, constants, mixed types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from argosy.errors import UnsupportedError
from argosy.frontends.onnx.formulas import sigmoid, softplus
from argosy.ir import Builder, Env, TensorType, Value
from argosy.ir.dtype import DTYPES, FLOAT32, FLOAT64, INT64, Array, DType
from argosy.ir.formula import Expr
from argosy.ir.interpreter import Interpreter
from argosy.ir.scalar import PRIMITIVES
from argosy.rewrite.gradient import gradients
from argosy.rewrite.gradient.scalar_rules import CHOICES, FLAT, SCALAR_RULES
from tests.rewrite.gradient.differences import check, numbers

INSIDE = np.linspace(-0.9, 0.9, 13)
POSITIVE = np.linspace(0.1, 4.0, 13)
DOMAINS: dict[str, Array] = {
    **dict.fromkeys(("asin", "acos", "atanh"), INSIDE),
    **dict.fromkeys(("sqrt", "log", "log1p"), POSITIVE),
    "acosh": POSITIVE + 1.05,
}
SMOOTH = sorted(set(SCALAR_RULES) | {"min", "max"})


def test_every_primitive_of_floats_has_a_rule_or_is_flat() -> None:
    floats = {
        name for name, row in PRIMITIVES.items() if "f" in row.domain and row.signature in ("same", "power", "select")
    }
    assert floats == FLAT | CHOICES | set(SCALAR_RULES)
    assert all(len(rules) == PRIMITIVES[name].arity for name, rules in SCALAR_RULES.items())


@pytest.mark.parametrize("name", [name for name in SMOOTH if PRIMITIVES[name].arity == 1])
def test_functions_of_one_variable(name: str) -> None:
    check(lambda b, x: b.pointwise(name, x), DOMAINS.get(name, np.linspace(-2.03, 2.1, 13)))


@pytest.mark.parametrize("name", [name for name in SMOOTH if PRIMITIVES[name].arity == 2])
def test_functions_of_two_variables(name: str) -> None:
    left = np.abs(numbers(3, 5)) + 0.1 if name == "pow" else numbers(3, 5) * 3
    check(lambda b, x, y: b.pointwise(name, x, y), left, numbers(3, 5, seed=1))
    check(lambda b, x, y: b.pointwise(name, x, y), left, numbers(5, seed=2))
    check(lambda b, x: b.pointwise(lambda x: x.apply(name, 1.5), x), left)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, -1.0, 0.5])
def test_constant_exponents(exponent: float) -> None:
    check(lambda b, x: b.pointwise(lambda x: x.pow(exponent), x), POSITIVE)


def test_constants_on_the_left() -> None:
    check(lambda b, x: b.pointwise(lambda x: 2.0 / x - (3.0 - x) * (0.5 + x), x), POSITIVE)

    def powers(x: Expr) -> Expr:
        one = x * 0.0 + 1.0
        return (one * 2.0).pow(x)

    check(lambda b, x: b.pointwise(powers, x), INSIDE)


@pytest.mark.parametrize("name", sorted(FLAT))
def test_steps_have_no_slope(name: str) -> None:
    check(lambda b, x: b.pointwise(name, x), np.array([-1.4, -0.3, 0.2, 2.7]))


def test_choices_and_long_formulas() -> None:
    check(lambda b, x, y: b.pointwise(lambda x, y: (x < y).select(x * y, x - y), x, y), numbers(9), numbers(9, seed=1))

    def long(x: Expr, y: Expr) -> Expr:
        shared = (x * y).tanh()
        return shared * shared.exp() / (shared + 2.0) + x.sin() * shared

    check(lambda b, x, y: b.pointwise(long, x, y), numbers(4, 3), numbers(3, seed=1))


def gradient(make: Callable[..., Value], x: Array, kind: DType = FLOAT64) -> Any:
    """The gradient of the sum of what `make` computes from `x`."""
    builder = Builder()
    value = builder.parameter("x", TensorType(kind, x.shape))
    (found,) = gradients(builder, make(builder, value), [value])
    return Interpreter(builder.module({"g": found})).run([x.astype(kind.numpy)], Env())[0]


def test_corners() -> None:
    zero = np.zeros(1)
    assert gradient(lambda b, x: b.pointwise(lambda x: x.max(0.0), x), zero) == 0.0
    assert gradient(lambda b, x: b.pointwise(lambda x: x.min(0.0), x), zero) == 0.0
    assert gradient(lambda b, x: b.pointwise("max", x, x), zero) == 1.0
    assert gradient(lambda b, x: b.pointwise("abs", x), zero) == 0.0
    assert gradient(lambda b, x: b.pointwise(lambda x: x.pow(x * 0.0), x), zero) == 0.0
    assert gradient(lambda b, x: b.pointwise("pow", b.constant(np.zeros(1)), x), np.ones(1)) == 0.0


FAR = np.array([-1e4, -1000.0, -3.0, 0.0, 3.0, 1000.0, 1e4])


def logistic(x: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -x))


ACTIVATIONS: dict[str, tuple[Callable[[Expr], Expr], Callable[[Array], Array]]] = {
    "sigmoid": (sigmoid, lambda x: logistic(x) * logistic(-x)),
    "softplus": (softplus, logistic),
    "softsign": (lambda x: x / (x.abs() + 1.0), lambda x: 1.0 / (1.0 + np.abs(x)) ** 2),
    "elu": (lambda x: (x < 0.0).select(x.expm1(), x), lambda x: np.exp(np.minimum(x, 0.0))),
    "celu": (lambda x: x.max(0.0) + ((x / 2.0).expm1() * 2.0).min(0.0), lambda x: np.exp(np.minimum(x, 0.0) / 2.0)),
    "relu": (lambda x: x.max(0.0), lambda x: (x > 0.0).astype(np.float64)),
    "a branch of two": (
        lambda x: (x < 0.0).select((x > -5.0).select(x * x, x.sqrt()), x.exp().log1p()),
        lambda x: np.where(x < 0, np.where(x > -5, 2 * x, np.nan), np.where(x < 700, logistic(x), np.nan)),
    ),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_where_they_bend_and_far_out(name: str) -> None:
    """What overflows in a branch that is not taken leaves no trace; corners that cancel in the function do so here."""
    formula, expected = ACTIVATIONS[name]
    with np.errstate(all="ignore"):
        found = gradient(lambda b, x: b.pointwise(formula, x), FAR)
        np.testing.assert_allclose(found, expected(FAR), rtol=1e-12, atol=1e-300)


def test_types_and_conversions() -> None:
    """X³ in float16 through float32 and an integer beside it; the gradient has the type of x."""
    x = np.array([0.5, 1.5, 2.0])

    def cubed(b: Builder, x: Value) -> Value:
        wide = b.convert(x, FLOAT32)
        return b.pointwise(lambda w, e: w.pow(e), wide, b.constant(3, INT64))

    found = gradient(cubed, x, DTYPES["float16"])
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, 3 * x * x, rtol=1e-3)
    assert not gradient(lambda b, x: b.convert(b.convert(x, INT64), FLOAT64), x).any()
    check(lambda b, x, e: b.pointwise("pow", x, b.convert(e, FLOAT64)), x, np.array(1.5))


def test_formulas_of_complex_numbers_are_refused() -> None:
    def squared(b: Builder, x: Value) -> Value:
        return b.convert(b.pointwise(lambda z: z * z, b.convert(x, DTYPES["complex64"])), FLOAT64)

    with pytest.raises(UnsupportedError, match="pointwise has no derivative here: it holds convert of complex numbers"):
        gradient(squared, np.ones(2))
