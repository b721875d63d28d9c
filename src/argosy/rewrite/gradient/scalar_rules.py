"""The derivatives of the scalar primitives.

A rule takes what it names of the gradient `g` of the value, the value `y` itself, and the arguments: `x`, or `a`
and `b`. It gives the gradient of one argument. Where a function has a corner, that is
the gradient on one of its sides, or one between them:

- a lone |x| has 0 at 0, a lone max(x, c) 0 at c: L1 norms and rectifiers rest there;
- in longer formulas both have the slope of their right side, so that corners at one place cancel as they do in the
  function itself: sigmoid and softplus are made of |x|, max(x, 0) and x < 0, and have no corner;
- of two equal arguments of `min` and `max` each gets half;
- a step (`sign`, `floor`, `ceil`, `round`) has 0 everywhere.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from argosy.ir.formula import Constant, Expr

__all__ = ["CHOICES", "FLAT", "SCALAR_RULES", "ScalarRule", "choices", "scalar_gradient"]

ScalarRule: TypeAlias = Callable[..., Expr]

CHOICES: Final = frozenset({"min", "max", "select"})
"""Primitives that give one of their arguments."""
FLAT: Final = frozenset({"sign", "floor", "ceil", "round"})
"""Primitives of floats whose derivative is 0 where there is one."""


def _number(x: Expr) -> float | None:
    """The constant that an expression is, or None."""
    return float(x.ref.value) if isinstance(x.ref, Constant) else None


def choices(primitive: str, place: int, args: Sequence[Expr], *, lone: bool) -> Sequence[tuple[Expr, float]]:
    """When argument `place` of a primitive that chooses one is that one, and the share of the gradient it gets then."""
    if primitive == "select":
        return [(args[0] if place == 1 else args[0].not_(), 1.0)]
    own, other = args[place], args[1 - place]
    if _number(other) is None:
        return [(own < other if primitive == "min" else own > other, 1.0), (own == other, 0.5)]
    if primitive == "max":
        return [(own > other if lone else own >= other, 1.0)]
    return [(own < other, 1.0)]


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
    "expm1": (lambda g, x: g * x.exp(),),
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
    "pow": (_power_base, _power_exponent),
}
"""Of each primitive of floats that is not flat and chooses none of its arguments, the rules of these."""

_NAMES: Final = ((), ("x",), ("a", "b"))


def scalar_gradient(primitive: str, place: int, g: Expr, y: Expr, args: Sequence[Expr]) -> Expr:
    """The gradient of argument `place` of a primitive."""
    rule = SCALAR_RULES[primitive][place]
    given = {"g": g, "y": y, **dict(zip(_NAMES[len(args)], args, strict=True))}
    return rule(**{name: given[name] for name in inspect.signature(rule).parameters})
