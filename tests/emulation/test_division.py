"""The three steps of a division against AMD's documents, and the whole of it against numpy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.semantics.table import OPERATIONS
from tests.emulation.floats import FORMS, SMALLEST, agree, by_lane, fused, nearest, same, sources_of

_LIMITS = {
    # the exponent's bias; what exponents are too far apart, and small; the step; where a quotient is lost
    "f16": (15, 0, 0, 0, 0),
    "f32": (127, 96, 23, 64, 150),
    "f64": (1023, 768, 53, 128, 1075),
}


def exponent(value: float, kind: str) -> int:
    """As the bits of a type hold it: 0 of zero and subnormal numbers, all ones of what is no finite number."""
    bias = _LIMITS[kind][0]
    if not math.isfinite(value):
        return 2 * bias + 1
    return 0 if abs(value) < SMALLEST[kind] else math.frexp(value)[1] - 1 + bias


def subnormal(value: float, kind: str) -> bool:
    return 0 < abs(value) < SMALLEST[kind]


def scale(value: float, below: float, above: float, kind: str) -> tuple[Any, bool]:
    """The denominator or the numerator moved out of the way, and whether the quotient is to be moved back.

    Where the reciprocal and the quotient are subnormal, the documents move the denominator up, beyond all numbers;
    hardware moves it down, by measurements on gfx1201 in the sources of other emulators.
    """
    form, (_, apart, tiny, step, _) = FORMS[kind][0], _LIMITS[kind]
    if below == 0 or above == 0:
        return form(np.nan), False
    quotient, inverse = (float(form(each) / form(below)) for each in (above, 1))
    moves, flag = 0, False
    if exponent(above, kind) - exponent(below, kind) >= apart:
        moves, flag = step * (value == below), True
    elif subnormal(below, kind):
        moves = step
    elif subnormal(inverse, kind) and subnormal(quotient, kind):
        moves, flag = -step * (value == below), True
    elif subnormal(inverse, kind):
        moves = -step
    elif subnormal(quotient, kind):
        moves, flag = step * (value == above), True
    elif exponent(above, kind) <= tiny:
        moves = step
    if not math.isfinite(value):
        return form(value), flag
    return nearest(Fraction(value) * Fraction(2) ** moves, form), flag


def moved_back(first: float, second: float, third: float, moved: bool, kind: str) -> Any:
    """A product and a sum, moved as far as v_div_scale moved, against where the quotient so far lies.

    The documents state another power of two; this is what hardware does, by tests of tinygrad on gfx1100.
    """
    form, (bias, _, _, step, _) = FORMS[kind][0], _LIMITS[kind]
    found = fused(first, second, third, form)
    if not moved or not np.isfinite(found) or found == 0:
        return found
    return nearest(Fraction(float(found)) * Fraction(2) ** (step if exponent(third, kind) > bias else -step), form)


def fixed(found: float, below: float, above: float, kind: str) -> Any:
    """The quotient's exceptions. Where it is no number but both others are, it grew beyond all."""
    lost = _LIMITS[kind][4]
    sign = math.copysign(1, below) * math.copysign(1, above)
    if (
        math.isnan(above)
        or math.isnan(below)
        or (below == 0 and above == 0)
        or (math.isinf(below) and math.isinf(above))
    ):
        return math.nan
    if below == 0 or math.isinf(above):
        return sign * math.inf
    if math.isinf(below) or above == 0:
        return sign * 0.0
    if lost and exponent(above, kind) - exponent(below, kind) < -lost:
        return sign * 0.0
    return sign * (math.inf if math.isnan(found) and lost else abs(found))


EXPECTED: dict[str, Callable[..., Any]] = {}
for _kind, (_form, _) in FORMS.items():
    EXPECTED |= {
        f"v_div_scale_{_kind}": np.vectorize(partial(scale, kind=_kind), otypes=[_form, np.bool_]),
        f"v_div_fmas_{_kind}": by_lane(partial(moved_back, kind=_kind), _form),
        f"v_div_fixup_{_kind}": by_lane(partial(fixed, kind=_kind), _form),
    }
EXPECTED = {name: function for name, function in EXPECTED.items() if name in OPERATIONS}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_steps(name: str) -> None:
    sources = sources_of(name, 1200)
    if "scale" in name:  # the first source is one of the others
        sources[0] = np.where(np.arange(1200) % 2, sources[1], sources[2])
    agree(name, EXPECTED[name], sources)


def quotient(above: NDArray[Any], below: NDArray[Any], kind: str) -> Any:
    """As compilers write it for this hardware (LLVM's SITargetLowering)."""
    reciprocal, fma, scaled, moved, fixup = (
        OPERATIONS[f"v_{name}_{kind}"].meaning for name in ("rcp", "fma", "div_scale", "div_fmas", "div_fixup")
    )
    low, _ = scaled(below, below, above)
    high, flag = scaled(above, below, above)
    near = reciprocal(low)
    for _ in range(1 if kind == "f32" else 2):
        near = fma(fma(-low, near, np.ones_like(low)), near, near)
    found = high * near
    if kind == "f32":
        found = fma(fma(-low, found, high), near, found)
    return fixup(moved(fma(-low, found, high), near, found, flag), below, above)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_quotients_are_rounded_rightly(kind: str) -> None:
    """But for subnormal ones, which the last step rounds once more: they may be the next number."""
    above, below = sources_of(f"v_add_{kind}", 4000)
    info, random = np.finfo(above.dtype), np.random.default_rng(5)
    powers = -random.integers(-info.minexp - 4, -info.minexp + info.nmant + 3, 400) / 2  # of quotients about subnormal
    above[:400], below[:400] = (np.ldexp(random.uniform(1, 2, 400), (each * powers).astype(int)) for each in (1, -1))
    with np.errstate(all="ignore"):
        found, expected = quotient(above, below, kind), above / below
    small = (np.abs(expected) < SMALLEST[kind]) & (expected != 0)
    same(found[~small], expected[~small])
    steps = found[small].view(FORMS[kind][1]).astype(np.int64) - expected[small].view(FORMS[kind][1]).astype(np.int64)
    assert len(steps) > 20
    assert (np.abs(steps) <= 1).all()
    assert (steps == 0).mean() > 0.5
