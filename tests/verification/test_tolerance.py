"""Tolerances decide exactly where they say, and differences are measured against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import UsageError
from argosy.ir.dtype import dtype
from argosy.verification import Tolerance
from argosy.verification.measure import measure
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
        (np.array([1]), np.array([2])),
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
