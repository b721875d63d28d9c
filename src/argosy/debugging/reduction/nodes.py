"""Walks over the nodes of a graph and of the bodies in it. It does without the `onnx` package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

__all__ = ["graphs_of", "nodes_of", "nodes_within"]


def graphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The bodies of a node."""
    for attribute in node.attribute:
        if attribute.type == attribute.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, each before those in its bodies."""
    return nodes_within(graph.node)


def nodes_within(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, each before those in its bodies."""
    for node in nodes:
        yield node
        for body in graphs_of(node):
            yield from nodes_of(body)
