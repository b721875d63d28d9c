"""Work on weights alone is done when an artifact is loaded, unless it may fail, or makes weights much larger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.artifact.plan import Block, CallStep, IfBlock, StraightBlock
from argosy.errors import ArgosyError
from argosy.ir import Builder, Module, Program, TensorType
from argosy.ir.dtype import BOOL, FLOAT32
from argosy.ops.control import If
from argosy.ops.index import Gather
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize
from argosy.ops.reduce import Reduce
from argosy.ops.view import Broadcast, Concat, Transpose
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler
RNG = np.random.default_rng(11)
ROWS, COLUMNS = 1030, 257
"""So many that the folding of constants leaves what is made of them alone."""


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def calls(blocks: Sequence[Block]) -> int:
    """The calls in a run."""
    count = 0
    for block in blocks:
        if isinstance(block, StraightBlock):
            count += sum(isinstance(step, CallStep) for step in block.steps)
        elif isinstance(block, IfBlock):
            count += calls(block.then) + calls(block.otherwise)
    return count


def compiled(module: Module) -> tuple[argosy.Artifact, int, int]:
    """The artifact, the calls in a run, the buffers that stay."""
    artifact = argosy.compile(Program(module), targets=("cpu",), strict=True)
    plan = artifact.plan(artifact.variants[0].key)
    return artifact, calls(plan.body), sum(buffer.kind == "prepared" for buffer in plan.buffers)


def test_a_chain_ends_as_one_prepared_weight() -> None:
    """Dequantised, turned, joined, packed: only the packed product operand stays, and a run is a product."""
    stored = RNG.integers(-128, 128, (COLUMNS, ROWS)).astype(np.int8)
    scale = np.abs(floats(COLUMNS)) * np.float32(0.01)
    build = Builder()
    x = build.tensor_parameter("x", "float32", [40, ROWS])
    weight = build.add(Dequantize(FLOAT32, axis=0), build.constant(stored), build.constant(scale))
    turned = build.add(Transpose((1, 0)), weight)
    doubled = build.add(Concat(1), turned, build.pointwise(lambda w: w * 0.5, turned))
    module = build.module({"y": build.add(Dot(None), x, doubled)})
    artifact, steps, kept = compiled(module)
    assert kept == 1
    assert steps <= 2  # the product, and perhaps its left operand packed
    value = floats(40, ROWS)
    product = value.astype(np.float64) @ (stored * scale[:, None].astype(np.float64)).T
    expected = np.concatenate([product, product / 2], 1)
    found = argosy.Session(artifact, device="cpu").run({"x": value})["y"]
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4 * np.abs(expected).max())


def test_elementwise_work_on_weights_is_not_fused_into_the_run() -> None:
    table = floats(ROWS, COLUMNS)
    build = Builder()
    x = build.tensor_parameter("x", "float32", [ROWS, COLUMNS])
    held = build.pointwise(lambda t: (t * 3.0).tanh(), build.constant(table))
    artifact, steps, kept = compiled(build.module({"y": build.pointwise(lambda x, t: x + t, x, held)}))
    assert (steps, kept) == (1, 1)
    value = floats(ROWS, COLUMNS)
    found = argosy.Session(artifact, device="cpu").run({"x": value})["y"]
    np.testing.assert_allclose(found, value + np.tanh(table * np.float32(3)), 1e-5, 1e-6)


def test_results_of_weights_alone_may_be_outputs() -> None:
    table = floats(ROWS, COLUMNS)
    build = Builder()
    x = build.tensor_parameter("x", "float32", [2])
    held = build.add(Reduce("sum", (1,)), build.constant(table))
    artifact, _, _ = compiled(build.module({"y": held, "z": build.pointwise(lambda x: x * 2.0, x)}))
    session = argosy.Session(artifact, device="cpu")
    for _ in range(2):
        found = session.run({"x": np.ones(2, np.float32)})
        np.testing.assert_allclose(found["y"], table.sum(1, np.float64, keepdims=True), 1e-5, 1e-5)
        np.testing.assert_array_equal(found["z"], [2, 2])
        found["y"][...] = 0  # the caller's own


def test_what_grows_stays_in_the_run() -> None:
    row = floats(1, COLUMNS)
    build = Builder()
    x = build.tensor_parameter("x", "float32", [1])
    wide = build.add(Broadcast((40000, COLUMNS)), build.constant(row))
    joined = build.add(Concat(0), wide, build.constant(floats(3, COLUMNS)))
    total = build.add(Reduce("max", (0,), keep_dims=False), joined)
    _, steps, kept = compiled(build.module({"y": build.pointwise(lambda x, t: x + t, x, total), "w": joined}))
    assert kept == 0
    assert steps >= 2


def _branching(index: int) -> Module:
    """One branch picks a row of a weight, which may lie outside."""
    build = Builder()
    flag = build.parameter("flag", TensorType(BOOL, ()))
    table, places = build.constant(floats(ROWS, COLUMNS)), build.constant(np.full(ROWS, index))
    kinds = [value.type for value in (table, places)]
    then = Builder("then", namer=build.namer)
    held, where = (then.parameter(f"t{number}", kind) for number, kind in enumerate(kinds))
    picked = then.add(Reduce("sum", (0,), keep_dims=False), then.add(Gather(0), held, where))
    other = Builder("other", namer=build.namer)
    row = other.add(Reduce("max", (0,), keep_dims=False), other.parameter("o0", kinds[0]))
    branches = If(then.module({"y": picked}), other.module({"y": row}))
    return build.module({"y": build.add(branches, flag, table, places, table)})


def test_a_fault_belongs_to_the_run_that_meets_it() -> None:
    artifact, _, kept = compiled(_branching(ROWS))
    assert kept == 1  # the other branch's row, which can't fail
    session = argosy.Session(artifact, device="cpu")
    assert session.run({"flag": np.array(False)})["y"].shape == (COLUMNS,)
    with pytest.raises(ArgosyError, match="out of range"):
        session.run({"flag": np.array(True)})


def test_a_branch_reads_what_was_prepared() -> None:
    module = _branching(-1)
    artifact, _, _ = compiled(module)
    session = argosy.Session(artifact, device="cpu")
    (table,) = [i.op.literal.array() for i in module.instructions if i.op.name == "constant" and i.types[0].rank == 2]  # type: ignore[attr-defined,union-attr]
    np.testing.assert_array_equal(session.run({"flag": np.array(False)})["y"], table.max(0))
    np.testing.assert_allclose(session.run({"flag": np.array(True)})["y"], table[-1] * ROWS, 1e-5)


def test_what_has_no_elements_but_a_size_of_the_run_belongs_to_the_run() -> None:
    build = Builder()
    size = build.tensor_parameter("x", "float32", ["n"]).shape[0]
    empty = build.add(Broadcast((0, size)), build.constant(np.zeros((0, 1), np.float32)))
    module = build.module({"y": build.pointwise("neg", build.add(Transpose((1, 0)), empty))})
    artifact, _, kept = compiled(module)
    assert kept == 0
    assert argosy.Session(artifact, device="cpu").run({"x": floats(3)})["y"].shape == (3, 0)
