"""Pooling on the CPU agrees with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder
from argosy.ops.convolution import Conv
from argosy.ops.pooling import Pool
from tests.targets.cpu.against_ref import check
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

RANDOM = np.random.default_rng(5)
WINDOWS: list[tuple[Sequence[int], tuple[Any, ...], dict[str, Any]]] = [
    ((2, 20, 9, 11), ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1)), {}),
    ((1, 16, 9, 11), ((2, 3), (1, 2), (0, 1, 1, 0), (2, 1)), {"ceil_mode": True}),
    ((1, 5, 13), ((4,), (3,), (2, 1), (1,)), {}),
    ((1, 5, 6, 7, 8), ((2, 3, 2), (2, 1, 2), (0, 1, 0, 1, 1, 0), (1, 1, 1)), {}),
    ((1, 33, 10, 10), ((3, 3), (2, 2), (0,) * 4, (1, 1)), {"auto_pad": "same_lower"}),
]
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("max", {}),
    ("average", {}),
    ("average", {"count_include_pad": True}),
    ("lp", {}),
    ("lp", {"p": 3}),
    ("lp", {"p": 1}),
]


@pytest.mark.parametrize(("shape", "window", "more"), WINDOWS, ids=[str(window[1]) for window in WINDOWS])
@pytest.mark.parametrize(("kind", "fields"), KINDS, ids=str)
@pytest.mark.parametrize("blocked", [False, True], ids=["row-major", "blocked"])
def test_windows(
    shape: Sequence[int],
    window: tuple[Any, ...],
    more: dict[str, Any],
    kind: str,
    fields: dict[str, Any],
    blocked: bool,
) -> None:
    """A pooling alone, and one behind a convolution, whose result is blocked."""
    build = Builder()
    value = build.tensor_parameter("x", "float32", list(shape))
    spatial = len(shape) - 2
    if blocked:
        weight = np.eye(shape[1], dtype=np.float32).reshape(shape[1], shape[1], *(1,) * spatial)
        value = build.add(Conv((1,) * spatial, (0,) * 2 * spatial, (1,) * spatial), value, build.constant(weight))
    kernel, strides, pads, dilations = window
    result = build.add(Pool(kind, kernel, strides, pads, dilations, **fields, **more), value)
    module = build.module({"y": build.pointwise(lambda y: y * 2.0, result)})
    check(module, [([RANDOM.standard_normal(shape).astype(np.float32)], {})])


@pytest.mark.parametrize("column_major", [False, True])
def test_positions_of_the_greatest(column_major: bool) -> None:
    build = Builder()
    op = Pool("max", (3, 2), (2, 1), (1, 0, 1, 1), (1, 1), with_indices=True, column_major=column_major)
    value, place = build.add_all(op, build.tensor_parameter("x", "float32", [2, 3, 7, 8]))
    x = RANDOM.integers(0, 5, (2, 3, 7, 8)).astype(np.float32)
    x[0, 0, 3, 3] = np.nan
    check(build.module({"y": value, "place": place}), [([x], {})])


@pytest.mark.parametrize("kind", ["float16", "float64", "int8", "uint8", "int32"])
def test_element_types(kind: str) -> None:
    build = Builder()
    x = build.tensor_parameter("x", kind, [1, 3, "height", 9])
    result = build.add(Pool("max", (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)), x)
    values = RANDOM.integers(0, 100, (1, 3, 8, 9)).astype(x.dtype.numpy)
    check(build.module({"y": result}), [([values], {"height": 8})])
