"""Kernels are called by what they do, the same in every compile, and `perf` groups by that, node names beside it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import argosy
from argosy.artifact.plan import CallStep, StraightBlock
from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import FLOAT32, INT64
from argosy.ops.col2im import Col2Im
from argosy.targets.cpu.solution import SOLUTIONS

WINDOWED = {
    "image": TensorType(INT64, (2,)), "block": TensorType(INT64, (2,)), "x": TensorType(FLOAT32, (1, 8, 12)),
}  # fmt: skip


def model() -> onnx.ModelProto:
    """A strided convolution with a Relu, a lone multiplication, a sum over the channels."""
    weights = [
        numpy_helper.from_array(np.full((32, 16, 3, 3), 0.5, np.float32), "w"),
        numpy_helper.from_array(np.array([1], np.int64), "axes"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="stem/conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"], name="stem/relu"),
        helper.make_node("ReduceSum", ["r", "axes"], ["s"], name="head/sum"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 16, 8, 8])],
        [helper.make_tensor_value_info("r", 1, None), helper.make_tensor_value_info("s", 1, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def entries(artifact: argosy.Artifact) -> list[str]:
    """The functions that a run calls, in order."""
    (variant,) = artifact.variants
    blocks = artifact.plan(variant.key).body
    steps: list[Any] = [step for block in blocks if isinstance(block, StraightBlock) for step in block.steps]
    return [step.entry for step in steps if isinstance(step, CallStep)]


@pytest.fixture(scope="module")
def artifact() -> argosy.Artifact:
    return argosy.compile(model(), targets=["cpu"])


def test_a_name_tells_op_window_and_way(artifact: argosy.Artifact) -> None:
    found = entries(artifact)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*_[0-9a-f]{16}", entry) for entry in found)
    families = [entry.rpartition("_")[0] for entry in found]
    assert "conv3x3s2_direct" in families
    assert any(family.startswith("reduce_sum") for family in families)
    assert "to_blocked" in families


def test_names_repeat(artifact: argosy.Artifact) -> None:
    assert entries(argosy.compile(model(), targets=["cpu"])) == entries(artifact)


def test_perf_groups_by_what_kernels_do(artifact: argosy.Artifact) -> None:
    report = argosy.perf(artifact, iterations=2)
    assert {op.op for op in report.ops} == {entry.rpartition("_")[0] for entry in entries(artifact)}
    by_op = {entry.op: entry.node for entry in report.instructions}
    assert by_op["conv3x3s2_direct"] == "stem/relu"
    assert {entry.node for entry in report.instructions} <= {"stem/conv", "stem/relu", "head/sum"}


def test_what_is_watched_is_what_the_run_gives(artifact: argosy.Artifact) -> None:
    session = argosy.Session(artifact)
    x = np.random.default_rng(0).standard_normal((1, 16, 8, 8)).astype(np.float32)
    seen: dict[str, Any] = {}

    def observe(instruction: Any, results: Any) -> None:
        assert len(results) == len(tuple(results)) == len(results[:])
        seen[instruction.source] = results[0]

    found = session.observe({"x": x}, observe)
    np.testing.assert_array_equal(seen["head/sum"], found["s"])


@pytest.mark.parametrize("name", [name for name, _ in SOLUTIONS.items()])
def test_every_solution_has_a_name_that_c_takes(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9 -]*", name)


def test_windows_that_only_the_run_knows() -> None:
    """Where strides or the window are no attributes, the label is the op's name alone."""
    build = Builder()
    image, block, x = (build.parameter(name, kind) for name, kind in WINDOWED.items())
    module = build.module({"y": build.add(Col2Im(), x, image, block)})
    artifact = argosy.compile(Program(module), targets=("cpu",), strict=True)
    assert any(entry.startswith("col2im_") for entry in entries(artifact))
