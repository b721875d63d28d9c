"""A sequence tagger: a bidirectional LSTM over sequences of unequal lengths, then a forward one whose state is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx

from benchmarks.models.family import Family, Preset
from benchmarks.models.graph import Dim, Graph
from benchmarks.models.inputs import Input
from benchmarks.models.transformer import linear

__all__ = ["FAMILY", "Lstm"]


@dataclass(frozen=True, slots=True)
class Lstm:
    """`features` of each step in, `hidden` of each direction, `tags` of each step out."""

    features: int = 80
    hidden: int = 256
    tags: int = 32
    batch: Dim = "batch"
    sequence: Dim = "sequence"


def weights(graph: Graph, features: int, hidden: int, directions: int) -> tuple[str, str, str]:
    """W, R and B of an LSTM; the gates see sums of variance about 4, which drives them well off their middle."""
    return (
        graph.matrix("input", (directions, 4 * hidden, features), features, math.sqrt(2)),
        graph.matrix("recurrent", (directions, 4 * hidden, hidden), hidden, 2.0),
        graph.weight("bias", (directions, 8 * hidden), -0.2, 0.2),
    )


def build(sizes: Lstm) -> onnx.ModelProto:
    """The model for these sizes."""
    graph = Graph("lstm")
    steps, lengths, hidden, cell = (graph.input(entry.name, entry.dtype, entry.shape) for entry in inputs(sizes))
    value = graph.op("Transpose", steps, perm=[1, 0, 2])
    with graph.scope("both_ways"):
        parameters = weights(graph, sizes.features, sizes.hidden, 2)
        (value,) = graph.ops(
            "LSTM", 1, value, *parameters, lengths, hidden_size=sizes.hidden, direction="bidirectional"
        )
        joined = graph.op("Transpose", value, perm=[0, 2, 1, 3])
        joined = graph.op("Reshape", joined, graph.constant([0, 0, 2 * sizes.hidden]))
    with graph.scope("forward"):
        parameters = weights(graph, 2 * sizes.hidden, sizes.hidden, 1)
        value, last_hidden, last_cell = graph.ops(
            "LSTM", 3, joined, *parameters, "", hidden, cell, hidden_size=sizes.hidden
        )
        value = graph.op("Transpose", graph.op("Squeeze", value, graph.constant([1])), perm=[1, 0, 2])
    scores = linear(graph, value, (sizes.hidden, sizes.tags), "tags", gain=3.0)
    graph.output(graph.op("LogSoftmax", scores, axis=-1), "tags", "float32", (sizes.batch, sizes.sequence, sizes.tags))
    graph.output(last_hidden, "last_hidden", "float32", (1, sizes.batch, sizes.hidden))
    graph.output(last_cell, "last_cell", "float32", (1, sizes.batch, sizes.hidden))
    return graph.model()


def inputs(sizes: Lstm) -> tuple[Input, ...]:
    """What to run it with; the state is that of the second layer."""
    state = (1, sizes.batch, sizes.hidden)
    return (
        Input("steps", "float32", (sizes.batch, sizes.sequence, sizes.features), "normal", {"scale": 1.0}),
        Input("lengths", "int32", (sizes.batch,), "lengths", {"of": sizes.sequence}),
        Input("hidden", "float32", state, "normal", {"scale": 0.3}),
        Input("cell", "float32", state, "normal", {"scale": 0.3}),
    )


FAMILY = Family(
    "sequence tagger with state",
    build,
    inputs,
    (
        Preset("lstm", False, Lstm(), ({"batch": 1, "sequence": 50}, {"batch": 3, "sequence": 17})),
        Preset("lstm_small", False, Lstm(6, 8, 5), ({"batch": 1, "sequence": 12}, {"batch": 3, "sequence": 7})),
    ),
)
