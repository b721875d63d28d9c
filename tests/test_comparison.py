"""What counts as agreement: structure, types and shapes exactly, numbers up to the bound of the rule."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from argosy.comparison import Agree, AllClose, Rule, compare

ONE = np.array([1.0, -2.0], np.float32)


def mismatch(expected: Any, found: Any, rule: Rule = AllClose()) -> str:  # noqa: B008 - frozen
    """What is wrong with one output, or an empty text."""
    return "; ".join(map(str, compare({"y": expected}, {"y": found}, rule)))


def test_equal_outputs_agree() -> None:
    values = {
        "tensor": ONE,
        "text": np.array(["a", "ü"], object),
        "scalar": np.array(3, np.int64),
        "empty": np.zeros((0, 3), np.float16),
        "sequence": [ONE, ONE[:1]],
        "map": {"k": ONE},
        "map of scalars": {1: np.float32(0.5), 2: np.float32(np.nan)},
        "absent": None,
        "nan": np.array([np.nan, np.inf, -np.inf], np.float32),
        "four bits": np.array([-8, 7], ml_dtypes.int4),
    }
    assert compare(values, dict(values), Agree()) == ()
    assert compare(values, dict(values), AllClose(0, 0)) == ()


def test_names_and_order_must_be_right() -> None:
    pair = {"a": ONE, "b": ONE}
    assert [str(m) for m in compare(pair, {"a": ONE}, Agree())] == ["b: is missing"]
    assert [str(m) for m in compare({"a": ONE}, pair, Agree())] == ["b: is not an output of the model"]
    assert len(compare({"a": ONE}, {"c": ONE}, Agree())) == 2
    assert "order" in str(compare(pair, {"b": ONE, "a": ONE}, Agree())[0])
    assert "expected a mapping" in str(compare(pair, [ONE, ONE], Agree())[0])


def test_scalars_in_maps_have_a_tolerance() -> None:
    assert not mismatch({"a": np.float32(0.1)}, {"a": np.float32(0.1000001)})
    assert "1 of 1 elements differ" in mismatch({"a": np.float32(0.1)}, {"a": np.float32(0.2)})
    assert "expected float32, found float64" in mismatch({"a": np.float32(0.5)}, {"a": np.float64(0.5)})
    assert "keys ['b']" in mismatch({"a": np.float32(0.5)}, {"b": np.float32(0.5)})


@pytest.mark.parametrize(
    ("expected", "found", "what"),
    [
        (ONE, ONE.astype(np.float64), "expected float32, found float64"),
        (ONE, ONE.reshape(1, 2), r"expected the shape [2], found [1, 2]"),
        (ONE, ONE.tolist(), "found a sequence of 2"),
        (ONE, np.float32(1), "found float32"),
        (ONE, None, "found an absent optional"),
        (None, ONE, "expected an absent optional"),
        (ONE, np.array(["1", "2"]), "found string"),
        (ONE, ONE.astype("datetime64[s]"), "numpy type datetime64"),
        ([ONE], [ONE, ONE], "expected a sequence of 1, found a sequence of 2"),
        ([ONE], [ONE + 1], "y[0]: 2 of 2 elements differ"),
        ({"k": ONE}, {"j": ONE}, "a map with the keys ['k']"),
        (np.array([True]), np.array([False]), "first at [0]: False, expected True"),
        (np.array(["a"], object), np.array(["b"], object), "first at [0]: b, expected a"),
        (np.array([3], np.int32), np.array([4], np.int32), "4, expected 3"),
        (np.array(3, np.uint8), np.array(2, np.uint8), "2, expected 3"),
    ],
)
def test_what_differs_is_said(expected: Any, found: Any, what: str) -> None:
    assert what in mismatch(expected, found)


@pytest.mark.parametrize("rule", [Agree(), Agree(quantised=True), AllClose(1.0, 1e9)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_non_finite_positions_are_never_forgiven(rule: Rule, bad: float, dtype: Any) -> None:
    good = np.ones(3, dtype)
    spoilt = good.copy()
    spoilt[1] = bad
    assert "non-finite positions differ, first at [1]" in mismatch(good, spoilt, rule)
    assert "non-finite positions differ, first at [1]" in mismatch(spoilt, good, rule)
    assert mismatch(spoilt, spoilt.copy(), rule) == ""


def test_infinities_have_signs() -> None:
    x = np.array([np.inf], np.float32)
    assert "non-finite" in mismatch(x, -x)
    assert "non-finite" in mismatch(x, x * np.float32(np.nan))


def test_all_close_is_element_by_element() -> None:
    x = np.array([1000.0, 1e-3], np.float32)
    assert mismatch(x, x + np.array([0.9, 0], np.float32)) == ""
    assert "at [1]" in mismatch(x, x + np.array([0, 2e-6], np.float32))
    bf16 = np.array([1.0], ml_dtypes.bfloat16)
    assert mismatch(bf16, np.array([1.0078125], ml_dtypes.bfloat16)) == ""
    assert mismatch(bf16, np.array([1.03125], ml_dtypes.bfloat16)) != ""


@pytest.mark.parametrize(
    ("dtype", "share"), [(np.float64, 1e-3), (np.float32, 1e-3), (np.float16, 1e-2), (ml_dtypes.bfloat16, 5e-2)]
)
def test_agree_is_a_share_of_the_largest_magnitude(dtype: Any, share: float) -> None:
    x = np.array([-64.0, 0.0], dtype)
    assert mismatch(x, np.array([-64.0, 0.96 * share * 64], dtype), Agree()) == ""
    assert "at [1]" in mismatch(x, np.array([-64.0, 1.04 * share * 64], dtype), Agree())
    assert mismatch(x, np.array([-64.0, 0.96 * 5e-2 * 64], dtype), Agree(quantised=True)) == ""
    assert mismatch(np.zeros(2, dtype), np.array([0, 1e-6], dtype), Agree()) != ""


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, ml_dtypes.int4, ml_dtypes.uint4])
def test_quantised_models_may_be_off_by_one(dtype: Any) -> None:
    x, above, far = np.array([3], dtype), np.array([4], dtype), np.array([5], dtype)
    assert mismatch(x, above, Agree()) != ""
    assert mismatch(x, above, Agree(quantised=True)) == ""
    assert mismatch(above, x, Agree(quantised=True)) == ""
    assert mismatch(x, far, Agree(quantised=True)) != ""


def test_integer_distance_does_not_overflow() -> None:
    ends = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])
    assert mismatch(*ends, Agree(quantised=True)) != ""
    assert mismatch(np.array([0], np.uint64), np.array([2**64 - 1], np.uint64), Agree(quantised=True)) != ""


def test_the_ends_of_float32_are_compared_without_overflow() -> None:
    end = np.array([np.finfo(np.float32).max])
    assert "elements differ" in mismatch(end, -end)
    assert "elements differ" in mismatch(np.array(1 + 2j), np.array(1 - 2j))
    assert mismatch(np.array([1 + 2j], np.complex64), np.array([1 + 2j], np.complex64)) == ""


@pytest.mark.parametrize(("precision", "share"), [("fp32", 1e-3), ("fp16", 1e-2), ("bf16", 5e-2)])
def test_the_precision_of_the_code_widens_the_rule(precision: str, share: float) -> None:
    expected = np.array([1.0, 8.0], np.float32)
    for factor, agrees in ((0.9, True), (1.1, False)):
        found = expected + np.float32(8 * share * factor) * np.array([1, 0], np.float32)
        assert (compare({"y": expected}, {"y": found}, Agree(precision=precision)) == ()) == agrees
