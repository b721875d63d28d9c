"""What tests of float operations are made of: sources with every edge of a type, exact rounding, and comparison."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from argosy.emulation.semantics import load_semantics
from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import OPERATIONS, width

__all__ = ["FORMS", "SMALLEST", "agree", "by_lane", "flushed", "fused", "nearest", "same", "sources_of", "values"]

load_semantics()

FORMS: dict[str, Any] = {
    "f16": (np.float16, np.uint16),
    "f32": (np.float32, np.uint32),
    "f64": (np.float64, np.uint64),
}
SMALLEST = {"f16": 2.0**-14, "f32": 2.0**-126, "f64": 2.0**-1022}
"""The smallest number that is not subnormal."""
_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, 1.5, np.inf, -np.inf, np.nan, 6.1e-5, 1e-7, 65504.0, 1e-40, 3e38,
          32767.5, -32768.5, 65535.5, 2.0**31, -(2.0**31), 2.0**32, -1e-7)  # fmt: skip
_INTEGERS = (0, 1, 2, 7, 15, 16, 31, 32, 63, 64, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
             0xFFFFFFFF, 0xFFFFFF80, 0xFFFFFFF0)  # fmt: skip
_PLAIN = {
    "mix": "f32", "mixb": "f32", "high": "f16", "high16": "u16", "pf16": "f16", "pf32": "f32", "pbf16": "u16",
    "pu16": "u16", "pi16": "i16", "pb32": "u32",
}  # fmt: skip
"""What values of a type of the table are read as, where that is not its name."""


def values(kind: str, seed: int, count: int = 400) -> NDArray[Any]:
    """Edges of a type, usual numbers and arbitrary patterns of its bits."""
    random = np.random.default_rng(seed)
    if kind in ("mask", "scc"):
        return random.random(count) < 0.5
    if kind == "pbf16":
        return (values("f32", seed, count).view(np.uint32) >> 16).astype(np.uint16)
    kind = _PLAIN.get(kind, kind)
    if kind not in FORMS:
        raw = np.dtype(f"u{width(kind) // 8}")
        edges = np.array(_INTEGERS, np.uint64).astype(raw)
        patterns = random.integers(0, np.iinfo(raw).max, count, dtype=raw, endpoint=True)
        return np.where(random.random(count) < 0.5, random.choice(edges, count), patterns).view(TYPES[kind])
    form, raw = FORMS[kind]
    patterns = random.integers(0, np.iinfo(raw).max, count, dtype=raw, endpoint=True).view(form)
    usual = random.standard_normal(count) * 2.0 ** random.integers(-20, 20, count)
    with np.errstate(over="ignore"):
        sorts = [each.astype(form) for each in (random.choice(_EDGES, count), usual)]
    chosen = random.random(count)
    return np.select([chosen < 0.4, chosen < 0.7], sorts, patterns).astype(form)


def sources_of(name: str, count: int = 400) -> list[NDArray[Any]]:
    """Values for each source of an operation."""
    seed = sum(map(ord, name))
    return [values(kind, 7 + place + seed, count) for place, kind in enumerate(OPERATIONS[name].sources)]


def agree(name: str, expected: Callable[..., Any], sources: list[NDArray[Any]] | None = None) -> None:
    """Compare an operation with a function of the same sources: bit for bit, but for what is no number.

    Of what lies side by side in a register the function gives an array with one axis more.
    """
    operation = OPERATIONS[name]
    given = sources_of(name) if sources is None else sources
    with np.errstate(all="ignore"):
        found, meant = operation.meaning(*given), expected(*given)
    kinds = ("f32", "f32") if operation.results == ("pair",) else operation.results
    found, meant = (each if isinstance(each, tuple) else (each,) for each in (found, meant))
    assert len(found) == len(meant)
    for kind, one, other in zip(kinds * len(found), found, meant, strict=False):
        form = TYPES[_PLAIN.get(kind, kind)]
        if np.ndim(other) == 2:
            same(np.ascontiguousarray(one.astype(form)).view(other.dtype).reshape(other.shape), other)
            continue
        same(*(np.broadcast_to(np.asarray(each), given[0].shape).astype(form) for each in (one, other)))


def same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Whether two arrays are the same, bit for bit, but for what is no number."""
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected)
        return
    with np.errstate(invalid="ignore"):  # of NaN that signal
        numbers, others = (~np.isnan(each.astype(np.float64)) for each in (expected, found))
    np.testing.assert_array_equal(others, numbers)
    raw = f"u{found.itemsize}"
    np.testing.assert_array_equal(found[numbers].view(raw), expected[numbers].view(raw))


def by_lane(function: Callable[..., Any], form: Any) -> Callable[..., Any]:
    """A function of numbers on arrays."""
    return np.vectorize(function, otypes=[form])


def nearest(exact: Fraction, form: Any) -> Any:
    """A fraction in a float type, to the nearest and of two the even one."""
    info = ml_dtypes.finfo(form)  # type: ignore[no-untyped-call]
    size = abs(exact)
    if not size:
        return form(0)
    power = size.numerator.bit_length() - size.denominator.bit_length()
    power -= size < Fraction(2) ** power
    step = Fraction(2) ** (max(power, int(info.minexp)) - int(info.nmant))
    rounded = round(size / step) * step
    if rounded > Fraction(float(info.max)):
        return form(np.inf if exact > 0 else -np.inf)
    return form(float(rounded) if exact > 0 else -float(rounded))


def fused(first: float, second: float, third: float, form: Any) -> Any:
    """The nearest value to a product and a sum, rounded once, by fractions."""
    if not (np.isfinite(first) and np.isfinite(second)):
        return form(first * second + third)
    if not np.isfinite(third):
        return form(third)
    product = Fraction(first) * Fraction(second)
    exact = product + Fraction(third)
    if exact == 0:  # of zeros by their signs, of what cancels +0
        return form(first * second + third) if product == 0 else form(0)
    return nearest(exact, form)


def flushed(value: NDArray[Any]) -> NDArray[Any]:
    """With zero, of the same sign, for subnormal numbers."""
    return np.where(np.abs(value) < np.finfo(value.dtype).tiny, np.copysign(value.dtype.type(0), value), value)
