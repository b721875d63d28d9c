"""Conversions between element types: those that change nothing, and chains of two."""

from __future__ import annotations

from typing import Final

from argosy.ir.builder import Builder
from argosy.ir.dtype import DType
from argosy.ir.module import Value
from argosy.rewrite.pattern import any_, pointwise
from argosy.rewrite.rule import Rewritten, RuleSet, rule

__all__ = ["RULES", "holds"]

_PRECISION: Final = {
    "float64": (53, 1023, -1074), "float32": (24, 127, -149), "bfloat16": (8, 127, -133), "float16": (11, 15, -24),
    "float8_e5m2": (3, 15, -16), "float8_e5m2fnuz": (3, 15, -17), "float8_e4m3fn": (4, 8, -9),
    "float8_e4m3fnuz": (4, 7, -10), "float4_e2m1fn": (2, 2, -1),
}  # fmt: skip
"""Bits of the significand, greatest exponent, exponent of the least subnormal number."""

_SPECIALS: Final = ("float64", "float32", "bfloat16", "float16", "float8_e5m2")
"""Floats with infinities, NaN and -0: those that any other's special values survive in."""


def holds(wide: DType, narrow: DType) -> bool:
    """Whether `wide` represents every value of `narrow`, specials and signed zeros included."""
    if wide is narrow:
        return True
    if narrow.kind == "bool":
        return wide.is_integer or wide.name in _PRECISION
    if narrow.is_integer and wide.is_integer:
        if narrow.kind == wide.kind:
            return wide.bits >= narrow.bits
        return narrow.kind == "uint" and wide.bits > narrow.bits
    if wide.name not in _PRECISION:
        return False
    precision, top, least = _PRECISION[wide.name]
    if narrow.is_integer:
        return precision >= narrow.bits - (narrow.kind == "int") and top >= narrow.bits
    if narrow.name not in _PRECISION or wide.name not in _SPECIALS:
        return False
    inner = _PRECISION[narrow.name]
    return precision >= inner[0] and top >= inner[1] and least <= inner[2]


@rule(pointwise("convert", any_("x")).bind("root"))
def convert_to_same(root: Value, x: Value) -> Rewritten:
    """convert(x) = x where the type stays"""
    return x if root.dtype is x.dtype else None


@rule(pointwise("convert", pointwise("convert", any_("x")).bind("inner")).bind("root"))
def convert_once(build: Builder, root: Value, inner: Value, x: Value) -> Rewritten:
    """convert(convert(x)) = convert(x), where the inner conversion loses nothing that the outer one keeps

    Either the type between holds every value of the first, so that the outer conversion sees the same
    number; or all three are integers, none wider than the one before, and wrapping twice is wrapping once.
    """
    first, between, last = x.dtype, inner.dtype, root.dtype
    narrows = all(kind.is_integer for kind in (first, between, last)) and first.bits >= between.bits >= last.bits
    if holds(between, first) or narrows:
        return build.convert(x, last)
    return f"{between} does not hold every {first}"


RULES = RuleSet.collect(vars())
