"""Softmax on the CPU agrees with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from argosy.ir import Builder
from argosy.ir.dtype import dtype
from argosy.ops.reduce import Softmax
from tests.targets.cpu.against_ref import check
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

SHAPES = [
    ((5, 128), -1),
    ((3, 5, 17), -1),
    ((2, 7), -1),
    ((2, 1500), -1),
    ((3, 17, 5), 1),
    ((4, 40, 1, 1), 1),
    ((9,), 0),
]


@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((0, 8), -1), ((3, 0), -1)], ids=str)
@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_shapes(shape: Sequence[int], axis: int, log: bool, symbolic: bool) -> None:
    build = Builder()
    dims = [f"d{place}" for place in range(len(shape))] if symbolic else list(shape)
    result = build.add(Softmax(axis, log), build.tensor_parameter("x", "float32", dims))
    module = build.module({"y": build.pointwise(lambda y: y * 2.0 + 1.0, result)})
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32) * 4
    check(module, [([x], {f"d{place}": size for place, size in enumerate(shape)} if symbolic else {})])


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_element_types(kind: str) -> None:
    build = Builder()
    result = build.add(Softmax(), build.tensor_parameter("x", kind, [4, 33]))
    x = np.random.default_rng(1).standard_normal((4, 33)).astype(dtype(kind).numpy)
    check(build.module({"y": result}), [([x], {})])


@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log"])
def test_values_that_are_not_finite(log: bool) -> None:
    """Rows of -inf, with +inf or with NaN become NaN; -inf beside numbers has no power."""
    x = np.random.default_rng(1).standard_normal((6, 40)).astype(np.float32)
    x[0] = -np.inf
    x[1, 3] = np.inf
    x[2, 39] = np.nan
    x[3, 5] = np.nan
    x[4, 10:] = -np.inf
    build = Builder()
    result = build.add(Softmax(-1, log), build.tensor_parameter("x", "float32", [6, 40]))
    check(build.module({"y": result}), [([x], {})])
