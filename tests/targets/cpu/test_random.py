"""Random numbers of native code are those of the interpreter: by element, run, iteration, seed and node."""

from __future__ import annotations

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Program, Symbol, TensorType, Value, symbol_dim
from argosy.ir.dtype import BOOL, DTYPES, FLOAT32, INT64
from argosy.ops.control import If, Loop, Scan
from argosy.ops.random import Random
from argosy.ops.sequence import SequenceAt, SequenceConstruct
from argosy.ops.view import Reshape, Slice

N = symbol_dim(Symbol("N"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_the_numbers_of_three_runs(dtype: str) -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (N, 3)))
    kind = DTYPES[dtype]
    results = {
        "uniform": builder.add(Random("uniform", kind, -1.0, 2.0, 7, 1, None), x),
        "normal": builder.add(Random("normal", kind, 0.5, 3.0, 7, 2, None), x),
        "wide": builder.add(Random("normal", kind, 0.0, 1.0, 2**31, 3, (2, N)), None),
    }
    artifact = argosy.compile(Program(builder.module(results)), targets=("cpu",), strict=True)
    native, ref = (argosy.Session(artifact, device=device) for device in ("cpu", "ref"))
    for size in (5, 4000, 5):
        feeds = {"x": np.zeros((size, 3), np.float32)}
        found, expected = native.run(feeds), ref.run(feeds)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name].view(np.uint8), value.view(np.uint8))


COUNTER, FLAG, PAIR = TensorType(INT64, ()), TensorType(BOOL, ()), TensorType(FLOAT32, (2,))


def drawn(builder: Builder, node: int) -> Value:
    return builder.add(Random("uniform", FLOAT32, 0.0, 1.0, 7, node, (2,)))


def loop(builder: Builder, trips: int, node: int, inner: int = 0) -> Value:
    """What each iteration draws, [trips, 2]; with `inner`, each holds a loop of so many: [trips, inner, 2]."""
    body = Builder(f"body{node}", namer=builder.namer)
    body.parameter("count", COUNTER)
    again = body.parameter("again", FLAG)
    each = loop(body, inner, node + 1) if inner else drawn(body, node)
    module = body.module({"again": again, "each": each})
    return builder.add(Loop(module, 0), builder.constant(np.array(trips)), None)


def scan(builder: Builder, rows: Value) -> Value:
    """One draw for each row, in a branch of the body."""
    body = Builder("scan", namer=builder.namer)
    row = body.parameter("row", PAIR)
    positive = body.add(Reshape(()), body.pointwise(lambda v: v > 0.0, body.add(Slice((0,), (1,)), row)))
    branches = []
    for name, node in (("then", 20), ("other", 21)):
        branch = Builder(name, namer=builder.namer)
        branches.append(branch.module({"y": drawn(branch, node)}))
    module = body.module({"y": body.add(If(*branches), positive)})
    return builder.add(Scan(module, 0, (0,), (False,), (0,), (False,)), rows)


def repeated() -> Program:
    builder = Builder()
    rows = builder.parameter("rows", TensorType(FLOAT32, (N, 2)))
    results = {
        "once": drawn(builder, 1),
        "loop": loop(builder, 5, 2),
        "nested": loop(builder, 4, 4, inner=3),
        "scan": scan(builder, rows),
    }
    return Program(builder.module(results))


def test_each_iteration_draws_other_numbers_the_same_on_every_target() -> None:
    artifact = argosy.compile(repeated(), targets=("cpu",), strict=True)
    feeds = {"rows": np.array([[1, 0], [-1, 0], [1, 0], [1, 0], [-1, 0]], np.float32)}
    native, ref = (argosy.Session(artifact, device=device) for device in ("cpu", "ref"))
    runs = []
    for _ in range(3):
        found, expected = native.run(feeds), ref.run(feeds)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)
        runs.append(found)
    numbers = np.concatenate([value.reshape(-1) for found in runs for value in found.values()])
    assert len(numbers) == 3 * 2 * (1 + 5 + 12 + 5)
    assert len(np.unique(numbers)) == len(numbers)
    again = argosy.Session(artifact, device="cpu").run(feeds)
    for name, value in runs[0].items():
        np.testing.assert_array_equal(again[name], value)


def test_iterations_of_host_steps_draw_what_those_of_ref_do() -> None:
    """A body with a sequence is evaluated on the host, its random numbers too."""
    builder = Builder()
    body = Builder("body", namer=builder.namer)
    body.parameter("count", COUNTER)
    again = body.parameter("again", FLAG)
    held = body.add(SequenceConstruct(PAIR), drawn(body, 1), drawn(body, 2))
    module = body.module({"again": again, "each": body.add(SequenceAt(), held, body.constant(np.array(1)))})
    program = Program(builder.module({"y": builder.add(Loop(module, 0), builder.constant(np.array(4)), None)}))
    artifact = argosy.compile(program, targets=("cpu",))
    native, ref = (argosy.Session(artifact, device=device).run({})["y"] for device in ("cpu", "ref"))
    np.testing.assert_array_equal(native, ref)
    assert len(np.unique(ref)) == 8
