"""The derivatives of the scalar primitives.

A rule takes what it names of the gradient `g` of the value, the value `y` itself, and the arguments: `x`, or `a` and
`b`, or the condition `c`, `a` and `b`. It gives the gradient of one argument. Where a function has a corner, that is
the gradient on one of its sides, or one between them:

- sign(0) = 0 is that of |x| at 0;
- of `min` and `max`, the chosen argument gets all; of two equal ones each gets half, and an equal constant takes all
  of it, so that max(x, 0) has 0 at 0;
- a step (`sign`, `floor`, `ceil`, `round`) has 0 everywhere.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from argosy.ir.formula import Constant, Expr

__all__ = ["FLAT", "SCALAR_RULES", "ScalarRule", "scalar_gradient"]

ScalarRule: TypeAlias = Callable[..., Expr]

FLAT: Final = frozenset({"sign", "floor", "ceil", "round"})
"""Primitives of floats whose derivative is 0 where there is one."""


def _number(x: Expr) -> float | None:
    """The constant that an expression is, or None."""
    return float(x.ref.value) if isinstance(x.ref, Constant) else None


def _chosen(less: str) -> tuple[ScalarRule, ScalarRule]:
    """The rules of min (`lt`) and max (`gt`)."""

    def gradient(g: Expr, own: Expr, other: Expr) -> Expr:
        wins = own < other if less == "lt" else own > other
        if _number(other) is not None:
            return wins.select(g, 0.0)
        return wins.select(g, (own == other).select(g * 0.5, 0.0))

    def first(g: Expr, a: Expr, b: Expr) -> Expr:
        return gradient(g, a, b)

    def second(g: Expr, a: Expr, b: Expr) -> Expr:
        return gradient(g, b, a)

    return first, second


def _power_base(g: Expr, a: Expr, b: Expr) -> Expr:
    """B a^(b - 1); 0 for b = 0, whatever a is."""
    number = _number(b)
    if number is not None:
        if number in (0.0, 1.0):
            return g * number
        return g * (a if number == 2.0 else a.pow(number - 1.0)) * number
    return (b == 0.0).select(0.0, g * b * a.pow(b - 1.0))


def _power_exponent(g: Expr, y: Expr, a: Expr) -> Expr:
    """A^b log(a), which goes to 0 with a."""
    number = _number(a)
    if number is not None:
        return g * y * (math.log(number) if number > 0.0 else 0.0 if number == 0.0 else math.nan)
    return (a == 0.0).select(0.0, g * y * a.log())


def _remainder_divisor(g: Expr, y: Expr, a: Expr, b: Expr) -> Expr:
    """Minus the whole quotient, which is (a - y) / b."""
    return -(g * ((a - y) / b).round())


_ROOT: Final = 2.0 / math.sqrt(math.pi)

SCALAR_RULES: Final[dict[str, tuple[ScalarRule, ...]]] = {
    "neg": (lambda g: -g,),
    "abs": (lambda g, x: g * x.sign(),),
    "sqrt": (lambda g, y: g / (y * 2.0),),
    "exp": (lambda g, y: g * y,),
    "expm1": (lambda g, y: g * (y + 1.0),),
    "log": (lambda g, x: g / x,),
    "log1p": (lambda g, x: g / (x + 1.0),),
    "sin": (lambda g, x: g * x.cos(),),
    "cos": (lambda g, x: -(g * x.sin()),),
    "tan": (lambda g, y: g * (y * y + 1.0),),
    "asin": (lambda g, x: g / ((1.0 - x) * (x + 1.0)).sqrt(),),
    "acos": (lambda g, x: -(g / ((1.0 - x) * (x + 1.0)).sqrt()),),
    "atan": (lambda g, x: g / (x * x + 1.0),),
    "sinh": (lambda g, x: g * x.cosh(),),
    "cosh": (lambda g, x: g * x.sinh(),),
    "tanh": (lambda g, y: g * ((1.0 - y) * (y + 1.0)),),
    "asinh": (lambda g, x: g / (x * x + 1.0).sqrt(),),
    "acosh": (lambda g, x: g / ((x - 1.0) * (x + 1.0)).sqrt(),),
    "atanh": (lambda g, x: g / ((1.0 - x) * (x + 1.0)),),
    "erf": (lambda g, x: g * (-(x * x)).exp() * _ROOT,),
    "add": (lambda g: g, lambda g: g),
    "sub": (lambda g: g, lambda g: -g),
    "mul": (lambda g, b: g * b, lambda g, a: g * a),
    "div": (lambda g, b: g / b, lambda g, y, b: -(g * y / b)),
    "mod": (lambda g: g, _remainder_divisor),
    "fmod": (lambda g: g, _remainder_divisor),
    "min": _chosen("lt"),
    "max": _chosen("gt"),
    "pow": (_power_base, _power_exponent),
    "select": (
        lambda g: g,  # the condition is no float, so nobody asks
        lambda g, c: c.select(g, 0.0),
        lambda g, c: c.select(0.0, g),
    ),
}
"""Of each primitive of floats that is not flat, the rules of its arguments."""

_NAMES: Final = ((), ("x",), ("a", "b"), ("c", "a", "b"))


def scalar_gradient(primitive: str, place: int, g: Expr, y: Expr, args: Sequence[Expr]) -> Expr:
    """The gradient of argument `place` of a primitive."""
    rule = SCALAR_RULES[primitive][place]
    given = {"g": g, "y": y, **dict(zip(_NAMES[len(args)], args, strict=True))}
    return rule(**{name: given[name] for name in inspect.signature(rule).parameters})
