"""The nodes of a model as errors name them, for whoever asks about one: without importing anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argosy.frontends.onnx.node import node_label
from argosy.frontends.onnx.protos import read_model

if TYPE_CHECKING:
    import onnx

__all__ = ["GraphNode", "graph_nodes"]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node: its name, or `Add (node 3 → 'y')`; its op; its outputs; its place in the main graph, None in others."""

    name: str
    op: str
    outputs: tuple[str, ...]
    index: int | None = None


def graph_nodes(model: Any) -> tuple[GraphNode, ...]:
    """Every node of a model (a path, bytes or ModelProto), each before those of its subgraphs.

    Raises ModelError where it can't be read.
    """
    return tuple(_nodes(read_model(model)[0].graph, ""))


def _nodes(graph: onnx.GraphProto, prefix: str) -> Iterator[GraphNode]:
    for index, node in enumerate(graph.node):
        name = node_label(node, index, prefix)
        outputs = tuple(output for output in node.output if output)
        yield GraphNode(name, node.op_type, outputs, None if prefix else index)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g, f"{name}/{attribute.name}/")
