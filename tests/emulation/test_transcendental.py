"""Reciprocals, roots, powers, logarithms and sines within the error that AMD's documents state, and at their edges.

The documents give 1 ulp for float16 and float32, whose subnormal numbers count as zero but for sines; for float64 they
give 2**29 ulp, of which this table uses one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.semantics.table import OPERATIONS
from tests.emulation.floats import FORMS, SMALLEST, agree, by_lane, same, sources_of

_WIDE = np.float64


def reciprocal(value: float) -> float:
    return 1 / value if value else math.copysign(math.inf, value)


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def reciprocal_root(value: float) -> float:
    return reciprocal(root(value)) if value else math.copysign(math.inf, value)


def power(value: float) -> float:
    try:
        return 2.0**value
    except OverflowError:
        return math.inf


def logarithm(value: float) -> float:
    return math.log2(value) if value > 0 else -math.inf if value == 0 else math.nan


def quarter(value: float) -> tuple[int, float, float]:
    """Of an angle in turns: which quarter of a turn it lies in, and the sine and cosine of what is left."""
    which, rest = divmod(4 * (Fraction(value) % 1), 1)
    small, large = (math.pi / 2 * float(each) for each in (rest, 1 - rest))
    return (int(which), math.sin(small), math.cos(small) if rest < Fraction(1, 2) else math.sin(large))


def sine(value: float) -> float:
    if not math.isfinite(value) or value == 0:
        return value - value if value else value
    which, up, down = quarter(abs(value))
    return math.copysign(1, value) * (up, down, -up, -down)[which] + 0.0


def cosine(value: float) -> float:
    if not math.isfinite(value):
        return math.nan
    which, up, down = quarter(value)
    return (down, -up, -down, up)[which] + 0.0


def with_zeros(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of float32 that takes subnormal numbers as zeros of their sign, and gives no such."""

    def flushed(value: float) -> float:
        return math.copysign(0.0, value) if abs(value) < SMALLEST["f32"] else value

    return lambda value: flushed(function(flushed(value)))


_FUNCTIONS = {
    "rcp": reciprocal, "sqrt": root, "rsq": reciprocal_root, "exp": power, "log": logarithm, "sin": sine,
    "cos": cosine, "tanh": math.tanh,
}  # fmt: skip


def precise(name: str) -> Callable[..., Any] | None:
    """The function of a mnemonic on arrays, in double precision."""
    short, kind = name.removeprefix("v_s_").removeprefix("v_").rsplit("_", 1) if name.startswith("v_") else ("", "")
    if short not in _FUNCTIONS:
        return None
    function = _FUNCTIONS[short]
    return by_lane(with_zeros(function) if kind == "f32" and short not in ("sin", "cos", "tanh") else function, _WIDE)


def circle_over_four() -> int:
    """2 / pi in units of 2 ** -1201, by the means of Gauss and Legendre."""
    room = 1400
    one = 1 << room
    a, b, t, p = one, math.isqrt(one * one // 2), one // 4, 1
    for _ in range(11):
        a, b, t, p = (a + b) // 2, math.isqrt(a * b), t - p * ((a - (a + b) // 2) ** 2 // one), 2 * p
    pi = (a + b) ** 2 // (4 * t)
    return (2 * one * one // pi) >> (room - 1201)


_CIRCLE = circle_over_four()


def segment(value: float, which: int) -> float:
    """53 bits of 2 / pi, behind as many as `which` says and a large number does not need."""
    bits = int(np.float64(value).view(np.uint64)) >> 52 & 0x7FF
    shift = 53 * (which & 31) + max(bits - 1077, 0)
    whole = Fraction(_CIRCLE, 1 << 1201) * 2 ** (shift + 53)
    return math.ldexp(int(whole) & ((1 << 53) - 1), -53 - shift + (128 if bits >= 1968 else 0))


EXPECTED: dict[str, Callable[..., Any]] = {"v_trig_preop_f64": by_lane(segment, _WIDE)}
EXPECTED |= {name: found for name in OPERATIONS if (found := precise(name)) is not None}


def test_the_families_are_there() -> None:
    assert len(EXPECTED) > 27


def with_usual_numbers(name: str) -> list[NDArray[Any]]:
    """Besides edges and patterns of bits, numbers where powers and sines have results worth a look."""
    sources, random = sources_of(name), np.random.default_rng(1)
    for reach in (200, 1):
        usual = random.uniform(-reach, reach, len(sources[0])).astype(sources[0].dtype)
        sources[0] = np.where(random.random(len(usual)) < 0.3, usual, sources[0])
    return sources


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"v_trig_preop_f64"}))
def test_within_an_ulp(name: str) -> None:
    (source,) = with_usual_numbers(name)
    form = FORMS[OPERATIONS[name].results[0]][0]
    with np.errstate(all="ignore"):
        found, expected = OPERATIONS[name].meaning(source), EXPECTED[name](source)
        rounded = expected.astype(form)
    usual = np.isfinite(rounded) & (rounded != 0)
    same(found[~usual], rounded[~usual])
    error = np.abs(found[usual].astype(_WIDE) - expected[usual])
    assert (error <= np.spacing(np.abs(rounded[usual])).astype(_WIDE)).all()
    assert usual.sum() > 100


def test_segments_of_the_circle() -> None:
    agree("v_trig_preop_f64", EXPECTED["v_trig_preop_f64"])
    large = np.ldexp(1.0, np.arange(400) * 5 - 976)
    agree("v_trig_preop_f64", EXPECTED["v_trig_preop_f64"], [large, np.arange(400, dtype=np.uint32)])


def examples(form: Any) -> dict[str, list[tuple[float, float]]]:
    """The documents' "functional examples"."""
    inf, nan, most = math.inf, math.nan, float(np.finfo(form).max)
    return {
        "exp": [(-inf, 0.0), (-0.0, 1.0), (inf, inf)],
        "log": [(-inf, nan), (-1.0, nan), (-0.0, -inf), (0.0, -inf), (1.0, 0.0), (inf, inf)],
        "rcp": [(-inf, -0.0), (-2.0, -0.5), (-0.0, -inf), (0.0, inf), (inf, 0.0)],
        "rsq": [(-inf, nan), (-0.0, -inf), (0.0, inf), (4.0, 0.5), (inf, 0.0)],
        "sqrt": [(-inf, nan), (-0.0, -0.0), (0.0, 0.0), (4.0, 2.0), (inf, inf)],
        "sin": [(-inf, nan), (-most, 0.0), (-0.0, -0.0), (0.25, 1.0), (inf, nan)],
        "cos": [(-inf, nan), (-most, 1.0), (-0.0, 1.0), (0.25, 0.0), (inf, nan)],
    }


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("short", list(examples(np.float32)))
def test_examples_of_the_documents(short: str, kind: str) -> None:
    form = FORMS[kind][0]
    given, expected = np.array(examples(form)[short], form).T
    with np.errstate(all="ignore"):
        same(OPERATIONS[f"v_{short}_{kind}"].meaning(given), expected)
