"""Operations and bytes beside counts by hand, and shares of peaks beside data sheets."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.artifact.manifest import VariantRecord
from argosy.profiling.work import least_seconds, operations, operations_by_type
from tests.cli import models


def _network(path: Path) -> Path:
    """A convolution, an addition with itself, rows picked by index."""
    weights = [
        numpy_helper.from_array(np.ones((8, 4, 3, 3), np.float32), "w"),
        numpy_helper.from_array(np.array([1], np.int64), "rows"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "c"], ["d"], name="add"),
        helper.make_node("Gather", ["d", "rows"], ["y"], name="pick", axis=2),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 10, 10])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8, 1, 10])
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path


CONV = 2 * (2 * 8 * 10 * 10) * (4 * 3 * 3)
"""Of two images: a multiplication and an addition for each result, input channel and tap."""


def test_the_classifier_by_hand(tmp_path: Path) -> None:
    model = models.classifier(tmp_path / "model.onnx")
    report = argosy.perf(argosy.compile(model, targets=["ref"]), iterations=2, dims={"N": 64})
    product, relu, softmax = report.instructions
    assert report.operations == product.operations == 2 * 64 * 300 * 4
    assert product.bytes == 4 * (64 * 4 + 4 * 300 + 64 * 300)
    assert relu.operations is None
    assert relu.bytes == softmax.bytes == 4 * 2 * 64 * 300
    told = report.to_json()
    assert told["gflops"] == pytest.approx(153_600 / report.times.median / 1e9)
    assert told["instructions"][0]["gflops"] == pytest.approx(153_600 / product.seconds / 1e9)
    assert told["instructions"][1]["gbytes"] == pytest.approx(153_600 / relu.seconds / 1e9)
    assert told["peak_share"] is None, "ref has no arch"
    assert "GFLOP/s" in str(report)
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert [row["operations"] for row in rows] == ["153600", "", ""]


def test_a_convolution_by_hand_and_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    model = _network(tmp_path / "model.onnx")
    report = argosy.perf(argosy.compile(model, targets=["ref"]), iterations=2, dims={"N": 2})
    told = {entry.node: (entry.operations, entry.bytes) for entry in report.instructions}
    assert told["conv"] == (CONV, None)
    assert told["add"] == (None, 4 * 2 * (2 * 8 * 100)), "one operand, though it is read twice"
    assert told["pick"] == (None, None), "it reads what the index says"
    assert report.operations == CONV
    assert operations(argosy.load_onnx(model)) is None
    assert operations_by_type(argosy.load_onnx(model, dims={"N": 2})) == {"float32": CONV}


def test_kernels_have_the_arithmetic_of_the_model_as_a_whole_alone(tmp_path: Path) -> None:
    artifact = argosy.compile(_network(tmp_path / "model.onnx"), targets=["cpu"])
    report = argosy.perf(artifact, iterations=1, dims={"N": 2})
    assert report.operations == CONV
    assert report.peak_share is None, "the clock of a CPU is in no row"
    slim = argosy.compile(_network(tmp_path / "model.onnx"), targets=["cpu"], slim=True)
    assert argosy.perf(slim, iterations=1, dims={"N": 2}).operations is None


@pytest.mark.parametrize(
    ("precision", "tf32", "tera"),
    [("fp32", False, 66.9), ("fp32", True, 494.7), ("fp16", False, 989.4), ("bf16", False, 989.4)],
)
def test_peaks_are_those_of_the_data_sheet(precision: str, tf32: bool, tera: float) -> None:
    """NVIDIA H100 SXM: dense peaks, half of the data sheet's sparse 989, 1,979 and 1,979 of tf32, fp16 and bf16."""
    numeric: dict[str, bool | int | str] = {"precision": precision, "allow_tf32": tf32}
    variant = VariantRecord("k", "gpu-sm_90", "sm_90", "w", ("product=h100",), numeric=numeric)
    found = least_seconds({"float32": 10**12}, variant)
    assert found is not None
    assert found[0] == pytest.approx(1 / tera, rel=1e-3)
    assert "H100" in found[1]
    both = least_seconds({"float32": 10**12, "float16": 10**12}, variant)
    assert both is not None
    assert math.isclose(both[0], found[0] + 1 / 989.4, rel_tol=1e-3)
    assert least_seconds({"float32": 1, "int32": 1}, variant) is None, "no peak is known for it"
    assert least_seconds({}, variant) is None


def test_no_peak_is_guessed() -> None:
    assert least_seconds({"float32": 1}, VariantRecord("k", "cpu-x86-64", "x86-64-v3", "w")) is None
    assert least_seconds({"float32": 1}, VariantRecord("k", "gpu", "sm_87", "w", ("product=orin",))) is None
    assert least_seconds({"float32": 1}, VariantRecord("k", "gpu", "sm_90", "w", ("product=h999",))) is None
