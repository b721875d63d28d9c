"""Reductions of float32 on the CPU agree with numpy in float64: every kind, along every axis, values of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder
from argosy.ops.index import Gather
from argosy.ops.reduce import ArgReduce, Reduce
from argosy.ops.view import Transpose
from tests.targets.cpu.against_ref import agree, compiled
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

SHAPES: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((5, 200), (1,)),
    ((40, 200), (0,)),
    ((3, 70, 90), (1,)),
    ((3, 70, 90), (0, 1)),
    ((3, 7, 90), (1, 2)),
    ((4, 6, 33), (0, 2)),
    ((6, 9, 5), (0,)),
    ((4, 1), (1,)),
    ((17, 64), (0,)),
    ((3, 0, 20), (0,)),
]


def numbers(shape: Sequence[int], spoiled: bool) -> Any:
    random = np.random.default_rng(3)
    x = random.integers(-40, 40, shape).astype(np.float32) / 4  # equal ones occur
    if spoiled and x.size:
        flat = x.reshape(-1)
        flat[:: max(1, x.size // 5)] = np.nan
        flat[1 :: max(1, x.size // 7)] = np.inf
    return x


@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_kinds(shape: tuple[int, ...], axes: tuple[int, ...], symbolic: bool) -> None:
    """With something before and behind; of a transposed value too, whose last axis lies elsewhere."""
    turned = symbolic
    build = Builder()
    order = tuple(reversed(range(len(shape))))
    given = tuple(reversed(shape)) if turned else shape
    dims = [f"d{axis}" for axis in range(len(shape))] if symbolic else list(given)
    x = build.tensor_parameter("x", "float32", dims)
    scaled = build.pointwise(lambda v: v * 0.5, x)
    seen = build.add(Transpose(order), scaled) if turned else scaled
    kinds = ("sum", "mean", "max", "min")
    found = {
        kind: build.pointwise(lambda v: v * 2.0 + 1.0, build.add(Reduce(kind, axes, keep_dims=kind != "max"), seen))
        for kind in kinds
    }
    session = compiled(build.module(found))
    for spoiled in (False, True):
        value = numbers(given, spoiled)
        results = session.run({"x": value})
        wide = (value.transpose(order) if turned else value).astype(np.float64) * 0.5
        with np.errstate(invalid="ignore", divide="ignore"):
            count = np.prod([shape[axis] for axis in axes], dtype=np.float64)
            total = wide.sum(axes, keepdims=True)
            expected = {"sum": total, "mean": total / count}
            expected["max"] = np.max(wide, axes, initial=-np.inf)
            expected["min"] = np.min(wide, axes, keepdims=True, initial=np.inf)
            for kind in kinds:
                agree(results[kind], (expected[kind] * 2 + 1).astype(np.float32), f"{kind}, spoiled: {spoiled}")


@pytest.mark.parametrize(
    ("shape", "axes"), [entry for entry in SHAPES if len(entry[1]) == 1 and 0 not in entry[0]], ids=str
)
@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_positions(shape: tuple[int, ...], axes: tuple[int, ...], kind: str, last: bool) -> None:
    """Of equal ones the first or the last counts, and of NaNs the first."""
    (axis,), symbolic = axes, kind == "min"
    build = Builder()
    dims = [f"d{place}" for place in range(len(shape))] if symbolic else list(shape)
    x = build.tensor_parameter("x", "float32", dims)
    session = compiled(build.module({"y": build.add(ArgReduce(kind, axis, keep_dims=False, select_last=last), x)}))
    for spoiled in (False, True):
        value = numbers(shape, spoiled)
        signed = value if kind == "max" else -value
        if last:
            expected = shape[axis] - 1 - np.argmax(np.flip(np.nan_to_num(signed, nan=-np.inf), axis), axis)
            spoilt = np.isnan(value).any(axis)
            expected = np.where(spoilt, np.argmax(np.isnan(value), axis), expected)
        else:
            expected = np.argmax(signed, axis)
        np.testing.assert_array_equal(session.run({"x": value})["y"], expected, f"spoiled: {spoiled}")


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_an_index_names_is_reduced(kind: str, axis: int) -> None:
    """Along the vectors and across them: the place of an element is itself an element."""
    random = np.random.default_rng(7)
    x = random.standard_normal((40, 200)).astype(np.float32)
    order = random.integers(-x.shape[axis], x.shape[axis], 60).astype(kind)
    for reduced in (0, 1):
        build = Builder()
        operand, indices = build.tensor_parameter("x", "float32", x.shape), build.tensor_parameter("i", kind, [60])
        taken = build.add(Gather(axis), operand, indices)
        module = build.module({"y": build.add(Reduce("sum", (reduced,)), build.pointwise(lambda v: v * 0.5, taken))})
        expected = np.take(x.astype(np.float64), order, axis).sum(reduced, keepdims=True) / 2
        agree(compiled(module).run({"x": x, "i": order})["y"], expected.astype(np.float32), f"axis {reduced}")
