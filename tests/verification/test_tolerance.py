"""Tolerances decide exactly where they say, and differences are measured against numpy."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import UsageError
from argosy.ir.dtype import DTYPES, STRING, DType, dtype
from argosy.ir.types import SequenceType, TensorType
from argosy.verification import Tolerance
from argosy.verification.measure import measure
from argosy.verification.report import NonFinite, difference_lines
from argosy.verification.tolerance import spacing

EXPECTED = np.array([1.0, -100.0, 0.0, 1e-30], np.float32)


def agrees(tolerance: Tolerance, expected: Any, found: Any) -> bool:
    return not tolerance.compare({"y": expected}, {"y": found})


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16"])
def test_spacing_is_numpys(name: str) -> None:
    kind = dtype(name)
    values = np.array([1, 1.5, -2, 3.99, 100, 0.001, 0, 1e-7]).astype(kind.numpy)
    step = np.abs(
        np.nextafter(values, np.array(np.inf).astype(kind.numpy)).astype(np.float64) - values.astype(np.float64)
    )
    mine = spacing(values.astype(np.float64), kind)
    # towards infinity the step is that of the value's own binade, for positive values
    positive = values.astype(np.float64) >= 0
    assert np.array_equal(mine[positive], step[positive])


def test_ulp_counts_units_in_the_last_place() -> None:
    next_ = np.nextafter(EXPECTED, np.float32(np.inf))
    after = np.nextafter(next_, np.float32(np.inf))
    assert agrees(Tolerance(ulp=1), EXPECTED[:2], next_[:2])
    assert not agrees(Tolerance(ulp=1), EXPECTED[:1], after[:1])
    assert agrees(Tolerance(ulp=2), EXPECTED[:1], after[:1])
    assert agrees(Tolerance(ulp=0), EXPECTED, EXPECTED)
    bf16 = np.array([1.0]).astype(ml_dtypes.bfloat16)
    assert agrees(Tolerance(ulp=1), bf16, np.array([1.0078125]).astype(ml_dtypes.bfloat16))


def test_atol_and_rtol_go_element_by_element() -> None:
    off = EXPECTED + np.array([1e-3, 0.1, 0, 0], np.float32)
    assert agrees(Tolerance(rtol=1.1e-3), EXPECTED, off)
    assert not agrees(Tolerance(rtol=0.9e-3), EXPECTED, off)
    assert agrees(Tolerance(atol=0.11), EXPECTED, off)
    assert not agrees(Tolerance(atol=0.09), EXPECTED, off)
    assert not agrees(Tolerance(rtol=1.0), EXPECTED, EXPECTED + np.float32(1e-3)), "zero has no relative room"


def test_rms_is_relative_to_the_largest_magnitude() -> None:
    off = EXPECTED + np.array([2, 0, 0, 0], np.float32)  # rms 1, largest 100
    assert agrees(Tolerance(rms=0.0101), EXPECTED, off)
    assert not agrees(Tolerance(rms=0.0099), EXPECTED, off)


def test_all_that_are_given_must_hold() -> None:
    off = EXPECTED + np.float32(1e-3)
    assert agrees(Tolerance(atol=1, rms=1), EXPECTED, off)
    assert not agrees(Tolerance(atol=1, rms=1e-9), EXPECTED, off)
    assert not agrees(Tolerance(atol=1, ulp=1), EXPECTED, off)


@pytest.mark.parametrize("tolerance", [Tolerance(), Tolerance(atol=1e9), Tolerance(rms=1e9), Tolerance(ulp=1e9)])
@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (np.array([1.0]), np.array([np.nan])),
        (np.array([np.inf]), np.array([-np.inf])),
        (np.array([1.0]), np.array([1.0], np.float32)),
        (np.array([1.0]), np.array([[1.0]])),
        (np.array([True]), np.array([False])),
        (np.array(["a"], object), np.array(["b"], object)),
        ([np.ones(1)], [np.ones(1), np.ones(1)]),
        (None, np.ones(1)),
    ],
    ids=str,
)
def test_nothing_forgives_what_is_no_rounding(tolerance: Tolerance, expected: Any, found: Any) -> None:
    assert not agrees(tolerance, expected, found)
    assert agrees(tolerance, expected, expected)


def test_the_projects_rule_follows_the_precision_of_the_code() -> None:
    off = EXPECTED + np.array([0, 0.5, 0, 0], np.float32)  # 5e-3 of the largest
    assert not agrees(Tolerance(), EXPECTED, off)
    assert agrees(Tolerance(precision="fp16"), EXPECTED, off)
    assert agrees(Tolerance(quantised=True), EXPECTED, off)
    assert agrees(Tolerance(quantised=True), np.array([5]), np.array([6]))
    assert not agrees(Tolerance(quantised=True), np.array([5]), np.array([7]))


@pytest.mark.parametrize("name", ["int8", "uint8", "int64", "uint64", "int4"])
def test_integers_may_differ_by_units_and_never_by_a_share(name: str) -> None:
    expected = np.array([5, 1, 3]).astype(dtype(name).numpy)
    found = np.array([5, 3, 3]).astype(dtype(name).numpy)
    for loose in (Tolerance(atol=2), Tolerance(ulp=2), Tolerance(atol=2.5, ulp=2, rtol=0), Tolerance(atol=2, rms=0.3)):
        assert agrees(loose, expected, found)
    for tight in (Tolerance(), Tolerance(atol=1.9), Tolerance(ulp=1), Tolerance(atol=2, ulp=1), Tolerance(rtol=9)):
        assert not agrees(tight, expected, found)
    assert not agrees(Tolerance(rms=9), expected, found), "alone, it is for floats"
    assert not agrees(Tolerance(atol=2, rms=0.2), expected, found), "2 / sqrt(3) / 5 is 0.23"


FLOATS = [
    name for name, kind in DTYPES.items() if (kind.is_float and name != "float8_e8m0fnu") or kind.kind == "complex"
]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", FLOATS)
def test_whatever_is_given_counts_for_every_type(name: str, nested: bool) -> None:
    """One element of four is a step off; it agrees just where every tolerance that is given allows that step."""
    kind = dtype(name)
    expected = np.array([1.0, -1.5, 0.5, 2.0]).astype(kind.numpy)
    found = np.array([1.0, -1.5, 0.5, 3.0]).astype(kind.numpy)
    off = {"atol": 1.0, "rtol": 0.5, "rms": 0.25, "ulp": 1 / _step(kind)}
    for chosen in itertools.product((None, 0.9, 1.1), repeat=4):
        given: dict[str, Any] = {
            option: factor * value for (option, value), factor in zip(off.items(), chosen, strict=True) if factor
        }
        if not given:
            continue
        allowed = given.get("atol", 0.0) + 2.0 * given.get("rtol", 0.0)
        good = not ({"atol", "rtol"} & given.keys()) or allowed >= 1.0
        good &= all(given.get(option, np.inf) >= off[option] for option in ("rms", "ulp"))
        sides = ([expected], [found]) if nested else (expected, found)
        assert agrees(Tolerance(**given), *sides) == good, given
        assert agrees(Tolerance(**given), *reversed(sides)) or not good


def _step(kind: DType) -> float:
    """The step of a type at 2, by trying all of its numbers, or from numpy."""
    part = np.dtype(f"f{kind.numpy.itemsize // 2}") if kind.kind == "complex" else kind.numpy
    if part.itemsize > 2:
        return float(np.nextafter(part.type(2), part.type(3))) - 2
    with np.errstate(invalid="ignore"):
        codes = np.arange(1 << min(kind.bits, 16)).astype(f"u{part.itemsize}").view(part).astype(np.float64)
    return float(codes[codes > 2].min()) - 2


def test_the_printed_rule_is_the_rule() -> None:
    floats, both = [TensorType(dtype("float32"), ())], [TensorType(dtype(name), ()) for name in ("float16", "int64")]
    end = "; types, shapes and the places of NaN and infinities the same"
    share = "of the largest expected magnitude of the output"
    assert Tolerance().rule(floats) == f"largest difference <= 0.001 (float32) {share}{end}"
    assert Tolerance(quantised=True).rule(both) == (
        f"largest difference <= 0.05 (float16) {share} (for a quantised model); integers within 1{end}"
    )
    assert (
        Tolerance(precision="fp16").rule(floats)
        == f"largest difference <= 0.01 (float32) {share} (for code in fp16){end}"
    )
    assert Tolerance(1e-3, 1e-2, 0.5, 4).rule([SequenceType(floats[0]), *both]) == (
        "each |found - expected| <= 0.001 + 0.01 |expected|; each within 4 units in the last place of what is "
        f"expected; RMS of the differences <= 0.5 of the largest expected magnitude of the output; integers equal{end}"
    )
    assert Tolerance(atol=3, rms=0.5).rule([TensorType(dtype("int8"), ()), TensorType(STRING, ())]) == (
        "integers within 3, their RMS error <= 0.5 too; bools and texts equal; types and shapes the same"
    )


def test_exact_values_are_what_numbers_may_not_be_far_from() -> None:
    truth = np.array([1.0 + 2.0**-25, 3.0])  # a quarter of a step above 1
    expected = truth.astype(np.float32)
    found = np.nextafter(expected, np.float32(np.inf))
    assert Tolerance(ulp=1).compare({"y": expected}, {"y": found}) == ()
    assert Tolerance(ulp=1).compare({"y": expected[:1]}, {"y": found[:1]}, {"y": truth[:1]}) == ()
    assert Tolerance(ulp=0.7).compare({"y": expected[:1]}, {"y": found[:1]}, {"y": truth[:1]})
    assert Tolerance(ulp=0.8).compare({"y": expected[:1]}, {"y": found[:1]}, {"y": truth[:1]}) == ()
    (difference,) = measure({"y": expected}, {"y": expected}, {"y": truth})
    assert (difference.different, difference.largest) == (0, 2.0**-25)
    above = np.array([1e39])  # infinite in float32
    with np.errstate(over="ignore"):
        assert agrees(Tolerance(), above.astype(np.float32), np.array([np.inf], np.float32))
        infinite = {"y": above.astype(np.float32)}
    assert Tolerance(ulp=0).compare(infinite, infinite, {"y": above}) == ()


@pytest.mark.parametrize("name", ["atol", "rtol", "rms", "ulp"])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_impossible_tolerances_are_refused(name: str, value: float) -> None:
    asked: dict[str, Any] = {name: value}
    with pytest.raises(UsageError, match=name):
        Tolerance(**asked)


def test_measure_agrees_with_numpy() -> None:
    source = np.random.default_rng(5)
    expected: NDArray[Any] = source.normal(size=(6, 7)).astype(np.float32)
    found = expected.copy()
    found[2, 3] += 0.5
    found[4, 0] -= 0.25
    (difference,) = measure({"y": expected}, {"y": found})
    apart = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    assert difference.largest == apart.max()
    assert difference.relative == apart.max() / np.abs(expected.astype(np.float64)).max()
    assert difference.rms == pytest.approx(np.sqrt((apart**2).mean()) / np.abs(expected.astype(np.float64)).max())
    assert difference.different == 2
    assert difference.first == (2, 3)
    assert difference.found == str(found[2, 3])
    assert (difference.worst, difference.worst_found) == ((2, 3), str(found[2, 3]))
    assert difference.worst_expected == str(expected[2, 3])
    assert difference.non_finite is None


def test_the_worst_element_need_not_be_the_first() -> None:
    expected = np.array([8.0, 4.0, 2.0, 1.0, 0.5], np.float32)
    found = expected + np.array([0, 8e-3, 0, 0.4, 2e-7], np.float32)
    (difference,) = measure({"y": expected}, {"y": found})
    assert (difference.first, difference.worst) == ((1,), (3,))
    assert difference.histogram == {"0": 2, "1e-7": 1, "1e-3": 1, "1e-1": 1}
    (far,) = measure({"y": expected}, {"y": np.array([8, np.nan, np.inf, 100, 0.5], np.float32)})
    assert far.histogram == {"0": 2, "more": 3}


def test_what_is_not_finite_is_counted_on_both_sides() -> None:
    nan, inf = np.nan, np.inf
    expected = np.array([1, nan, inf, -inf, 2], np.float32)
    (same,) = measure({"y": expected}, {"y": expected})
    assert same.non_finite == NonFinite(1, 2, 1, 2, None)
    (other,) = measure({"y": expected}, {"y": np.array([1, nan, inf, nan, nan], np.float32)})
    assert other.non_finite == NonFinite(1, 2, 3, 1, (3,))


def test_measure_sees_non_finite_values_and_scalars() -> None:
    (nan,) = measure({"y": np.array([1.0, np.nan])}, {"y": np.array([np.nan, np.nan])})
    assert nan.first == (0,)
    assert nan.largest == float("inf")
    (scalar,) = measure({"y": np.array(1.0)}, {"y": np.array(2.0)})
    assert scalar.first == ()
    (nested,) = measure({"s": [np.ones(2)]}, {"s": [np.ones(2)]})
    assert nested.name == "s[0]"
    assert nested.first is None
    assert not measure({"y": np.ones(2)}, {"y": np.ones(3)}), "nothing to measure; comparing says what is wrong"


def test_texts_are_compared_and_have_no_errors() -> None:
    expected = np.array(["a", "b", "c"], object)
    (same,) = measure({"y": expected}, {"y": expected.copy()})
    assert difference_lines(same) == ["y string[3]: the same bits"]
    (other,) = measure({"y": expected}, {"y": np.array(["a", "x", "y"], object)})
    assert (other.different, other.first, other.found, other.expected) == (2, (1,), "'x'", "'b'")
    assert difference_lines(other) == ["y string[3]: 2 of 3 elements differ", "  first at [1]: 'x', expected 'b'"]


def test_small_errors_stand_together_in_a_line() -> None:
    expected = np.ones(10, np.float32)
    errors = 0.5 * np.array([0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-9, 1e-10])
    (difference,) = measure({"y": expected.astype(np.float64)}, {"y": expected + errors})
    assert sum(difference.histogram.values()) == 10
    assert len(difference.histogram) == 10, "data have all decades"
    (line,) = (line for line in difference_lines(difference) if "errors" in line)
    counts = [int(entry.rsplit(" ", 1)[1]) for entry in line.split(": ")[1].split(", ")]
    assert counts == [1, 4, 1, 1, 1, 1, 1], "0, the four smallest in one, five decades"
