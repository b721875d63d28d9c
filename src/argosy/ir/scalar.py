"""The scalar vocabulary: what every pointwise computation is made of, with its edge rules.

A primitive has a *signature* that says which types go in and come out:

- `same`: all arguments have one type, and so has the result;
- `compare`: two arguments of one type, the result is bool;
- `test`: one argument of any type, the result is bool;
- `select`: bool, then two arguments of one type, which is the result's;
- `power`: base and exponent may differ; the result has the type of the base;
- `convert`: the result has the type that the step names.

`domain` says for which kinds of element the primitive is defined: n = any number, f = float,
i = integer, b = bool, c = complex, s = string (equality only). The edge rules are ONNX's where ONNX
states one, else IEEE 754; a target that prints a primitive in its own language must keep them.
"""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["PRIMITIVES", "Primitive"]


class Primitive(msgspec.Struct, frozen=True):
    """One scalar operation: arity, signature, element kinds it takes, and the rule for its edge cases."""

    name: str
    arity: int
    signature: str
    domain: str
    rule: str


_UNARY = (
    ("neg", "fic", "-x; signed integers wrap (the negative of the least value is itself), unsigned ones wrap"),
    ("abs", "fi", "|x|; abs(-0) = +0; the least signed integer stays itself; NaN stays NaN"),
    ("sign", "fi", "-1, 0 or 1; sign(±0) = 0; sign(NaN) = NaN"),
    ("floor", "f", "IEEE roundToIntegralTowardNegative; keeps -0, NaN and infinities"),
    ("ceil", "f", "IEEE roundToIntegralTowardPositive; keeps -0, NaN and infinities"),
    ("round", "f", "IEEE roundToIntegralTiesToEven; keeps -0, NaN and infinities"),
    ("sqrt", "f", "correctly rounded; sqrt(-0) = -0; NaN below zero"),
    ("exp", "f", "exp(-inf) = 0, exp(inf) = inf; overflow gives inf"),
    ("expm1", "f", "exp(x) - 1 without cancellation near zero"),
    ("log", "f", "log(0) = -inf; NaN below zero"),
    ("log1p", "f", "log(1 + x) without cancellation near zero"),
    ("sin", "f", "NaN at infinities"),
    ("cos", "f", "NaN at infinities"),
    ("tan", "f", "NaN at infinities"),
    ("asin", "f", "NaN outside [-1, 1]"),
    ("acos", "f", "NaN outside [-1, 1]"),
    ("atan", "f", "±pi/2 at infinities"),
    ("sinh", "f", "overflow gives inf"),
    ("cosh", "f", "overflow gives inf"),
    ("tanh", "f", "±1 at infinities"),
    ("asinh", "f", "keeps infinities"),
    ("acosh", "f", "NaN below 1"),
    ("atanh", "f", "±inf at ±1, NaN outside"),
    ("erf", "f", "±1 at infinities"),
)

_BINARY = (
    ("add", "fic", "IEEE; integers wrap"),
    ("sub", "fic", "IEEE; integers wrap"),
    ("mul", "fic", "IEEE; integers wrap"),
    ("div", "fic", "IEEE; integers truncate towards zero, x / 0 = 0, the least value / -1 wraps"),
    ("mod", "fi", "remainder with the sign of the divisor; integer x mod 0 = 0; float x mod 0 = NaN"),
    ("fmod", "fi", "remainder with the sign of the dividend (C fmod); integer x fmod 0 = 0; float x fmod 0 = NaN"),
    ("min", "fi", "NaN if either is NaN; min(-0, +0) may be either zero"),
    ("max", "fi", "NaN if either is NaN; max(-0, +0) may be either zero"),
    ("and", "b", "logical"),
    ("or", "b", "logical"),
    ("xor", "b", "logical"),
    ("bitand", "i", "bit by bit"),
    ("bitor", "i", "bit by bit"),
    ("bitxor", "i", "bit by bit"),
    ("shl", "i", "zeros come in; a shift by the width or more, or by less than nothing, gives 0"),
    ("shr", "i", "logical for unsigned, arithmetic for signed; out of range as for shl, gives what is left: 0 or -1"),
)

_COMPARE = (
    ("eq", "fibcs", "false if either is NaN; -0 equals +0"),
    ("lt", "fi", "false if either is NaN"),
    ("le", "fi", "false if either is NaN"),
)

PRIMITIVES: Final[dict[str, Primitive]] = {
    row.name: row
    for row in (
        *(Primitive(name, 1, "same", domain, rule) for name, domain, rule in _UNARY),
        *(Primitive(name, 2, "same", domain, rule) for name, domain, rule in _BINARY),
        *(Primitive(name, 2, "compare", domain, rule) for name, domain, rule in _COMPARE),
        Primitive(
            "pow",
            2,
            "power",
            "fi",
            "C pow; integers wrap, with a negative exponent they truncate towards zero; 0 to a negative one is 0",
        ),
        Primitive("not", 1, "same", "b", "logical"),
        Primitive("bitnot", 1, "same", "i", "bit by bit"),
        Primitive("isnan", 1, "test", "f", "true for NaN only"),
        Primitive("isinf", 1, "test", "f", "true for both infinities"),
        Primitive("select", 3, "select", "fibcs", "the second where the first is true, else the third; NaN passes"),
        Primitive(
            "convert",
            1,
            "convert",
            "fibc",
            "nearest even into floats; towards zero into integers, which wrap; non-finite into integers gives 0",
        ),
    )
}
