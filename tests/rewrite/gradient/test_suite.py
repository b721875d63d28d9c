"""Derivatives of the models of ONNX's suite in float64, against differences along a random direction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from argosy.errors import ModelError, UnsupportedError
from argosy.frontends.onnx import load
from argosy.ir import Builder, Env, Module, TensorType, Value
from argosy.ir.dtype import FLOAT64
from argosy.ir.interpreter import Interpreter
from argosy.ir.types import UnrankedError
from argosy.rewrite.gradient import gradients
from argosy.rewrite.rebuild import namer_of
from tests.conformance.cases import Case, load_cases

STEP = 1e-6
NO_RULE = {
    "col2im", "cumulative", "deform_conv", "dequantize", "determinant", "dft", "frames", "grid_sample",
    "reduce", "resize", "rnn", "roi_align", "scan", "scatter_elements", "scatter_nd", "tree_ensemble", "unique",
}  # fmt: skip
"""Ops of the suite that are refused; some of them for some attributes only."""
SINGLE = ("causal_conv_with_state_silu", "causal_conv_with_state_swish")
"""Cases that compute in float32 on the way, whatever their inputs are."""


def doubled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs and initializers of float64 for those of float32."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for value in (*result.graph.input, *result.graph.output):
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in result.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            wide = onnx.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(wide, tensor.name))
    return result


def floats(values: Any) -> list[Value]:
    return [value for value in values if isinstance(value.type, TensorType) and value.dtype is FLOAT64]


def with_gradients(module: Module) -> tuple[Module, int]:
    """The sums of the float results, and for each its derivatives; how many there are."""
    builder = Builder("main", namer=namer_of(module))
    for parameter in module.parameters:
        builder.adopt(parameter)
    for instruction in module.instructions:
        builder.keep(instruction, instruction.operands)
    xs = floats(parameter.result() for parameter in module.parameters)
    ys = floats(module.results)
    found = [gradient for y in ys for gradient in gradients(builder, y, xs)] if xs else []
    return builder.module([(str(index), value) for index, value in enumerate((*ys, *found))]), len(ys)


def moved(arguments: list[Any], directions: dict[int, Any], length: float) -> list[Any]:
    return [
        value + length * directions[place] if place in directions else value for place, value in enumerate(arguments)
    ]


def verdict(case: Case) -> str:
    """`agrees`, or why there is nothing to compare; raises AssertionError where a derivative is wrong."""
    model, data = case.read()
    try:
        main = load(doubled(model)).main
        module, count = with_gradients(main)
    except UnsupportedError as error:
        return f"refused: {error.items[0].rsplit(': ', 1)[-1] if error.items else error.what.split()[0]}"
    except (ModelError, UnrankedError):
        return "not of float64, or of unknown rank"
    rng = np.random.default_rng(len(case.name))
    arguments = [data[0].inputs[parameter.names[0]] for parameter in main.parameters]
    places = [place for place, parameter in enumerate(main.parameters) if floats([parameter.result()])]
    directions = {place: rng.standard_normal(np.shape(arguments[place])) for place in places}
    for place in places:  # in float64, and away from corners
        arguments[place] = arguments[place] + 1e-3 * rng.random(np.shape(arguments[place]))
    run = Interpreter(module).run
    values = run(arguments, Env())
    ends = [run(moved(arguments, directions, side * STEP), Env()) for side in (1, -1)]
    rows = iter(values[count:])
    for index in range(count):
        slope = sum(float(np.sum(next(rows) * directions[place])) for place in places)
        expected = (np.sum(ends[0][index]) - np.sum(ends[1][index])) / (2 * STEP)
        scale = max(abs(slope), abs(expected), 1e-3 * np.abs(values[index]).sum(), 1e-6)
        assert math.isnan(expected) or abs(slope - expected) <= 1e-4 * scale, (index, slope, expected)
    return "agrees" if count and places else "no floats"


@pytest.mark.nightly
def test_the_models_of_the_suite() -> None:
    verdicts: dict[str, list[str]] = {}
    wrong = []
    with np.errstate(all="ignore"):
        for case in load_cases(("node",)):
            if "expanded" in case.name or any(name in case.name for name in SINGLE) or not case.read()[1]:
                continue
            try:
                verdicts.setdefault(verdict(case), []).append(case.name)
            except AssertionError as error:
                wrong.append((case.name, error.args))
    assert not wrong
    refused = {name.removeprefix("refused: ") for name in verdicts if name.startswith("refused: ")}
    assert refused <= NO_RULE, verdicts
    assert len(verdicts["agrees"]) > 600
