"""Nodes in the form of another version of their op than the model imports."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from argosy.errors import ModelError
from argosy.frontends.onnx import load
from argosy.frontends.onnx.importer import ImportOptions
from argosy.frontends.onnx.versions import written_for
from tests.frontends.onnx.one_node import model, run

X = np.arange(24, dtype=np.float32).reshape(1, 4, 1, 6)
AXES = np.array([0], np.int64)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "opset", "read_as"),
    [
        ("Squeeze", ["x"], {"axes": [0]}, 14, 11),
        ("Slice", ["x"], {"starts": [0], "ends": [1]}, 15, 1),
        ("Pad", ["x"], {"pads": [0, 0], "value": 1.0}, 19, 2),
        ("Upsample", ["x"], {"scales": [1.0, 2.0]}, 19, 7),
        ("ReduceSum", ["x"], {"axes": [0]}, 19, 11),
        ("ReduceSum", ["x", "axes"], {"noop_with_empty_axes": 1}, 12, 13),
        ("RoiAlign", ["x", "r", "b"], {"coordinate_transformation_mode": "half_pixel"}, 12, 16),
        ("HardSwish", ["x"], {}, 13, 14),
        ("LayerNormalization", ["x", "s"], {}, 12, 17),
        ("Squeeze", ["x"], {}, 14, 14),
        ("Squeeze", ["x", "axes"], {"axes": [0]}, 14, 14),
        ("Squeeze", ["x"], {"axis": 0}, 14, 14),
        ("NoSuchOp", ["x"], {"axis": 0}, 14, 14),
    ],
)
def test_version_of_a_form(op: str, inputs: list[str], attributes: Any, opset: int, read_as: int) -> None:
    assert written_for(helper.make_node(op, inputs, ["y"], **attributes), "", opset) == read_as


def test_what_is_read_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(run("Squeeze", X, opset=14, axes=[0, 2]), X[0, :, 0])
    assert "Squeeze has the form of opset 11, the model imports 14; read as of 11" in caplog.text
    reduced = run("ReduceSum", X, AXES, opset=12, constant=(1,), noop_with_empty_axes=1)
    np.testing.assert_array_equal(reduced, X.sum(0, keepdims=True))
    hard = run("HardSwish", X, opset=13)
    np.testing.assert_allclose(hard, X * np.clip(X / 6 + 0.5, 0, 1), rtol=1e-6)


def test_strict_refuses() -> None:
    proto = model("Squeeze", [X], opset=14, axes=[0])
    with pytest.raises(ModelError, match=r"Squeeze \(node 0 → 'y'\): Squeeze has the form of opset 11"):
        load(proto, ImportOptions(strict=True))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("alpha", 2, 2.0), ("alpha", [0.5], 0.5), ("alpha", [2], 2.0)],
)
def test_attributes_of_another_type(name: str, value: Any, expected: float, caplog: pytest.LogCaptureFixture) -> None:
    found = run("LeakyRelu", -X, **{name: value})
    np.testing.assert_allclose(found, -X * expected)
    assert f"attribute {name!r} has type" in caplog.text
    with pytest.raises(ModelError, match=f"attribute {name!r} has type"):
        load(model("LeakyRelu", [X], **{name: value}), ImportOptions(strict=True))


@pytest.mark.parametrize("value", [[0.5, 0.5], "much"])
def test_attributes_that_mean_nothing(value: Any) -> None:
    with pytest.raises(ModelError, match="attribute 'alpha' has type"):
        load(model("LeakyRelu", [X], alpha=value))


def test_a_wrongly_declared_output(caplog: pytest.LogCaptureFixture) -> None:
    proto = model("ArgMax", [X])
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None))
    assert str(load(proto).outputs["y"]).startswith("int64")
    assert "output 'y': is declared float32 but computed as int64" in caplog.text
    with pytest.raises(ModelError, match="output 'y': is declared float32 but computed as int64"):
        load(proto, ImportOptions(strict=True))
