"""Algebra on numbers: identities of the scalar primitives that hold for every bit pattern.

Floats are IEEE 754: NaN is not distinguished from NaN, -0 is distinguished from +0, infinities count.
Integers wrap. A rule that does not hold for one of these says for which element types it does. What
reassociates floats, or is right "but for rounding", is not here.
"""

from __future__ import annotations

import math
from typing import Any, Final

from argosy.ir.builder import Builder
from argosy.ir.dtype import DType
from argosy.ir.literal import Literal
from argosy.ir.module import Value
from argosy.ops.pointwise import Pointwise
from argosy.ops.view import Broadcast
from argosy.rewrite.pattern import any_, constant, op_of, pointwise
from argosy.rewrite.rule import Rewritten, RuleSet, rule

__all__ = ["RULES"]

_REAL: Final = ("float", "int", "uint")


def _item(value: Value) -> Any:
    """The number that a uniform constant holds everywhere."""
    literal = value.constant
    return None if literal is None else literal.item()


def _is(value: Value, number: float) -> bool:
    """Whether a uniform constant is `number`, the sign of a zero included; never for complex and strings."""
    found = _item(value)
    if value.dtype.kind not in _REAL or found != number:
        return False
    return not value.dtype.is_float or math.copysign(1, float(found)) == math.copysign(1, number)


def _primitive(value: Value) -> str:
    return op_of(value, Pointwise).formula.primitive or ""


def _filled(build: Builder, number: float, like: Value) -> Value:
    """`number` in the type and shape of `like`."""
    sizes = tuple(dim for dim in like.shape if isinstance(dim, int))
    if len(sizes) == like.rank:
        return build.constant(Literal.splat(number, like.dtype, sizes))
    return build.add(Broadcast(like.shape), build.constant(Literal.splat(number, like.dtype, ())))


@rule(pointwise("add", any_("x"), constant("c", uniform=True)))
def add_zero(x: Value, c: Value) -> Rewritten:
    """x + -0 = x, and for integers x + 0 = x

    A float +0 is no neutral element: -0 + +0 is +0.
    """
    if _is(c, -0.0 if c.dtype.is_float else 0):
        return x
    return "the summand is +0, and -0 + +0 is +0" if _is(c, 0.0) else None


@rule(pointwise("sub", any_("x"), constant("c", uniform=True)))
def subtract_zero(x: Value, c: Value) -> Rewritten:
    """x - 0 = x

    Also for x = -0, since -0 - +0 is -0; but not for -0 taken away, since -0 - -0 is +0.
    """
    if _is(c, 0.0):
        return x
    return "what is subtracted is -0, and -0 - -0 is +0" if _is(c, -0.0) else None


@rule(pointwise("mul", any_("x"), constant("c", uniform=True)))
def multiply_by_one(x: Value, c: Value) -> Rewritten:
    """x * 1 = x

    IEEE: the product is exact, NaN stays NaN, zeros and infinities keep their sign.
    """
    return x if _is(c, 1) else None


@rule(pointwise("div", any_("x"), constant("c", uniform=True)))
def divide_by_one(x: Value, c: Value) -> Rewritten:
    """x / 1 = x

    IEEE: the quotient is exact; integers truncate nothing.
    """
    return x if _is(c, 1) else None


@rule(pointwise("div", any_("x"), constant("c", uniform=True)))
def divide_by_power_of_two(build: Builder, x: Value, c: Value) -> Rewritten:
    """x / 2^k = x * 2^-k

    For floats, where 2^-k is a normal number of the type: both sides round the same real number once.
    """
    if not c.dtype.is_float:
        return None
    divisor = float(_item(c))
    if not math.isfinite(divisor) or abs(math.frexp(divisor)[0]) != 0.5:
        return None
    inverse = Literal.splat(1 / divisor, c.dtype, c.constant.shape if c.constant is not None else ())
    exact = float(inverse.item()) * divisor == 1 and abs(1 / divisor) >= _least_normal(c.dtype)
    return build.pointwise("mul", x, build.constant(inverse)) if exact else "its inverse is not a normal number"


def _least_normal(element: DType) -> float:
    """A bound at or above the least normal number of the type."""
    return {"float64": 2.0**-1022, "float32": 2.0**-126, "bfloat16": 2.0**-126, "float16": 2.0**-14}.get(
        element.name, 1.0
    )


@rule(pointwise("mul", any_("x"), constant("c", uniform=True)))
def multiply_by_minus_one(build: Builder, x: Value, c: Value) -> Rewritten:
    """x * -1 = -x

    Exact in IEEE; of integers, the least value stays itself on both sides.
    """
    return build.pointwise("neg", x) if _is(c, -1) else None


@rule(pointwise("mul", any_("x"), constant("c", uniform=True)).bind("root"))
def multiply_by_zero(build: Builder, root: Value, c: Value) -> Rewritten:
    """x * 0 = 0 for integers

    Floats: NaN and infinities give NaN, negative numbers -0.
    """
    if not _is(c, 0) and not _is(c, -0.0):
        return None
    return _filled(build, 0, root) if root.dtype.is_integer else "a float times zero may be NaN or -0"


@rule(pointwise("sub", any_("x"), any_("x")).bind("root"))
def subtract_itself(build: Builder, root: Value, x: Value) -> Rewritten:
    """x - x = 0 for integers

    Floats: NaN and infinities give NaN.
    """
    return _filled(build, 0, root) if x.dtype.is_integer else "NaN and infinities give NaN"


@rule(pointwise("neg|not|bitnot", pointwise("neg|not|bitnot", any_("x")).bind("inner")).bind("root"))
def cancel_involution(root: Value, inner: Value, x: Value) -> Rewritten:
    """f(f(x)) = x for neg, not, bitnot

    neg flips the sign bit, or is a two's complement, twice; the least integer is its own negative.
    """
    return x if _primitive(root) == _primitive(inner) else None


@rule(pointwise("abs", pointwise("abs|neg", any_("x")).bind("inner")))
def absorb_sign(build: Builder, inner: Value, x: Value) -> Rewritten:
    """abs(abs(x)) = abs(x), abs(-x) = abs(x) for signed types

    The least integer is its own absolute value and its own negative. An unsigned -x wraps to 2^n - x.
    """
    if x.dtype.kind == "uint" and _primitive(inner) == "neg":
        return "unsigned negation wraps"
    return build.pointwise("abs", x)


@rule(pointwise("floor|ceil|round", pointwise("floor|ceil|round", any_()).bind("inner")))
def round_once(inner: Value) -> Rewritten:
    """round(round(x)) = round(x), for any two of floor, ceil, round

    The inner result is integral, NaN or infinite already, and keeps the sign of zero.
    """
    return inner


@rule(pointwise("sign", pointwise("sign", any_()).bind("inner")))
def take_sign_once(inner: Value) -> Rewritten:
    """sign(sign(x)) = sign(x)

    The values -1, 0, 1 and NaN are their own signs.
    """
    return inner


@rule(pointwise("add", any_("x"), pointwise("neg", any_("y"))))
def add_negative(build: Builder, x: Value, y: Value) -> Rewritten:
    """x + -y = x - y

    IEEE defines subtraction so; integers wrap alike.
    """
    return build.pointwise("sub", x, y)


@rule(pointwise("sub", any_("x"), pointwise("neg", any_("y"))))
def subtract_negative(build: Builder, x: Value, y: Value) -> Rewritten:
    """x - -y = x + y

    As in `add_negative`.
    """
    return build.pointwise("add", x, y)


@rule(pointwise("mul|div", pointwise("neg", any_("x")), pointwise("neg", any_("y"))).bind("root"))
def cancel_negatives(build: Builder, root: Value, x: Value, y: Value) -> Rewritten:
    """-x * -y = x * y, -x / -y = x / y

    IEEE: the magnitude does not depend on signs, and the signs cancel, also of zeros and infinities. Integer
    products are equal modulo 2^n; integer quotients are not, where the negative of the least value wraps.
    """
    if _primitive(root) == "div" and not root.dtype.is_float:
        return "the negative of the least integer wraps"
    return build.pointwise(_primitive(root), x, y)


@rule(pointwise("pow", any_("x"), constant("c", uniform=True)))
def raise_to_one(x: Value, c: Value) -> Rewritten:
    """x ^ 1 = x

    C's pow returns its base, NaN and -0 included.
    """
    return x if _is(c, 1) else None


@rule(pointwise("pow", any_("x"), constant("c", uniform=True)), exact=False)
def square(build: Builder, x: Value, c: Value) -> Rewritten:
    """x ^ 2 = x * x

    The product is correctly rounded, which C's pow only nearly is (under an ulp); specials agree: NaN gives
    NaN, infinities +inf, zeros +0. Integers wrap alike.
    """
    if not _is(c, 2):
        return None
    return build.pointwise("mul", x, x) if c.rank == 0 or c.rank <= x.rank else "the exponent has a higher rank"


@rule(
    pointwise(
        "add|mul|min|max|bitand|bitor|bitxor|and|or|xor",
        pointwise("add|mul|min|max|bitand|bitor|bitxor|and|or|xor", any_("x"), constant("a")).bind("inner"),
        constant("b"),
    ).bind("root")
)
def merge_constants(build: Builder, root: Value, inner: Value, x: Value, a: Value, b: Value) -> Rewritten:
    """(x ∘ a) ∘ b = x ∘ (a ∘ b) for associative ∘

    Integer sums and products are associative modulo 2^n; min, max and bitwise operations always, with NaN
    winning on either side. Float sums and products are not associative and stay.
    """
    primitive = _primitive(root)
    if primitive != _primitive(inner):
        return None
    if primitive in ("add", "mul") and not root.dtype.is_integer:
        return "float addition and multiplication do not associate"
    if not any(literal is not None and (literal.is_splat or literal.size == 1) for literal in (a.constant, b.constant)):
        return "both constants vary, and their combination may be larger than either"
    return build.pointwise(primitive, x, build.pointwise(primitive, a, b))


@rule(pointwise("min|max|and|or|bitand|bitor", any_("x"), any_("x")))
def combine_with_itself(x: Value) -> Rewritten:
    """x ∘ x = x for min, max, and, or, bitand, bitor

    NaN gives NaN; zeros keep their sign.
    """
    return x


@rule(pointwise("and|or|xor", any_("x"), constant("c", uniform=True)).bind("root"))
def combine_with_neutral(root: Value, x: Value, c: Value) -> Rewritten:
    """x and true = x, x or false = x, x xor false = x"""
    neutral = _primitive(root) == "and"
    return x if _item(c) is neutral else None


@rule(pointwise("select", any_("condition"), any_("x"), any_("x")))
def select_either(x: Value) -> Rewritten:
    """select(c, x, x) = x"""
    return x


@rule(pointwise("select", constant("condition", uniform=True), any_("x"), any_("y")))
def select_known(condition: Value, x: Value, y: Value) -> Rewritten:
    """select(true, x, y) = x, select(false, x, y) = y"""
    return x if _item(condition) else y


@rule(pointwise("select", pointwise("not", any_("condition")), any_("x"), any_("y")))
def select_other(build: Builder, condition: Value, x: Value, y: Value) -> Rewritten:
    """select(not c, x, y) = select(c, y, x)"""
    return build.pointwise("select", condition, y, x)


@rule(pointwise("not", pointwise("lt|le", any_("x"), any_("y")).bind("inner")))
def negate_comparison(build: Builder, inner: Value, x: Value, y: Value) -> Rewritten:
    """not (x < y) = y <= x, not (x <= y) = y < x for integers

    Floats: every comparison with NaN is false, so its negation is true.
    """
    if not x.dtype.is_integer:
        return "a comparison with NaN is false both ways"
    return build.pointwise("le" if _primitive(inner) == "lt" else "lt", y, x)


RULES = RuleSet.collect(vars())
