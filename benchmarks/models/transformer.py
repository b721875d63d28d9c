"""Layers that the transformer families share, written as exporters write them: no fused ops but LayerNormalization."""

from __future__ import annotations

import math

from benchmarks.models.graph import Graph

__all__ = ["attend", "gelu", "layer_norm", "linear", "mlp", "self_attention"]


def linear(graph: Graph, value: str, shape: tuple[int, int], word: str, *, gain: float = 1.0, bias: bool = True) -> str:
    """A product with a matrix of `shape` = (in, out)."""
    with graph.scope(word):
        product = graph.op("MatMul", value, graph.matrix("weight", shape, shape[0], gain))
        return graph.op("Add", graph.weight("bias", shape[1:], -0.1, 0.1), product) if bias else product


def layer_norm(graph: Graph, value: str, width: int, word: str = "norm") -> str:
    """Normalise the last axis, with a scale and shift for each element."""
    with graph.scope(word):
        parameters = graph.weight("scale", (width,), 0.6, 1.4), graph.weight("shift", (width,), -0.2, 0.2)
        return graph.op("LayerNormalization", value, *parameters, axis=-1, epsilon=1e-5)


def gelu(graph: Graph, value: str) -> str:
    """x/2 · (1 + erf(x/√2)), as exporters write it before opset 20."""
    with graph.scope("gelu"):
        bell = graph.op("Erf", graph.op("Div", value, graph.constant(math.sqrt(2), "float32")))
        above = graph.op("Add", bell, graph.constant(1.0, "float32"))
        return graph.op("Mul", graph.op("Mul", value, above), graph.constant(0.5, "float32"))


def mlp(graph: Graph, value: str, width: int, hidden: int) -> str:
    """Two products with gelu between."""
    with graph.scope("mlp"):
        value = gelu(graph, linear(graph, value, (width, hidden), "up", gain=math.sqrt(2)))
        return linear(graph, value, (hidden, width), "down")


def attend(graph: Graph, query: str, key_transposed: str, value: str, width: int, mask: str) -> str:
    """softmax(q · kᵀ / √width + mask) · v; `mask` is added to the scores, an empty string for none."""
    scores = graph.op("MatMul", query, key_transposed)
    scores = graph.op("Div", scores, graph.constant(math.sqrt(width), "float32"))
    if mask:
        scores = graph.op("Add", scores, mask)
    return graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)


def self_attention(graph: Graph, value: str, width: int, heads: int, mask: str = "") -> str:
    """Attention of a [batch, sequence, width] value to itself.

    Queries and keys have gain √2, so that scores have a standard deviation of 2 and attention picks among tokens.
    """
    head = width // heads
    split = graph.constant([0, 0, heads, head])

    def project(word: str, gain: float, order: list[int]) -> str:
        flat = linear(graph, value, (width, width), word, gain=gain)
        return graph.op("Transpose", graph.op("Reshape", flat, split), perm=order)

    with graph.scope("attention"):
        query = project("query", math.sqrt(2), [0, 2, 1, 3])
        key = project("key", math.sqrt(2), [0, 2, 3, 1])
        context = attend(graph, query, key, project("value", 1.0, [0, 2, 1, 3]), head, mask)
        joined = graph.op("Reshape", graph.op("Transpose", context, perm=[0, 2, 1, 3]), graph.constant([0, 0, width]))
        return linear(graph, joined, (width, width), "output")
