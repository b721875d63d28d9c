"""Float operations of the table against numpy and exact fractions, with what is no number, zeros and subnormals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.semantics import load_semantics
from argosy.emulation.semantics.table import OPERATIONS

load_semantics()

_FORMS: dict[str, Any] = {
    "f16": (np.float16, np.uint16),
    "f32": (np.float32, np.uint32),
    "f64": (np.float64, np.uint64),
}
_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, 1.5, np.inf, -np.inf, np.nan, 6.1e-5, 1e-7, 65504.0, 1e-40, 3e38)


def values(kind: str, seed: int, count: int = 400) -> NDArray[Any]:
    """Edges of a type and arbitrary patterns of its bits."""
    form, raw = _FORMS[kind]
    random = np.random.default_rng(seed)
    patterns = random.integers(0, np.iinfo(raw).max, count, dtype=raw, endpoint=True).view(form)
    with np.errstate(over="ignore"):
        return np.where(random.random(count) < 0.5, random.choice(_EDGES, count).astype(form), patterns).astype(form)


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


def nearest(exact: Fraction, form: Any) -> Any:
    """A fraction in a float type, to the nearest and of two the even one."""
    info = np.finfo(form)
    size = abs(exact)
    power = size.numerator.bit_length() - size.denominator.bit_length()
    power -= size < Fraction(2) ** power
    step = Fraction(2) ** (max(power, int(info.minexp)) - int(info.nmant))
    rounded = round(size / step) * step
    if rounded > Fraction(float(info.max)):
        return form(np.inf if exact > 0 else -np.inf)
    return form(float(rounded) if exact > 0 else -float(rounded))


EXPECTED: dict[str, Callable[..., Any]] = {}
for _kind in ("f16", "f32", "f64"):
    EXPECTED |= {
        f"v_add_{_kind}": np.add,
        f"v_mul_{_kind}": np.multiply,
        f"v_fma_{_kind}": np.vectorize(partial(fused, form=_FORMS[_kind][0]), otypes=[_FORMS[_kind][0]]),
        f"v_min_{_kind}": np.fmin,
        f"v_max_{_kind}": np.fmax,
        f"v_floor_{_kind}": np.floor,
        f"v_ceil_{_kind}": np.ceil,
        f"v_trunc_{_kind}": np.trunc,
        f"v_rndne_{_kind}": np.rint,
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
        f"v_cmp_nge_{_kind}": lambda a, b: ~(a >= b),
    }
for _kind in ("f16", "f32"):
    EXPECTED |= {
        f"v_sub_{_kind}": np.subtract,
        f"v_subrev_{_kind}": lambda a, b: b - a,
        f"v_sqrt_{_kind}": np.sqrt,
        f"v_fmac_{_kind}": np.vectorize(partial(fused, form=_FORMS[_kind][0]), otypes=[_FORMS[_kind][0]]),
    }
EXPECTED = {name: function for name, function in EXPECTED.items() if name in OPERATIONS}


def test_the_families_are_there() -> None:
    assert len(EXPECTED) > 60


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_floats(name: str) -> None:
    operation = OPERATIONS[name]
    sources = [values(kind, 7 + place + sum(map(ord, name))) for place, kind in enumerate(operation.sources)]
    with np.errstate(all="ignore"):
        found = operation.meaning(*sources)
        expected = EXPECTED[name](*sources)
    kind = operation.results[0]
    if kind == "mask":
        np.testing.assert_array_equal(found, expected)
        return
    form, raw = _FORMS[kind]
    expected = np.asarray(expected, form)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~numbers)
    if name.startswith(("v_min", "v_max")):  # numpy leaves open which zero it takes; the documents: -0 is less than +0
        zeros = (sources[0] == 0) & (sources[1] == 0)
        signs = [np.signbit(each) for each in sources]
        less = signs[0] | signs[1] if "min" in name else signs[0] & signs[1]
        np.testing.assert_array_equal(np.signbit(found[zeros]), less[zeros])
        numbers &= ~zeros
    np.testing.assert_array_equal(found[numbers].view(raw), expected[numbers].view(raw))
