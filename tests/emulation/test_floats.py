"""Float operations of the table against numpy and exact fractions, with what is no number, zeros and subnormals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from argosy.emulation.semantics.table import OPERATIONS
from tests.emulation.floats import FORMS, agree, by_lane, flushed, fused, nearest, sources_of


def order(value: float) -> tuple[float, float]:
    """By which numbers are compared: -0 is less than +0."""
    return value, math.copysign(1, value)


def lesser(first: float, second: float) -> float:
    """The one that is a number, or the lesser of both."""
    return second if math.isnan(first) else first if math.isnan(second) else min(first, second, key=order)


def greater(first: float, second: float) -> float:
    return second if math.isnan(first) else first if math.isnan(second) else max(first, second, key=order)


def minimum(first: float, second: float) -> float:
    """As IEEE 754-2019 has it: no number where one of both is none."""
    return math.nan if math.isnan(first) or math.isnan(second) else lesser(first, second)


def maximum(first: float, second: float) -> float:
    return -minimum(-first, -second)


def middle(first: float, second: float, third: float) -> float:
    """As the documents define it, by which of the three equals the greatest."""
    if math.isnan(first) or math.isnan(second) or math.isnan(third):
        return lesser(lesser(first, second), third)
    most = max(first, second, third)
    if most == first:
        return greater(second, third)
    return greater(first, third) if most == second else greater(first, second)


def behind_the_point(value: float, form: Any) -> Any:
    """Rounded, but held below 1."""
    if not math.isfinite(value):
        return form(np.nan)
    return min(nearest(Fraction(value) - math.floor(value), form), np.nextafter(form(1), form(0)))


def scaled(value: float, power: int, form: Any) -> Any:
    """A number times a power of two, rounded once."""
    if value == 0 or not math.isfinite(value):
        return form(value)
    return nearest(Fraction(value) * Fraction(2) ** max(min(power, 5000), -5000), form)


def in_class(value: Any, wanted: Any) -> Any:
    """Whether it is of one of the classes, in the documents' order, that bits of `wanted` ask for."""
    info = np.finfo(value.dtype)
    quiet = value.view(f"u{value.itemsize}") >> (info.nmant - 1) & 1 == 1
    negative, size = np.signbit(value), np.abs(value)
    kinds = [np.isinf(value), (size >= info.tiny) & np.isfinite(value), (size < info.tiny) & (size > 0), size == 0]
    classes = [np.isnan(value) & ~quiet, np.isnan(value) & quiet]
    classes += [kind & negative for kind in kinds] + [kind & ~negative for kind in reversed(kinds)]
    return np.any([each & (wanted >> place & 1 == 1) for place, each in enumerate(classes)], axis=0)


def rounded_twice(first: Any, second: Any, third: Any) -> Any:
    return flushed(flushed(flushed(first) * flushed(second)) + flushed(third))


EXPECTED: dict[str, Callable[..., Any]] = {
    "v_mul_legacy_f32": lambda a, b: np.where((a == 0) | (b == 0), np.float32(0), a * b),
    "v_mad_f32": rounded_twice,
    "v_mac_f32": rounded_twice,
    "v_frexp_exp_i16_f16": lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0),
}
for _kind, (_form, _) in FORMS.items():
    _fused = by_lane(partial(fused, form=_form), _form)
    EXPECTED |= {
        f"v_add_{_kind}": np.add,
        f"v_sub_{_kind}": np.subtract,
        f"v_subrev_{_kind}": lambda a, b: b - a,
        f"v_mul_{_kind}": np.multiply,
        f"v_fma_{_kind}": _fused,
        f"v_fmac_{_kind}": _fused,
        f"v_fmaak_{_kind}": _fused,
        f"v_min_{_kind}": by_lane(lesser, _form),
        f"v_max_{_kind}": by_lane(greater, _form),
        f"v_min3_{_kind}": by_lane(lambda a, b, c: lesser(lesser(a, b), c), _form),
        f"v_max3_{_kind}": by_lane(lambda a, b, c: greater(greater(a, b), c), _form),
        f"v_med3_{_kind}": by_lane(middle, _form),
        f"v_minmax_{_kind}": by_lane(lambda a, b, c: greater(lesser(a, b), c), _form),
        f"v_maxmin_{_kind}": by_lane(lambda a, b, c: lesser(greater(a, b), c), _form),
        f"v_minimum_{_kind}": by_lane(minimum, _form),
        f"v_maximum_{_kind}": by_lane(maximum, _form),
        f"v_minimum3_{_kind}": by_lane(lambda a, b, c: minimum(minimum(a, b), c), _form),
        f"v_maximum3_{_kind}": by_lane(lambda a, b, c: maximum(maximum(a, b), c), _form),
        f"v_minimummaximum_{_kind}": by_lane(lambda a, b, c: maximum(minimum(a, b), c), _form),
        f"v_maximumminimum_{_kind}": by_lane(lambda a, b, c: minimum(maximum(a, b), c), _form),
        f"v_floor_{_kind}": np.floor,
        f"v_ceil_{_kind}": np.ceil,
        f"v_trunc_{_kind}": np.trunc,
        f"v_rndne_{_kind}": np.rint,
        f"v_fract_{_kind}": by_lane(partial(behind_the_point, form=_form), _form),
        f"v_frexp_mant_{_kind}": lambda a: np.where(np.isfinite(a), np.frexp(a)[0], a),
        f"v_frexp_exp_i32_{_kind}": lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0),
        f"v_ldexp_{_kind}": by_lane(partial(scaled, form=_form), _form),
        f"v_cmp_lt_{_kind}": np.less,
        f"v_cmp_le_{_kind}": np.less_equal,
        f"v_cmp_eq_{_kind}": np.equal,
        f"v_cmp_gt_{_kind}": np.greater,
        f"v_cmp_ge_{_kind}": np.greater_equal,
        f"v_cmp_neq_{_kind}": np.not_equal,
        f"v_cmp_lg_{_kind}": lambda a, b: (a < b) | (a > b),
        f"v_cmp_u_{_kind}": lambda a, b: np.isnan(a) | np.isnan(b),
        f"v_cmp_o_{_kind}": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
        f"v_cmp_nlt_{_kind}": lambda a, b: ~(a < b),
        f"v_cmp_nle_{_kind}": lambda a, b: ~(a <= b),
        f"v_cmp_ngt_{_kind}": lambda a, b: ~(a > b),
        f"v_cmp_nge_{_kind}": lambda a, b: ~(a >= b),
        f"v_cmp_nlg_{_kind}": lambda a, b: ~((a < b) | (a > b)),
        f"v_cmp_class_{_kind}": in_class,
    }
EXPECTED |= {f"s{name[1:]}": function for name, function in EXPECTED.items()}
EXPECTED = {name: function for name, function in EXPECTED.items() if name in OPERATIONS}


def test_the_families_are_there() -> None:
    assert len(EXPECTED) > 170


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_floats(name: str) -> None:
    agree(name, EXPECTED[name])


@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if "3_" in name))
def test_zeros_of_three_have_signs(name: str) -> None:
    """What chance seldom draws: several zeros among three sources."""
    sources = sources_of(name)
    random = np.random.default_rng(4)
    few = np.array([0.0, -0.0, 1.0, -1.0, np.nan], sources[0].dtype)
    agree(name, EXPECTED[name], [random.choice(few, len(each)) for each in sources])


@pytest.mark.parametrize("name", ["v_ldexp_f16", "v_ldexp_f32", "v_ldexp_f64"])
def test_powers_meet_subnormals(name: str) -> None:
    """Powers that end where numbers are subnormal, zero or endless."""
    random = np.random.default_rng(3)
    numbers, powers = sources_of(name)
    reach = {2: 26, 4: 160, 8: 1090}[numbers.itemsize]
    numbers = random.uniform(-4, 4, len(numbers)).astype(numbers.dtype)
    agree(name, EXPECTED[name], [numbers, random.integers(-reach, reach, len(numbers)).astype(powers.dtype)])
