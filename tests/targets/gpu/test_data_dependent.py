"""Ops that keep as many elements as the data says, against numpy: over several blocks, none, all, NaN and zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Program, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import BOOL, FLOAT32
from argosy.ops.index import Compress, NonZero
from argosy.options import CompileOptions

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run
STRICT = CompileOptions(strict=True)
RANDOM = np.random.default_rng(3)


def sparse(*shape: int) -> Any:
    values = RANDOM.standard_normal(shape).astype(np.float32)
    values[RANDOM.random(shape) < 0.7] = -0.0
    return values


def test_nonzero_of_any_size() -> None:
    builder = Builder()
    dims = tuple(symbol_dim(Symbol(name)) for name in "NMK")
    x = builder.parameter("x", TensorType(FLOAT32, dims))
    run = interpreted_run(Program(builder.module({"y": builder.add(NonZero(), x)})), options=STRICT)
    with_nan = np.array([[[0, np.nan, -0.0, 1e-45]]], np.float32)
    for values in (sparse(3, 40, 30), np.zeros((2, 3, 4), np.float32), with_nan, sparse(4, 0, 5), sparse(1, 1024, 1)):
        np.testing.assert_array_equal(run({"x": values})["y"], np.stack(np.nonzero(values)), strict=True)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_nonzero_of_a_number(value: float) -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, ()))
    run = interpreted_run(Program(builder.module({"y": builder.add(NonZero(), x)})), options=STRICT)
    assert run({"x": np.array(value, np.float32)})["y"].shape == (0, int(value != 0))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress_along(axis: int | None) -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (50, 3, 40)))
    kept = builder.parameter("kept", TensorType(BOOL, (symbol_dim(Symbol("C")),)))
    run = interpreted_run(Program(builder.module({"y": builder.add(Compress(axis), x, kept)})), options=STRICT)
    values = RANDOM.standard_normal((50, 3, 40)).astype(np.float32)
    most = 6000 if axis is None else values.shape[axis]
    for size in (most, most - 1, 1):
        flags = RANDOM.random(size) < 0.4
        flags[-1] = True
        np.testing.assert_array_equal(
            run({"x": values, "kept": flags})["y"], np.compress(flags, values, axis), strict=True
        )
    beyond = np.zeros(most + 3, np.bool_)
    beyond[1 % most] = True
    np.testing.assert_array_equal(run({"x": values, "kept": beyond})["y"], np.compress(beyond[:most], values, axis))
