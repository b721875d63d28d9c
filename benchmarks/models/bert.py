"""A BERT-like encoder (Devlin et al. 2018): norms after the residual sums, gelu by Erf, a mask of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from benchmarks.models.family import Family, Preset
from benchmarks.models.graph import Dim, Graph
from benchmarks.models.inputs import Input
from benchmarks.models.transformer import layer_norm, linear, mlp, self_attention

__all__ = ["FAMILY", "Bert"]


@dataclass(frozen=True, slots=True)
class Bert:
    """`positions` bounds the sequence."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    hidden: int = 3072
    vocabulary: int = 30522
    positions: int = 512
    batch: Dim = "batch"
    sequence: Dim = "sequence"


def embed(graph: Graph, sizes: Bert, tokens: str, types: str) -> str:
    """Embeddings of word, position and type, summed and normalised."""
    with graph.scope("embeddings"):
        words = graph.op("Gather", graph.matrix("word", (sizes.vocabulary, sizes.width), 1), tokens, axis=0)
        kinds = graph.op("Gather", graph.matrix("type", (2, sizes.width), 1), types, axis=0)
        length = graph.op("Slice", graph.op("Shape", tokens), graph.constant([1]), graph.constant([2]))
        table = graph.matrix("position", (1, sizes.positions, sizes.width), 1)
        places = graph.op("Slice", table, graph.constant([0]), length, graph.constant([1]))
        return layer_norm(graph, graph.op("Add", graph.op("Add", words, kinds), places), sizes.width)


def additive_mask(graph: Graph, mask: str) -> str:
    """0 where a token is, -10000 where none is, as [batch, 1, 1, sequence]."""
    with graph.scope("mask"):
        kept = graph.op("Cast", graph.op("Unsqueeze", mask, graph.constant([1, 2])), to=onnx.TensorProto.FLOAT)
        missing = graph.op("Sub", graph.constant(1.0, "float32"), kept)
        return graph.op("Mul", missing, graph.constant(-10000.0, "float32"))


def build(sizes: Bert) -> onnx.ModelProto:
    """The model for these sizes."""
    graph = Graph("bert")
    dims = (sizes.batch, sizes.sequence)
    tokens, mask, types = (graph.input(entry.name, entry.dtype, dims) for entry in inputs(sizes))
    value = embed(graph, sizes, tokens, types)
    bias = additive_mask(graph, mask)
    for layer in range(sizes.layers):
        with graph.scope(f"layer{layer}"):
            attended = self_attention(graph, value, sizes.width, sizes.heads, bias)
            value = layer_norm(graph, graph.op("Add", attended, value), sizes.width, "attention_norm")
            fed = mlp(graph, value, sizes.width, sizes.hidden)
            value = layer_norm(graph, graph.op("Add", fed, value), sizes.width, "mlp_norm")
    with graph.scope("pooler"):
        first = graph.op("Gather", value, graph.constant(0), axis=1)
        pooled = graph.op("Tanh", linear(graph, first, (sizes.width, sizes.width), "dense"))
    graph.output(value, "last_hidden_state", "float32", (*dims, sizes.width))
    graph.output(pooled, "pooler_output", "float32", (sizes.batch, sizes.width))
    return graph.model()


def inputs(sizes: Bert) -> tuple[Input, ...]:
    """What to run it with."""
    dims = (sizes.batch, sizes.sequence)
    return (
        Input("input_ids", "int64", dims, "integers", {"low": 0, "high": sizes.vocabulary}),
        Input("attention_mask", "int64", dims, "prefix"),
        Input("token_type_ids", "int64", dims, "integers", {"low": 0, "high": 2}),
    )


FAMILY = Family(
    "text encoder",
    build,
    inputs,
    (
        Preset("bert_base", True, Bert(), ({"batch": 1, "sequence": 128}, {"batch": 3, "sequence": 17})),
        Preset(
            "bert_small",
            False,
            Bert(2, 32, 4, 64, 100, 48),
            ({"batch": 1, "sequence": 16}, {"batch": 3, "sequence": 9}),
        ),
    ),
)
