"""A decoder with a cache of keys and values: grouped heads, rotary positions, RMS norms, gated MLP (Llama's form)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.models.family import Family, Preset
from benchmarks.models.graph import Dim, Graph
from benchmarks.models.inputs import Input
from benchmarks.models.transformer import attend, linear

__all__ = ["FAMILY", "Decoder"]


@dataclass(frozen=True, slots=True)
class Decoder:
    """`heads` queries share `cached_heads` keys and values of `head` elements; total = past + sequence."""

    layers: int = 2
    width: int = 768
    heads: int = 12
    cached_heads: int = 4
    head: int = 64
    hidden: int = 2048
    vocabulary: int = 8192
    batch: Dim = "batch"
    sequence: Dim = "sequence"
    past: Dim = "past"
    total: Dim = "total"


def rms_norm(graph: Graph, value: str, width: int, word: str) -> str:
    """x / √(mean(x²) + ε) · scale, in elementary ops."""
    with graph.scope(word):
        square = graph.op("ReduceMean", graph.op("Pow", value, graph.constant(2.0, "float32")), axes=[-1], keepdims=1)
        root = graph.op("Sqrt", graph.op("Add", square, graph.constant(1e-6, "float32")))
        return graph.op("Mul", graph.op("Div", value, root), graph.weight("scale", (width,), 0.6, 1.4))


def positions(graph: Graph, tokens: str, cached_key: str) -> tuple[str, str]:
    """Places of the new tokens, [sequence], and of all tokens, [total]."""

    def length(value: str, axis: int) -> str:
        return graph.op("Gather", graph.op("Shape", value), graph.constant(axis), axis=0)

    with graph.scope("positions"):
        past, step = length(cached_key, 2), graph.constant(1)
        total = graph.op("Add", past, length(tokens, 1))
        return graph.op("Range", past, total, step), graph.op("Range", graph.constant(0), total, step)


def rotation(graph: Graph, places: str, head: int) -> tuple[str, str]:
    """Cosine and sine of place · 10000^(-2i/head), as [sequence, head], the two halves alike."""
    frequencies = (10000.0 ** (-np.arange(0, head, 2) / head)).astype(np.float32)
    with graph.scope("rotation"):
        column = graph.op("Cast", graph.op("Unsqueeze", places, graph.constant([1])), to=onnx.TensorProto.FLOAT)
        angle = graph.op("Mul", column, graph.constant(frequencies[None], "float32"))
        both = graph.op("Concat", angle, angle, axis=-1)
        return graph.op("Cos", both), graph.op("Sin", both)


def rotate(graph: Graph, value: str, turn: tuple[str, str], head: int) -> str:
    """x · cos + (-x₂, x₁) · sin over the halves x₁, x₂ of the last axis."""
    with graph.scope("rotate"):
        first = graph.op("Slice", value, graph.constant([0]), graph.constant([head // 2]), graph.constant([-1]))
        second = graph.op("Slice", value, graph.constant([head // 2]), graph.constant([head]), graph.constant([-1]))
        swapped = graph.op("Concat", graph.op("Neg", second), first, axis=-1)
        return graph.op("Add", graph.op("Mul", value, turn[0]), graph.op("Mul", swapped, turn[1]))


def causal_mask(graph: Graph, new: str, every: str, kept: str) -> str:
    """0 where a token may look, -10⁹ where not, as [batch, 1, sequence, total]."""
    with graph.scope("mask"):
        earlier = graph.op(
            "LessOrEqual",
            graph.op("Unsqueeze", every, graph.constant([0])),
            graph.op("Unsqueeze", new, graph.constant([1])),
        )
        present = graph.op("Unsqueeze", graph.op("Cast", kept, to=onnx.TensorProto.BOOL), graph.constant([1, 2]))
        return graph.op(
            "Where",
            graph.op("And", earlier, present),
            graph.constant(0.0, "float32"),
            graph.constant(-1e9, "float32"),
        )


def spread(graph: Graph, value: str, sizes: Decoder) -> str:
    """Repeat each cached head for the queries that share it."""
    group = sizes.heads // sizes.cached_heads
    with graph.scope("spread"):
        shape = graph.op("Shape", value)
        batch = graph.op("Slice", shape, graph.constant([0]), graph.constant([1]))
        total = graph.op("Slice", shape, graph.constant([2]), graph.constant([3]))
        heads = graph.constant([sizes.cached_heads, group])
        wide = graph.op("Concat", batch, heads, total, graph.constant([sizes.head]), axis=0)
        repeated = graph.op("Expand", graph.op("Unsqueeze", value, graph.constant([2])), wide)
        return graph.op("Reshape", repeated, graph.constant([0, sizes.heads, -1, sizes.head]))


def attention(
    graph: Graph, value: str, sizes: Decoder, turn: tuple[str, str], mask: str, cache: tuple[str, str]
) -> tuple[str, str, str]:
    """Attend to the cache and to the new tokens; returns the result and the grown cache."""

    def project(word: str, heads: int, gain: float) -> str:
        flat = linear(graph, value, (sizes.width, heads * sizes.head), word, gain=gain, bias=False)
        split = graph.op("Reshape", flat, graph.constant([0, 0, heads, sizes.head]))
        return graph.op("Transpose", split, perm=[0, 2, 1, 3])

    with graph.scope("attention"):
        query = rotate(graph, project("query", sizes.heads, math.sqrt(2)), turn, sizes.head)
        new_key = rotate(graph, project("key", sizes.cached_heads, math.sqrt(2)), turn, sizes.head)
        key = graph.op("Concat", cache[0], new_key, axis=2)
        values = graph.op("Concat", cache[1], project("value", sizes.cached_heads, 1.0), axis=2)
        key_transposed = graph.op("Transpose", spread(graph, key, sizes), perm=[0, 1, 3, 2])
        context = attend(graph, query, key_transposed, spread(graph, values, sizes), sizes.head, mask)
        flat = graph.op("Transpose", context, perm=[0, 2, 1, 3])
        joined = graph.op("Reshape", flat, graph.constant([0, 0, sizes.heads * sizes.head]))
        return linear(graph, joined, (sizes.heads * sizes.head, sizes.width), "output", bias=False), key, values


def gated_mlp(graph: Graph, value: str, width: int, hidden: int) -> str:
    """down(silu(gate(x)) · up(x))."""
    with graph.scope("mlp"):
        gate = linear(graph, value, (width, hidden), "gate", gain=math.sqrt(2), bias=False)
        silu = graph.op("Mul", gate, graph.op("Sigmoid", gate))
        raised = graph.op("Mul", silu, linear(graph, value, (width, hidden), "up", gain=math.sqrt(2), bias=False))
        return linear(graph, raised, (hidden, width), "down", bias=False)


def build(sizes: Decoder) -> onnx.ModelProto:
    """The model for these sizes."""
    graph = Graph("decoder")
    tokens, kept, *caches = (graph.input(entry.name, entry.dtype, entry.shape) for entry in inputs(sizes))
    new, every = positions(graph, tokens, caches[0])
    turn = rotation(graph, new, sizes.head)
    mask = causal_mask(graph, new, every, kept)
    value = graph.op("Gather", graph.matrix("embeddings", (sizes.vocabulary, sizes.width), 1), tokens, axis=0)
    present = []
    for layer in range(sizes.layers):
        with graph.scope(f"layer{layer}"):
            normed = rms_norm(graph, value, sizes.width, "attention_norm")
            cache = (caches[2 * layer], caches[2 * layer + 1])
            attended, *grown = attention(graph, normed, sizes, turn, mask, cache)
            present += grown
            value = graph.op("Add", value, attended)
            normed = rms_norm(graph, value, sizes.width, "mlp_norm")
            value = graph.op("Add", value, gated_mlp(graph, normed, sizes.width, sizes.hidden))
    with graph.scope("head"):
        normed = rms_norm(graph, value, sizes.width, "norm")
        logits = linear(graph, normed, (sizes.width, sizes.vocabulary), "words", bias=False)
    graph.output(logits, "logits", "float32", (sizes.batch, sizes.sequence, sizes.vocabulary))
    for index, grown_cache in enumerate(present):
        kind = "value" if index % 2 else "key"
        dims = (sizes.batch, sizes.cached_heads, sizes.total, sizes.head)
        graph.output(grown_cache, f"present.{index // 2}.{kind}", "float32", dims)
    return graph.model()


def inputs(sizes: Decoder) -> tuple[Input, ...]:
    """What to run it with."""
    cache = (sizes.batch, sizes.cached_heads, sizes.past, sizes.head)
    return (
        Input("tokens", "int64", (sizes.batch, sizes.sequence), "integers", {"low": 0, "high": sizes.vocabulary}),
        Input("mask", "int64", (sizes.batch, sizes.total), "prefix"),
        *(
            Input(f"past.{layer}.{kind}", "float32", cache, "normal", {"scale": 1.0})
            for layer in range(sizes.layers)
            for kind in ("key", "value")
        ),
    )


SIZES = (
    {"batch": 1, "sequence": 1, "past": 31, "total": 32},
    {"batch": 2, "sequence": 5, "past": 4, "total": 9},
    {"batch": 1, "sequence": 8, "past": 0, "total": 8},
)
FAMILY = Family(
    "text decoder with a key-value cache",
    build,
    inputs,
    (
        Preset("decoder", True, Decoder(), SIZES),
        Preset("decoder_small", False, Decoder(2, 32, 4, 2, 8, 48, 60), SIZES),
    ),
)
