"""Recurrent layers against ONNX Runtime; DynamicQuantizeLSTM against an LSTM with the weights that it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ops.recurrent import GATES
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

Array = NDArray[Any]
STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6
OUTPUTS = {"RNN": ("y", "h"), "GRU": ("y", "h"), "LSTM": ("y", "h", "c")}
COUNT = {"RNN": 1, "GRU": 2, "LSTM": 3}


def operands(op: str, direction: str = "forward", *, state: bool = True, peepholes: bool = False) -> list[Any]:
    rng = np.random.default_rng(0)
    count, rows = (2 if direction == "bidirectional" else 1), GATES[op.lower()] * HIDDEN
    shapes: list[Any] = [
        (STEPS, BATCH, INPUTS), (count, rows, INPUTS), (count, rows, HIDDEN), (count, 2 * rows), None,
        (count, BATCH, HIDDEN) if state else None,
    ]  # fmt: skip
    if op == "LSTM":
        shapes += [(count, BATCH, HIDDEN) if state else None, (count, 3 * HIDDEN) if peepholes else None]
    made = [None if shape is None else rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    while made[-1] is None:
        made.pop()
    return made


def check(op: str, inputs: list[Any], **options: Any) -> None:
    assert_agrees(op, *inputs, opset=14, outputs=OUTPUTS[op], rtol=1e-4, atol=1e-5, hidden_size=HIDDEN, **options)


@pytest.mark.parametrize("op", OUTPUTS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("state", [False, True])
def test_directions_and_states(op: str, direction: str, state: bool) -> None:
    check(op, operands(op, direction, state=state), direction=direction)


@pytest.mark.parametrize("op", OUTPUTS)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_sequence_lengths(op: str, direction: str) -> None:
    inputs = operands(op, direction)
    inputs[4] = np.array([5, 2, 3], np.int32)
    check(op, inputs, direction=direction)


@pytest.mark.parametrize("op", OUTPUTS)
def test_clip(op: str) -> None:
    check(op, operands(op, peepholes=op == "LSTM"), clip=0.3)


def test_a_clip_of_0_clips_nothing() -> None:
    inputs = operands("GRU")
    for have, want in zip(
        run("GRU", *inputs, outputs=("y", "h"), clip=0.0), run("GRU", *inputs, outputs=("y", "h")), strict=True
    ):
        np.testing.assert_array_equal(have, want)
    with pytest.raises(ModelError, match="'clip' is -1.0"):
        program("GRU", inputs, clip=-1.0)


def test_peepholes_and_coupled_gates() -> None:
    for coupled in (0, 1):
        check(
            "LSTM", operands("LSTM", "bidirectional", peepholes=True), direction="bidirectional", input_forget=coupled
        )


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_linear_before_reset(direction: str) -> None:
    check("GRU", operands("GRU", direction), direction=direction, linear_before_reset=1)


ACTIVATIONS: list[tuple[str, dict[str, Any]]] = [
    ("Relu", {}), ("Softsign", {}), ("Softplus", {}), ("Sigmoid", {}), ("Elu", {}), ("LeakyRelu", {}),
    ("HardSigmoid", {}),
    ("Affine", {"activation_alpha": [0.3], "activation_beta": [0.4]}),
    ("ScaledTanh", {"activation_alpha": [0.3], "activation_beta": [0.4]}),
    ("ThresholdedRelu", {"activation_alpha": [0.3]}),
    ("LeakyRelu", {"activation_alpha": [0.3]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), ACTIVATIONS, ids=str)
def test_activations(name: str, options: dict[str, Any]) -> None:
    check("RNN", operands("RNN"), activations=[name], **options)


def test_parameters_go_to_the_activations_that_take_them() -> None:
    names = ["HardSigmoid", "Relu", "Affine"]
    check("LSTM", operands("LSTM"), activations=names, activation_alpha=[0.3, 0.7], activation_beta=[0.4, 0.1])
    names = ["Sigmoid", "LeakyRelu"] * 2
    check(
        "GRU",
        operands("GRU", "bidirectional"),
        direction="bidirectional",
        activations=names,
        activation_alpha=[0.2, 0.1],
    )


@pytest.mark.parametrize("op", OUTPUTS)
def test_the_batch_first(op: str) -> None:
    inputs = operands(op, "bidirectional")
    expected = run(op, *inputs, outputs=OUTPUTS[op], hidden_size=HIDDEN, direction="bidirectional")
    swapped = [value.swapaxes(0, 1).copy() if place in (0, 5, 6) else value for place, value in enumerate(inputs)]
    found = run(op, *swapped, outputs=OUTPUTS[op], hidden_size=HIDDEN, direction="bidirectional", layout=1)
    np.testing.assert_array_equal(found[0], expected[0].transpose(2, 0, 1, 3))
    for have, want in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(have, want.swapaxes(0, 1))


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("per_column", [False, True])
def test_dynamic_quantize_lstm(kind: Any, per_column: bool) -> None:
    rng = np.random.default_rng(1)
    x, _, _, b, _, h0, c0 = operands("LSTM", "bidirectional")
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    quantised, real = [], []
    for rows in (INPUTS, HIDDEN):
        weight = rng.integers(low, high, (2, rows, 4 * HIDDEN), kind)
        shape = (2, 4 * HIDDEN) if per_column else (2,)
        scale, zero = rng.uniform(0.002, 0.01, shape).astype(np.float32), rng.integers(0, 9, shape, kind)
        spread = (2, 1, 4 * HIDDEN) if per_column else (2, 1, 1)
        whole = weight.astype(np.float32) - zero.astype(np.float32).reshape(spread)
        real.append((whole * scale.reshape(spread)).transpose(0, 2, 1))
        quantised.append((weight, scale, zero))
    (w, w_scale, w_zero), (r, r_scale, r_zero) = quantised
    options = {"outputs": OUTPUTS["LSTM"], "hidden_size": HIDDEN, "direction": "bidirectional"}
    inputs = (x, w, r, b, None, h0, c0, None, w_scale, w_zero, r_scale, r_zero)
    found = run("DynamicQuantizeLSTM", *inputs, domain="com.microsoft", **options)
    expected = run("LSTM", x, *real, b, None, h0, c0, **options)
    for have, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_errors_name_the_node() -> None:
    with pytest.raises(
        ModelError, match=r"LSTM \(node 0 → 'y'\): attribute 'hidden_size' is 7, R is float32\[1, 24, 6\]"
    ):
        program("LSTM", operands("LSTM"), hidden_size=7)
    with pytest.raises(ModelError, match="unknown activation 'tan'"):
        program("RNN", operands("RNN"), activations=["Tan"])
