"""The backend interface, by ONNX's own runner on a sample, and by hand."""

from __future__ import annotations

import unittest

import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import TensorProto, helper

import argosy.backend
from argosy.errors import UnsupportedError, UsageError


def relu_model() -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # onnx makes its own cases with overflowing casts
def test_onnx_runs_its_own_suite_through_the_interface() -> None:
    runner = onnx.backend.test.BackendTest(argosy.backend.Backend, "argosy")
    for pattern in ("test_add_cpu", "test_matmul_[234]d_cpu", "test_lstm_defaults_cpu", "test_split_.*_cpu"):
        runner.include(pattern)
    suite = runner.test_suite
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    assert result.wasSuccessful()
    assert result.testsRun - len(result.skipped) >= 10


@pytest.mark.parametrize("device", ["CPU", "REF", "cpu:0"])
def test_inputs_come_in_order_or_by_name(device: str) -> None:
    prepared = argosy.backend.prepare(relu_model(), device)
    x = np.array([-1, 2], np.float32)
    assert prepared.run([x])[0].tolist() == [0, 2]
    assert prepared.run({"x": x}).y.tolist() == [0, 2]  # type: ignore[attr-defined]
    assert argosy.backend.run_model(relu_model(), x, device)[0].tolist() == [0, 2]


def test_a_node_runs_alone() -> None:
    node = helper.make_node("Concat", ["a", "b"], ["c"], axis=0)
    found = argosy.backend.run_node(node, [np.array([1.0]), np.array([2.0])], "REF")
    assert found[0].tolist() == [1, 2]


def test_what_is_not_there_is_refused() -> None:
    assert not argosy.backend.supports_device("CUDA")
    with pytest.raises(UsageError, match="no device 'CUDA'"):
        argosy.backend.prepare(relu_model(), "CUDA")
    with pytest.raises(UsageError, match="takes 1"):
        argosy.backend.prepare(relu_model(), "REF").run([1, 2])
    model = relu_model()
    model.graph.node[0].op_type = "Nonsense"
    assert not argosy.backend.Backend.is_compatible(model)
    with pytest.raises(UnsupportedError, match="Nonsense"):
        argosy.backend.prepare(model, "REF")
