"""Recurrent layers over tiles of fewer hidden units, which take fewer registers: each gives what ONNX Runtime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import argosy
from argosy.ops.recurrent import GATES
from argosy.options import CompileOptions
from argosy.targets.gpu.codegen import recurrent

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run

STEPS, BATCH, WIDTH, HIDDEN = 3, 2, 5, 40


def model(kind: str) -> Any:
    rng = np.random.default_rng(5)
    rows = GATES[kind.lower()] * HIDDEN
    shapes = {"w": (2, rows, WIDTH), "r": (2, rows, HIDDEN), "b": (2, 2 * rows)}
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 4, name)
        for name, shape in shapes.items()
    ]
    node = helper.make_node(kind, ["x", *shapes], ["y", "h"], hidden_size=HIDDEN, direction="bidirectional")
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", 1, (STEPS, BATCH, WIDTH))],
        [helper.make_tensor_value_info(name, 1, None) for name in ("y", "h")],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("units", [32, 16])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_tiles_of_fewer_units_give_the_same(kind: str, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = model(kind)
    x = {"x": np.random.default_rng(6).standard_normal((STEPS, BATCH, WIDTH)).astype(np.float32)}
    expected = ort.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, x)
    monkeypatch.setattr(recurrent, "_UNITS", (units,))
    found = interpreted_run(argosy.load_onnx(given), options=CompileOptions(strict=True))(x)
    for value, right in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-5)


def test_tiles_have_no_more_units_than_the_layer_needs() -> None:
    assert recurrent.unit_tiles(300) == [64, 32, 16]
    assert recurrent.unit_tiles(20) == [32, 16]
    assert recurrent.unit_tiles(3) == [16]
