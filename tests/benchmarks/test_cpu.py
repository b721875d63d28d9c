"""The comparison on the CPU: who counts, which models count, and a whole model from the command to the row."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import argosy
from argosy.profiling.work import operations
from benchmarks.cpu import __main__ as command
from benchmarks.cpu import table
from benchmarks.cpu.cases import Case, Files, bind, drop_last_softmax, sizes, write
from benchmarks.models import catalog


def row(
    ours: float, *, ort: float, openvino: float, agreed: tuple[str, ...] = ("onnxruntime", "openvino"), **more: Any
) -> dict[str, Any]:
    """A row with one run, times in milliseconds."""
    times = {
        name: {"median": value, "minimum": value}
        for name, value in (("argosy", ours), ("onnxruntime", ort), ("openvino", openvino))
    }
    run = {"times": times, "agreed": list(agreed), "notes": {}, "peak": 1e11, "kernels": [], "load": 0.0}
    facts = {"operations": 2_000_000_000}
    base = {"name": "m", "origin": "built", "quantised": False, "facts": facts, "runs": {"1": run}, "failures": []}
    return {**base, **more}


def test_the_ratio_is_that_to_the_faster_peer() -> None:
    assert table.ratio(row(10.0, ort=12.0, openvino=15.0)["runs"]["1"]) == pytest.approx(1.2)


def test_a_peer_that_does_not_agree_does_not_count() -> None:
    found = row(10.0, ort=5.0, openvino=15.0, agreed=("openvino",))
    assert table.ratio(found["runs"]["1"]) == pytest.approx(1.5)
    assert table.group_of(row(10.0, ort=5.0, openvino=6.0, agreed=())) == "unmeasured"


def test_a_wrong_result_of_ours_has_no_ratio() -> None:
    found = row(1.0, ort=5.0, openvino=6.0)
    found["runs"]["1"]["notes"]["argosy"] = "differs from ref"
    assert table.ratio(found["runs"]["1"]) is None
    assert table.group_of(found) == "unmeasured"


def test_means_are_geometric_and_of_large_fp32_models_only() -> None:
    rows = [
        row(10.0, ort=20.0, openvino=30.0),
        row(10.0, ort=5.0, openvino=30.0),
        row(10.0, ort=80.0, openvino=90.0, quantised=True),
        row(0.1, ort=0.9, openvino=3.0),
    ]
    found = table.means(rows, [1])
    assert found["counted"]["1"] == pytest.approx(math.sqrt(2.0 * 0.5))
    assert found["quantised"]["1"] == pytest.approx(8.0)
    assert found["small"]["1"] == pytest.approx(9.0)


def test_the_share_of_peak_is_operations_over_time() -> None:
    assert table.share_of_peak(row(40.0, ort=1.0, openvino=1.0), "1") == pytest.approx(2e9 / 0.04 / 1e11)


def test_operations_of_a_known_net() -> None:
    # Two products of 3x3 convolutions, by hand: 2 Cout H W Cin 9.
    helper = onnx.helper
    weights = [
        onnx.numpy_helper.from_array(np.zeros((8, 4, 3, 3), np.float32), "w"),
        onnx.numpy_helper.from_array(np.zeros((8, 1, 3, 3), np.float32), "d"),
    ]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
            helper.make_node("Conv", ["y", "d"], ["z"], group=8),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 4, 10, 10])],
        [helper.make_tensor_value_info("z", 1, None)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert operations(argosy.load_onnx(model)) is None
    bind(model, {"x": np.zeros((2, 4, 10, 10), np.float32)})
    assert operations(argosy.load_onnx(model)) == 2 * (2 * 8 * 100 * 4 * 9 + 2 * 8 * 64 * 9)


def test_the_last_softmax_of_a_light_net_goes() -> None:
    model = catalog.make("light_squeezenet")
    before = [node.op_type for node in model.graph.node]
    assert before[-1] == "Softmax"
    drop_last_softmax(model)
    assert [node.op_type for node in model.graph.node] == before[:-1]
    assert model.graph.output[0].name == model.graph.node[-1].output[0]


def test_feeds_keep_their_names_and_bits(tmp_path: Path) -> None:
    case = Case("lstm_small", "built", quantised=False)
    write(case, Files(tmp_path))
    expected = catalog.feeds("lstm_small")
    found = Files(tmp_path).feeds()
    assert list(found) == list(expected)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    program = argosy.load_onnx(Files(tmp_path).model, dims=sizes(found))
    assert all(isinstance(dim, int) for kind in program.inputs.values() for dim in getattr(kind, "dims", ()))
    bound = onnx.load(Files(tmp_path).bound)
    shapes = {v.name: tuple(dim.dim_value for dim in v.type.tensor_type.shape.dim) for v in bound.graph.input}
    assert shapes == {name: value.shape for name, value in found.items()}


def test_a_model_from_the_command_to_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "^mobilenet_small$", "--threads", "1", "--rounds", "1", "--peers", "onnxruntime", "--json"]
    assert command.main(words) == 0
    (found,) = json.loads(capsys.readouterr().out)["models"]
    assert found["failures"] == []
    assert found["runs"]["1"]["agreed"] == ["onnxruntime"]
    assert found["runs"]["1"]["kernels"]
    assert found["facts"]["operations"] > 0


def test_a_failure_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "^mobilenet_small$", "--threads", "1", "--limit", "0.01", "--json"]
    assert command.main(words) == 0
    (found,) = json.loads(capsys.readouterr().out)["models"]
    assert found["runs"] == {}
    assert "more than" in found["failures"][0]


def test_no_model_is_a_wrong_use() -> None:
    assert command.main(["--only", "no such model"]) == 2
