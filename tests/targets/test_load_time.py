"""What is done once at load depends on weights alone: never on a size, which only a run tells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Program, Symbol, TensorType, Value, symbol_dim
from argosy.ir.dtype import FLOAT32
from argosy.ops.dim_values import DimValues
from argosy.ops.reduce import Reduce
from argosy.ops.view import Broadcast

N = symbol_dim(Symbol("N"))
WEIGHT = np.array([3, 1, 2, 5], np.int64)


def compared(build: Builder, weight: Value) -> Value:
    """Which weights are above the batch: the batch is a number in the body of a kernel."""
    return build.pointwise("lt", build.add(DimValues((N,))), weight)


def summed(build: Builder, weight: Value) -> Value:
    """N times the weights, as a sum of so many rows."""
    return build.add(Reduce("sum", (0,), False), build.add(Broadcast((N, 4)), weight))


@pytest.mark.parametrize(
    ("reads", "meaning"),
    [(compared, lambda batch: batch < WEIGHT), (summed, lambda batch: batch * WEIGHT)],
    ids=["compared", "summed"],
)
def test_what_a_size_decides_is_done_in_every_run(
    reads: Callable[[Builder, Value], Value], meaning: Callable[[int], np.ndarray]
) -> None:
    build = Builder()
    build.parameter("x", TensorType(FLOAT32, (N,)))
    program = Program(build.module({"y": reads(build, build.constant(WEIGHT))}))
    session = argosy.Session(argosy.compile(program, targets=["cpu"]), device="cpu")
    for batch in (1, 4):
        found = session.run({"x": np.zeros(batch, np.float32)})["y"]
        np.testing.assert_array_equal(found, meaning(batch))
