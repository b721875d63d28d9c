"""Sum, Mean, Max and Min: any number of operands, broadcasting, one rounding."""

from __future__ import annotations

from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from argosy.errors import ModelError
from tests.frontends.onnx.one_node import program, run

REDUCE = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum}


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min"])
def test_any_number_of_operands(op: str, count: int) -> None:
    rng = np.random.default_rng(count)
    x = [rng.normal(size=(3, 1) if index % 2 else (4,)) for index in range(count)]
    expected = reduce(REDUCE["Sum" if op == "Mean" else op], x)
    np.testing.assert_allclose(run(op, *x), expected / count if op == "Mean" else expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.uint64, np.float16, ml_dtypes.bfloat16])
def test_max_and_min_keep_the_element_type(dtype: Any) -> None:
    a, b = np.array([1, 5], dtype), np.array([3, 2], dtype)
    assert run("Max", a, b).dtype == dtype
    np.testing.assert_array_equal(run("Max", a, b).astype(int), [3, 5])
    np.testing.assert_array_equal(run("Min", a, b).astype(int), [1, 2])


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_nan_wins(op: str) -> None:
    nan = np.array([np.nan], np.float32)
    one = np.ones(1, np.float32)
    assert np.isnan(run(op, one, nan, one))[0]
    assert np.isnan(run(op, nan, one))[0]


def test_a_sum_of_halves_rounds_once() -> None:
    x = np.array([2048.0], np.float16), np.array([1.0], np.float16), np.array([1.0], np.float16)
    assert run("Sum", *x) == 2050.0  # rounded after each addition it would stay 2048


def test_no_operand_is_an_error() -> None:
    with pytest.raises(ModelError, match="input 0.*is missing"):
        program("Sum", [])
