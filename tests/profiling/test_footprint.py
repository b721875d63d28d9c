"""What `argosy.perf` says of memory, steps and shapes, beside figures counted by hand."""

from __future__ import annotations

import resource
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import argosy
from argosy.profiling import Footprint
from tests.cli import models
from tests.targets import mirror


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.classifier(tmp_path / "model.onnx")


def test_memory_of_a_run_is_what_one_counts(model: Path) -> None:
    artifact = argosy.compile(model, targets=["cpu"])
    report = argosy.perf(artifact, iterations=1, dims={"N": 64})
    found = report.footprint
    artifact.save(model.with_suffix(".argosy"))
    assert argosy.perf(model.with_suffix(".argosy"), iterations=1, dims={"N": 64}).footprint == found
    assert found.weights == 4 * 300 * 4, "the matrix in floats"
    assert found.live == 2 * 64 * 300 * 4, "softmax reads one block of scores and writes another"
    assert found.arena is not None
    assert found.live <= found.arena <= found.live + 64 * 4 * 4 + 3 * 64, "the input too, and gaps to line up"
    assert (found.kernels, found.host_steps, found.copies) == (2, 0, 0)
    assert "weights 4.7 KiB" in str(report)
    assert "2 kernels, 0 host steps, 0 copies" in str(report)
    twice = argosy.perf(argosy.compile(model, targets=["cpu"]), iterations=1, dims={"N": 128}).footprint
    assert twice.live == 2 * found.live


def test_ref_has_no_plan_and_host_steps_are_counted(model: Path) -> None:
    assert argosy.perf(argosy.compile(model, targets=["ref"]), iterations=1, dims={"N": 2}).footprint == Footprint(4800)
    plan = argosy.compile(model, targets=[mirror.MirrorTarget()])
    found = argosy.perf(plan, iterations=1, dims={"N": 2}).footprint
    assert (found.kernels, found.host_steps) == (0, 3)


def test_the_variant_for_the_sizes_is_reported(model: Path) -> None:
    artifact = argosy.compile(model, targets=["cpu"], dims={"N": "2,64"})
    session = argosy.Session(artifact)
    live = {size: argosy.perf(session, iterations=1, dims={"N": size}).footprint.live for size in (2, 64, 5)}
    assert live == {size: 2 * size * 300 * 4 for size in (2, 64, 5)}
    special, general = (argosy.perf(session, iterations=1, dims={"N": size}).variant for size in (64, 5))
    assert special != general == session.variant


def test_equal_ops_on_equal_shapes_are_one_group(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[1, 0]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, "N"])
    graph = helper.make_graph(nodes, "g", [x], [y])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    report = argosy.perf(argosy.compile(path, targets=["ref"]), iterations=2, dims={"N": 5})
    groups = {(entry.op, entry.operands, entry.type): entry for entry in report.shapes}
    relus = [entry for entry in report.shapes if entry.op.startswith("pointwise")]
    assert sorted((entry.operands, entry.type, entry.count) for entry in relus) == [
        ("float32[3, 5]", "float32[3, 5]", 1),
        ("float32[5, 3]", "float32[5, 3]", 2),
    ]
    assert groups["transpose", "float32[5, 3]", "float32[3, 5]"].count == 1
    assert sum(entry.share for entry in report.shapes) == pytest.approx(1)
    assert [entry.seconds for entry in report.shapes] == sorted((e.seconds for e in report.shapes), reverse=True)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system tells no peak")
def test_the_peak_lies_between_what_is_held_and_what_the_kernel_counted(model: Path) -> None:
    held = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    report = argosy.perf(argosy.compile(model, targets=["ref"]), iterations=1, dims={"N": 2})
    assert report.peak_memory is not None
    assert 0.9 * held <= report.peak_memory <= 1.1 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert "process at most " in str(report)
