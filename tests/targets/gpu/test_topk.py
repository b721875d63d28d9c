"""The k best of each line, against numpy's stable sort: short and long lines, ties, NaN, zeros of either sign."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Program, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import DTYPES, INT64
from argosy.ops.sort import TopK
from argosy.options import CompileOptions
from argosy.targets.gpu.solutions.sort import TopKChunks, TopKRadix, TopKRanks

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run
RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of the sort so small that short lines fill several."""
    monkeypatch.setattr(TopKRadix, "configs", lambda *_: [32])


def values(dtype: str, shape: tuple[int, ...]) -> Any:
    """Few different values, so that many are equal."""
    if dtype == "bool":
        return RANDOM.random(shape) < 0.5
    if dtype.startswith("uint"):
        return RANDOM.choice(np.array([0, 1, 7, np.iinfo(dtype).max], dtype), shape)
    if dtype.startswith("int"):
        return RANDOM.choice(np.array([np.iinfo(dtype).min, -1, 0, 1, np.iinfo(dtype).max], dtype), shape)
    return RANDOM.choice(np.array([-np.inf, -1.5, -1e-40, -0.0, 0.0, 2.0, np.inf, np.nan], dtype), shape)


def best(x: Any, k: int, axis: int, *, largest: bool) -> tuple[Any, Any]:
    """By definition: sorted by (NaN, value), equal ones by position."""
    lines = np.moveaxis(x, axis, -1)
    order = np.empty((*lines.shape[:-1], k), np.int64)
    for line in np.ndindex(lines.shape[:-1]):
        keys = [_key(value) for value in lines[line].tolist()]
        ranked = sorted(range(len(keys)), key=lambda i: keys[i], reverse=largest)
        order[line] = ranked[:k]
    indices = np.moveaxis(order, -1, axis)
    return np.take_along_axis(x, indices, axis), indices


def _key(value: float) -> tuple[bool, float]:
    """NaN counts as larger than every number."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def check(dtype: str, shape: tuple[int, ...], k: int, axis: int, *, largest: bool, symbolic: bool = False) -> None:
    dims = tuple(symbol_dim(Symbol(f"N{place}")) for place in range(len(shape))) if symbolic else shape
    builder = Builder()
    x = builder.parameter("x", TensorType(DTYPES[dtype], dims))
    how_many = builder.parameter("k", TensorType(INT64, (1,))) if symbolic else builder.constant(np.array([k]))
    found = builder.add_all(TopK(axis, largest), x, how_many)
    module = builder.module({"values": found[0], "indices": found[1]})
    run = interpreted_run(Program(module), options=CompileOptions(strict=True))
    given = values(dtype, shape)
    results = run({"x": given, "k": np.array([k], np.int64)} if symbolic else {"x": given})
    expected = best(given, k, axis, largest=largest)
    np.testing.assert_array_equal(results["indices"], expected[1], strict=True)
    np.testing.assert_array_equal(results["values"], expected[0], strict=True)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "bool", "float64", "int64", "uint64"])
@pytest.mark.parametrize("largest", [True, False])
def test_elements_of_any_type(dtype: str, largest: bool) -> None:
    check(dtype, (1, 21, 2), 9, 1, largest=largest)


def test_sizes_and_k_that_only_the_run_knows() -> None:
    check("float32", (2, 130), 90, -1, largest=True, symbolic=True)
    check("float64", (5, 3), 2, 0, largest=False, symbolic=True)


def test_long_lines_are_sorted_in_rounds() -> None:
    check("int32", (1, 2049), 5, 1, largest=False)


@pytest.mark.nightly
@pytest.mark.parametrize(("size", "k"), [(2048, 2048), (9000, 500)])
def test_longer_lines_are_sorted_in_more(size: int, k: int) -> None:
    check("int32", (2, size), k, 1, largest=True)


@pytest.mark.parametrize(
    ("dtype", "shape", "k", "axis", "largest", "symbolic"),
    [
        ("float32", (1, 75, 2), 40, 1, True, False),
        ("float64", (35, 3), 32, 0, False, True),
        ("int8", (64,), 64, 0, True, False),
        ("uint8", (65,), 3, 0, False, False),
        ("bool", (33, 2), 33, 0, True, False),
        ("uint64", (31,), 31, 0, True, False),
        ("int64", (1, 47), 47, 1, False, False),
        ("float16", (32,), 32, -1, False, False),
    ],
)
def test_lines_are_sorted_by_digits(
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    shape: tuple[int, ...],
    k: int,
    axis: int,
    largest: bool,
    symbolic: bool,
) -> None:
    for other in (TopKChunks, TopKRanks):
        monkeypatch.setattr(other, "applies", lambda *_: "another way")
    monkeypatch.setattr("argosy.targets.gpu.solutions.sort._SHORT", 0)
    check(dtype, shape, k, axis, largest=largest, symbolic=symbolic)
