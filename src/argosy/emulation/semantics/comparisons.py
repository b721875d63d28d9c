"""Comparisons: a bit of a mask for each lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from argosy.emulation.semantics.arithmetic import bits, is_nan
from argosy.emulation.semantics.table import operation

_ORDERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_INTEGER: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **_ORDERS,
    "ne": lambda a, b: a != b,
    "f": lambda a, b: (a != a) & (b != b),  # noqa: PLR0124 - no integer is
    "t": lambda a, b: (a == a) | (b == b),  # noqa: PLR0124 - every integer is
}
_FLOAT: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **_ORDERS,
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: ~(is_nan(a) | is_nan(b)),
    "u": lambda a, b: is_nan(a) | is_nan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: ~(a == b),
    "nlt": lambda a, b: ~(a < b),
}
_FIELDS: Final = {"f16": (10, 5), "f32": (23, 8), "f64": (52, 11)}
"""Bits of a float's fraction and of its exponent."""


def _class(kind: str) -> Callable[[Any, Any], Any]:
    """Whether a float is of one of ten classes; bit i of `wanted` asks for class i."""
    fractions, exponents = _FIELDS[kind]
    top = (1 << exponents) - 1

    def meaning(a: Any, wanted: Any) -> Any:
        pattern = bits(a, f"u{kind[1:]}")
        fraction, power = pattern & ((1 << fractions) - 1), (pattern >> fractions) & top
        negative = (pattern >> (fractions + exponents)) == 1
        nan, quiet = (power == top) & (fraction != 0), (fraction >> (fractions - 1)) == 1
        infinite, zero = (power == top) & (fraction == 0), (power == 0) & (fraction == 0)
        subnormal, normal = (power == 0) & (fraction != 0), (power != 0) & (power != top)
        classes = (
            nan & ~quiet, nan & quiet,
            negative & infinite, negative & normal, negative & subnormal, negative & zero,
            ~negative & zero, ~negative & subnormal, ~negative & normal, ~negative & infinite,
        )  # fmt: skip
        found = classes[0] & ((wanted & 1) == 1)
        for place, each in enumerate(classes):
            found = found | (each & (((wanted >> place) & 1) == 1))
        return found

    return meaning


for _kind in ("i16", "u16", "i32", "u32", "i64", "u64"):
    for _name, _order in _INTEGER.items():
        operation(f"v_cmp_{_name}_{_kind}", "mask", f"{_kind} {_kind}")(_order)
for _kind in ("f16", "f32", "f64"):
    for _name, _order in _FLOAT.items():
        operation(f"v_cmp_{_name}_{_kind}", "mask", f"{_kind} {_kind}")(_order)
    operation(f"v_cmp_class_{_kind}", "mask", f"{_kind} u32")(_class(_kind))
