"""Recurrent layers over tiles of fewer hidden units, which take fewer registers: each gives what ONNX Runtime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import argosy
from argosy.ir import Builder, TensorType
from argosy.ir.dtype import FLOAT32
from argosy.ops.recurrent import GATES, Recurrent
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.codegen import recurrent, recurrent_rows, recurrent_step
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.gpu.solutions import recurrent as solutions

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run

STEPS, BATCH, WIDTH, HIDDEN = 3, 2, 5, 40
STRICT = CompileOptions(strict=True)


def choose(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Let the model of the times choose a way: tiles, rows or launches."""
    times = {name: float(name != way) for name in ("tiles", "rows", "launches")}
    monkeypatch.setattr(solutions, "step_times", lambda *_: solutions.StepTimes(**times))
    if way == "rows":
        monkeypatch.setattr(solutions, "recurrence_kernel", None)
        monkeypatch.setattr(solutions, "step_kernel", None)


def model(
    kind: str, *, batch: int | str = BATCH, steps: int | str = STEPS, hidden: int = HIDDEN, **attributes: Any
) -> Any:
    rng = np.random.default_rng(5)
    rows = GATES[kind.lower()] * hidden
    shapes = {"w": (2, rows, WIDTH), "r": (2, rows, hidden), "b": (2, 2 * rows)}
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 4, name)
        for name, shape in shapes.items()
    ]
    node = helper.make_node(
        kind, ["x", *shapes], ["y", "h"], hidden_size=hidden, direction="bidirectional", **attributes
    )
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", 1, (steps, batch, WIDTH))],
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
    choose(monkeypatch, "tiles")
    found = interpreted_run(argosy.load_onnx(given), options=STRICT)(x)
    for value, right in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", ["rows", "launches"])
@pytest.mark.parametrize(("kind", "late"), [("RNN", None), ("LSTM", None), ("GRU", 0), ("GRU", 1)])
def test_rows_and_steps_that_are_launches_give_the_same(
    kind: str, late: int | None, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = model(kind, hidden=11, **({} if late is None else {"linear_before_reset": late}))
    x = {"x": np.random.default_rng(6).standard_normal((STEPS, BATCH, WIDTH)).astype(np.float32)}
    expected = ort.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, x)
    choose(monkeypatch, way)
    found = interpreted_run(argosy.load_onnx(given), options=STRICT)(x)
    for value, right in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("each", [1, 64])
@pytest.mark.parametrize("way", ["rows", "launches"])
def test_any_number_of_sequences_and_rows_that_no_registers_hold(
    each: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (recurrent_rows, recurrent_step):
        monkeypatch.setattr(module, "_EACH", each)
    choose(monkeypatch, way)
    given = model("LSTM", batch="N", steps=STEPS if way == "launches" else "T", hidden=5)
    session = ort.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
    run = interpreted_run(argosy.load_onnx(given), options=STRICT)
    for batch in (1, 5):
        x = {"x": np.random.default_rng(batch).standard_normal((STEPS, batch, WIDTH)).astype(np.float32)}
        for value, right in zip(run(x).values(), session.run(None, x), strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", ["tiles", "rows", "launches"])
def test_weights_of_8_bits_stay_so_in_memory(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = 66
    rng = np.random.default_rng(8)
    codes = {name: rng.integers(-127, 128, (1, 4 * hidden, hidden), np.int8) for name in ("w", "r")}
    scale = np.float32(0.002)
    nodes = [helper.make_node("DequantizeLinear", [name, "scale"], [f"{name}_real"]) for name in codes]
    nodes.append(helper.make_node("LSTM", ["x", "w_real", "r_real"], ["y"], hidden_size=hidden))
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", 1, (STEPS, BATCH, hidden))],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(value, name) for name, value in (codes | {"scale": np.array(scale)}).items()],
    )
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    choose(monkeypatch, way)
    program, arch = argosy.load_onnx(given), find_gpu("sm_90")
    assert arch is not None
    module = PassManager(tuple(pipeline(STRICT))).run(program.main)
    buffers = lower_module(module, arch, STRICT, {}, {}).plan.buffers
    assert sum(buffer.type.startswith("int8") for buffer in buffers) == len(codes)
    steady = [buffer.type for buffer in buffers if buffer.kind in ("weight", "prepared")]
    assert not [kind for kind in steady if kind.startswith("float") and str(hidden) in kind]
    x = {"x": rng.standard_normal((STEPS, BATCH, hidden)).astype(np.float32)}
    session = ort.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = interpreted_run(program, options=STRICT)(x).values()
    np.testing.assert_allclose(found, session.run(None, x)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "gfx942", "gfx1100"])
def test_large_layers_take_launches_and_one_sequence_no_tiles(arch: str) -> None:
    row = find_gpu(arch)
    assert row is not None
    op = Recurrent("lstm", "forward", ("sigmoid", "tanh", "tanh"), (0.0,) * 3, (0.0,) * 3)
    for hidden in (16, 64, 512, 1024):
        r = Builder().parameter("r", TensorType(FLOAT32, (1, 4 * hidden, hidden)))
        times = solutions.step_times(op, r, 1, row)
        assert times.rows < times.tiles
        assert times.launches < times.rows or hidden < 512


def test_a_thousand_small_sequences_take_tiles() -> None:
    row = find_gpu("sm_90")
    assert row is not None
    op = Recurrent("rnn", "forward", ("tanh",), (0.0,), (0.0,))
    times = solutions.step_times(op, Builder().parameter("r", TensorType(FLOAT32, (1, 32, 32))), 1000, row)
    assert times.tiles < min(times.rows, times.launches)


def test_tiles_have_no_more_units_than_the_layer_needs() -> None:
    assert recurrent.unit_tiles(300) == [64, 32, 16]
    assert recurrent.unit_tiles(20) == [32, 16]
    assert recurrent.unit_tiles(3) == [16]
