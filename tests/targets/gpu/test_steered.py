"""Ops that an operand steers at run time: sizes from one kernel, elements from another, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import DTYPES
from argosy.ops.index import OneHot, Range
from argosy.ops.joining import Tile
from argosy.ops.reduce import Reduce
from argosy.ops.slicing import Pad
from argosy.ops.view import Broadcast, Reshape, Slice, Split, Squeeze, Unsqueeze
from argosy.options import CompileOptions

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run

X = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
Build = Callable[..., Any]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CASES: dict[str, tuple[Build, list[Any], Any]] = {
    "slice": (
        lambda b, *a: b.add(Slice(), *a),
        [X, ints(-1, 1), ints(-100, 9), ints(2, -2), ints(-2, 1)],
        X[:, 1:9, ::-2],
    ),
    "slice of nothing": (
        lambda b, *a: b.add(Slice(), *a),
        [X, ints(3), ints(2), ints(1), ints(1)],
        X[:, 3:2],
    ),
    "slice by the least step": (
        lambda b, *a: b.add(Slice(), *a),
        [X, ints(3), ints(-(1 << 63)), ints(1), ints(-(1 << 63))],
        X[:, 3:4],
    ),
    "pad": (
        lambda b, x, p, a: b.add(Pad("constant"), x, p, None, a),
        [X, ints(1, -2, 0, 3), ints(-1, 0)],
        np.pad(X, ((0, 3), (0, 0), (1, 0)))[2:],
    ),
    "reflecting pad": (
        lambda b, x, p: b.add(Pad("reflect"), x, p),
        [X, ints(0, 3, 0, 1, 0, 5)],
        np.pad(X, ((0, 1), (3, 0), (0, 5)), mode="reflect"),
    ),
    "tile": (lambda b, *a: b.add(Tile(), *a), [X, ints(2, 1, 3)], np.tile(X, (2, 1, 3))),
    "broadcast": (
        lambda b, *a: b.add(Broadcast(), *a),
        [X[:, :1], ints(2, 4, 3, 1)],
        np.broadcast_to(X[:, :1], (2, 4, 3, 6)),
    ),
    "reshape": (lambda b, *a: b.add(Reshape(), *a), [X, ints(0, -1, 3)], X.reshape(4, 10, 3)),
    "squeeze": (lambda b, *a: b.add(Squeeze(), *a), [X[None, :, None], ints(-3, 0)], X),
    "unsqueeze": (lambda b, *a: b.add(Unsqueeze(), *a), [X, ints(-1, 1)], X[:, None, :, :, None]),
    "sum": (lambda b, *a: b.add(Reduce("sum"), *a), [X, ints(-1, 0)], X.sum((0, 2), keepdims=True)),
    "mean of all": (
        lambda b, *a: b.add(Reduce("mean", keep_dims=False), *a),
        [X, ints(2, 0, 1)],
        np.float32(59.5),
    ),
    "greatest": (
        lambda b, *a: b.add(Reduce("max", keep_dims=False), *a),
        [X.astype(np.int32) % 37, ints(-2)],
        (X.astype(np.int32) % 37).max(1),
    ),
    "sum of nothing": (
        lambda b, *a: b.add(Reduce("sum", keep_dims=False), *a),
        [X[:, :0], ints(1)],
        np.zeros((4, 6), np.float32),
    ),
    "sum of long rows": (
        lambda b, *a: b.add(Reduce("sum"), *a),
        [np.ones((2, 1500), np.int64), ints(1)],
        np.full((2, 1), 1500, np.int64),
    ),
    "range": (
        lambda b, *a: b.add(Range(), *a),
        [np.array(value, np.float64) for value in (3.5, -2.0, -0.75)],
        np.arange(3.5, -2.0, -0.75),
    ),
    "range of integers": (
        lambda b, *a: b.add(Range(), *a),
        [np.array(value, np.int64) for value in (-5, 12, 4)],
        np.arange(-5, 12, 4),
    ),
    "one-hot": (
        lambda b, *a: b.add(OneHot(1), *a),
        [ints(0, -1, 7, 2), ints(3), np.array([2, 5], np.int32)],
        np.array([[5, 2, 2], [2, 2, 5], [2, 2, 2], [2, 2, 5]], np.int32),
    ),
}


def run(build: Build, arguments: list[Any], arch: str = "sm_90") -> dict[str, Any]:
    builder = Builder()
    parameters = [
        builder.parameter(f"x{index}", TensorType(DTYPES[str(value.dtype)], value.shape))
        for index, value in enumerate(arguments)
    ]
    made = build(builder, *parameters)
    results = {f"y{place}": value for place, value in enumerate(made if isinstance(made, tuple) else (made,))}
    call = interpreted_run(Program(builder.module(results)), arch, CompileOptions(strict=True))
    return call({f"x{index}": value for index, value in enumerate(arguments)})


@pytest.mark.parametrize("case", CASES)
def test_elements_are_those_of_numpy(case: str) -> None:
    build, arguments, expected = CASES[case]
    found = run(build, arguments)["y0"]
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)


def test_pieces_are_of_the_sizes_given() -> None:
    found = run(lambda b, *a: b.add_all(Split(1, 3), *a), [X, ints(1, 0, 4)])
    for name, expected in zip(("y0", "y1", "y2"), (X[:, :1], X[:, :0], X[:, 1:]), strict=True):
        np.testing.assert_array_equal(found[name], expected)
