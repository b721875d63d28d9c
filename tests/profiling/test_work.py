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
from argosy.profiling.instructions import InstructionTime, Rated, by_op, by_shape
from argosy.profiling.roofline import Roofline, roofline_of
from argosy.profiling.work import operations, operations_by_type
from argosy.targets.gpu.arches.row import Product
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


PICK = 4 * 2 * (2 * 8 * 10) + 8
"""A row of each channel of two images, read and written, and the number of it."""


def test_the_classifier_by_hand(tmp_path: Path) -> None:
    model = models.classifier(tmp_path / "model.onnx")
    report = argosy.perf(argosy.compile(model, targets=["ref"]), iterations=2, dims={"N": 64})
    product, relu, softmax = report.instructions
    assert report.operations == product.operations == 2 * 64 * 300 * 4
    assert product.bytes == 4 * (64 * 4 + 4 * 300 + 64 * 300)
    assert relu.operations == softmax.operations == 0
    assert relu.rates["gflops"] is None
    assert relu.bytes == softmax.bytes == 4 * 2 * 64 * 300
    told = report.to_json()
    assert told["gflops"] == pytest.approx(153_600 / report.times.median / 1e9)
    assert told["instructions"][0]["gflops"] == pytest.approx(153_600 / product.seconds / 1e9)
    assert told["instructions"][1]["gbytes"] == pytest.approx(153_600 / relu.seconds / 1e9)
    assert told["peak_share"] is None, "ref has no arch"
    assert "GFLOP/s" in str(report)
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert [row["operations"] for row in rows] == ["153600", "0", "0"]


def test_a_convolution_and_a_gather_by_hand(tmp_path: Path) -> None:
    model = _network(tmp_path / "model.onnx")
    report = argosy.perf(argosy.compile(model, targets=["ref"]), iterations=2, dims={"N": 2})
    told = {entry.node: (entry.operations, entry.bytes) for entry in report.instructions}
    assert told["conv"] == (CONV, 4 * (2 * 4 * 100 + 8 * 4 * 9 + 2 * 8 * 100))
    assert told["add"] == (0, 4 * 2 * (2 * 8 * 100)), "one operand, though it is read twice"
    assert told["pick"] == (0, PICK)
    assert report.operations == CONV
    assert operations(argosy.load_onnx(model)) is None
    assert operations_by_type(argosy.load_onnx(model, dims={"N": 2})) == {"float32": CONV}


def test_kernels_have_the_arithmetic_of_their_nodes(tmp_path: Path) -> None:
    """Also of a slim artifact, which holds no program."""
    for slim in (False, True):
        artifact = argosy.compile(_network(tmp_path / "model.onnx"), targets=["cpu"], slim=slim)
        report = argosy.perf(artifact, iterations=2, dims={"N": 2})
        assert report.operations == CONV
        assert report.peak_share is None, "the clock of a CPU is in no row"
        (conv,) = [entry for entry in report.instructions if entry.operations]
        assert conv.operations == CONV
        assert conv.rates["gflops"] == pytest.approx(CONV / conv.seconds / 1e9)
        assert conv.rates["roofline"] is conv.least is None
        pick = report.instructions[-1]
        assert (pick.node, pick.operations, pick.bytes) == ("pick", 0, PICK - 8), "the number is in the code"


def test_bytes_of_kernels_by_hand(tmp_path: Path) -> None:
    model = models.classifier(tmp_path / "model.onnx")
    report = argosy.perf(argosy.compile(model, targets=["cpu"]), iterations=2, dims={"N": 64})
    product, softmax = report.instructions
    assert (product.operations, softmax.operations) == (2 * 64 * 300 * 4, 0)
    weights = (product.bytes or 0) - 4 * (64 * 4 + 64 * 300)
    assert 4 * 300 * 4 <= weights <= 4 * 320 * 4, "packed for the vectors of this machine"
    assert softmax.bytes == 4 * 2 * 64 * 300
    assert report.to_json()["instructions"][1]["gbytes"] == pytest.approx(153_600 / softmax.seconds / 1e9)
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert float(rows[0]["gflops"]) == pytest.approx(153_600 / product.seconds / 1e9, rel=1e-3)
    assert [row["gflops"] for row in rows[1:]] == [row["roofline"] for row in rows[1:]] == [""]
    (line,) = [line for line in str(report).splitlines() if line.endswith(f"  {softmax.op}  {softmax.node}")]
    assert float(line.split()[2]) == pytest.approx(softmax.rates["gbytes"], rel=0.05)


def test_bodies_of_loops_count_as_often_as_they_run(tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("MatMul", ["before", "w"], ["after"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, [8, 16]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, [8, 16]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)],
        "g",
        [
            helper.make_tensor_value_info("count", TensorProto.INT64, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 16]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 16])],
        [numpy_helper.from_array(np.eye(16, dtype=np.float32), "w")],
    )
    path = tmp_path / "loop.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    inputs = {"count": np.asarray(5), "x": np.ones((8, 16), np.float32)}
    report = argosy.perf(argosy.compile(path, targets=["cpu"]), iterations=1, inputs=inputs)
    assert report.operations == 5 * 2 * 8 * 16 * 16
    (product,) = [entry for entry in report.instructions if entry.operations]
    assert (product.calls, product.operations) == (5, report.operations)


@pytest.mark.parametrize(
    ("dtype", "tf32", "tera"),
    [("float32", False, 66.9), ("float32", True, 494.7), ("float16", False, 989.4), ("bfloat16", True, 989.4)],
)
def test_peaks_are_those_of_the_data_sheet(dtype: str, tf32: bool, tera: float) -> None:
    """NVIDIA H100 SXM: dense peaks, half of the data sheet's sparse 989, 1,979 and 1,979 of tf32, fp16 and bf16."""
    found = roofline_of(VariantRecord("k", "gpu-sm_90", "sm_90", "w", ("product=h100",), numeric={"allow_tf32": tf32}))
    assert found is not None
    assert "H100" in found.words
    assert found.compute_seconds({dtype: 10**12}) == pytest.approx(1 / tera, rel=1e-3)
    both = found.compute_seconds({dtype: 10**12, "float16": 10**12})
    assert both is not None
    assert math.isclose(both, 1 / tera + (dtype != "float16") / 989.4, rel_tol=1e-3) or dtype == "float16"
    assert found.compute_seconds({dtype: 1, "int32": 1}) is None, "no peak is known for it"
    assert found.seconds({dtype: 10**12}, 0) == pytest.approx(1 / tera, rel=1e-3)
    assert found.seconds({}, 335 * 10**9) == pytest.approx(0.1), "3,350 GB/s"


def test_the_roof_is_the_lower_of_peak_and_bandwidth_times_intensity() -> None:
    """A device of 100 operations and 10 bytes a second: the ridge is at ten operations a byte."""
    roofline = Roofline(Product("p", "a", "P", bandwidth=10.0, peaks=(("fp32", 100.0),)))
    for operations_, moved, attainable in ((400, 20, 100), (400, 40, 100), (400, 80, 50), (400, 400, 10)):
        least = roofline.seconds({"float32": operations_}, moved)
        assert least is not None
        assert operations_ / least == pytest.approx(min(100, 10 * operations_ / moved)) == attainable
        entry = Rated(seconds=16.0, share=1.0, operations=operations_, bytes=moved, least=least)
        assert entry.rates["roofline"] == pytest.approx((operations_ / 16) / attainable)


def test_groups_are_rated_where_all_in_them_are() -> None:
    def instruction(op: str, kind: str, moved: int | None) -> InstructionTime:
        return InstructionTime(
            node="n", op=op, operands=kind, type=kind, calls=1, seconds=0.5, share=0.25, operations=10**9, bytes=moved
        )

    entries = [instruction("a", "x", 10**9), instruction("a", "y", 3 * 10**9), instruction("b", "x", None)]
    entries.append(instruction("b", "x", 10**9))
    first, second = by_op(entries)
    assert (first.op, first.count, first.operations, first.bytes) == ("a", 2, 2 * 10**9, 4 * 10**9)
    assert first.rates == {"gflops": 2.0, "gbytes": 4.0, "roofline": None}
    assert (second.operations, second.bytes) == (2 * 10**9, None), "of one it is not known"
    assert [(entry.op, entry.type, entry.count) for entry in by_shape(entries)] == [
        ("b", "x", 2),
        ("a", "x", 1),
        ("a", "y", 1),
    ]


def test_no_peak_is_guessed() -> None:
    assert roofline_of(VariantRecord("k", "cpu-x86-64", "x86-64-v3", "w")) is None
    assert roofline_of(VariantRecord("k", "gpu", "sm_90", "w", ("product=h999",))) is None
    assert roofline_of(None) is None
    orin = roofline_of(VariantRecord("k", "gpu", "sm_87", "w", ("product=orin",)))
    assert orin is not None
    assert orin.compute_seconds({"float32": 1}) is orin.seconds({"float32": 1}, 1) is None
    assert orin.seconds({}, 2048) == pytest.approx(1e-8), "204.8 GB/s"
