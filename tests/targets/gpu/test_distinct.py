"""Distinct items and non-maximum suppression on GPUs against the definitions in numpy, over several blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Env, Program, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import DTYPES, FLOAT32, INT64
from argosy.ir.interpreter import Interpreter
from argosy.ops.sort import NonMaxSuppression, Unique
from argosy.options import CompileOptions
from argosy.targets.gpu.solutions.distinct import UniqueItems, UniqueRuns

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run
RANDOM = np.random.default_rng(13)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of the sort so small that few items fill several."""
    monkeypatch.setattr(UniqueRuns, "configs", lambda *_: [32])


def check(builder: Builder, made: tuple[Any, ...], arguments: list[Any]) -> None:
    module = builder.module({f"y{place}": value for place, value in enumerate(made)})
    expected = Interpreter(module).run(arguments, Env())
    run = interpreted_run(Program(module), options=CompileOptions(strict=True))
    found = run(dict(zip(module.parameter_names, arguments, strict=True)))
    for name, value in zip(module.result_names, expected, strict=True):
        np.testing.assert_array_equal(found[name], value, name, strict=True)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    ("axis", "shape", "dtype"),
    [(None, (5, 14), "float32"), (1, (3, 40, 2), "int8"), (0, (70, 1), "bool"), (None, (0,), "int64")],
)
def test_unique(axis: int | None, shape: tuple[int, ...], dtype: str, in_order: bool) -> None:
    values = (RANDOM.integers(-1, 2, shape) / (2 if dtype == "float32" else 1)).astype(dtype)
    if dtype == "float32":
        values[values == 0.5] = np.nan
        values[0, 0] = -0.0
    dims = tuple(symbol_dim(Symbol(f"N{place}")) for place in range(len(shape))) if axis is None else shape
    builder = Builder()
    x = builder.parameter("x", TensorType(DTYPES[dtype], dims))
    check(builder, tuple(builder.add_all(Unique(axis, in_order), x)), [values])


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    ("axis", "shape", "dtype"),
    [(None, (5, 14), "float32"), (0, (45,), "uint8"), (1, (2, 40, 1), "bool"), (None, (0,), "int64")],
)
def test_unique_by_sorting(
    monkeypatch: pytest.MonkeyPatch, axis: int | None, shape: tuple[int, ...], dtype: str, in_order: bool
) -> None:
    monkeypatch.setattr(UniqueItems, "applies", lambda *_: "another way")
    monkeypatch.setattr("argosy.targets.gpu.solutions.distinct._SHORT", -1)
    test_unique(axis, shape, dtype, in_order)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("floor", [None, 0.6])
def test_non_maximum_suppression(centred: bool, floor: float | None) -> None:
    builder = Builder()
    arguments: list[Any] = [
        RANDOM.random((2, 600, 4), np.float32),
        (RANDOM.integers(0, 50, (2, 2, 600)) / 50).astype(np.float32),  # few different scores: many are equal
        np.array([6], np.int64),
        np.array([0.3], np.float32),
        *([] if floor is None else [np.array([floor], np.float32)]),
    ]
    arguments[1][0, 0, ::7] = np.nan
    kinds = [
        TensorType(INT64 if value.dtype == np.int64 else FLOAT32, tuple(map(int, value.shape))) for value in arguments
    ]
    values = [builder.parameter(f"x{place}", kind) for place, kind in enumerate(kinds)]
    check(builder, (builder.add(NonMaxSuppression(centred), *values),), arguments)
