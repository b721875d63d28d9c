"""The order in which nodes can be imported: each after the nodes that it reads from, subgraphs included."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from argosy.errors import ModelError
from argosy.frontends.onnx.node import node_label

if TYPE_CHECKING:
    import onnx

__all__ = ["in_order", "node_reads"]

log = logging.getLogger("argosy.onnx")

_SHOWN: Final = 5
"""Nodes of a cycle that an error lists."""


def in_order(nodes: Sequence[onnx.NodeProto], given: Collection[str], prefix: str) -> list[tuple[int, onnx.NodeProto]]:
    """The nodes with their indices, each after the nodes that it reads from; `given` names what is there before.

    ONNX demands sorted nodes; files that are not sorted exist, and are sorted here with a warning. Raises ModelError
    for a cycle, naming its nodes; `prefix` stands before their names.
    """
    if _is_sorted(nodes, given):
        return list(enumerate(nodes))
    maker = {name: index for index, node in enumerate(nodes) for name in node.output if name and name not in given}
    sources = [{maker[name] for name in node_reads(node) if name in maker} for node in nodes]
    waiting = [len(found) for found in sources]
    readers: dict[int, list[int]] = {}
    for index, found in enumerate(sources):
        for source in found:
            readers.setdefault(source, []).append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        index = ready.pop(0)
        order.append(index)
        for reader in readers.get(index, ()):
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready.append(reader)
    if len(order) < len(nodes):
        cycle = _cycle(sources, set(range(len(nodes))) - set(order))
        labels = [node_label(nodes[index], index, prefix) for index in cycle]
        what = f"is part of a cycle: it reads from {_path(labels)}"
        raise ModelError(what, where=labels[0], hint="let one of them read another value: a graph can't feed itself")
    if order != sorted(order):
        log.warning("the nodes of the graph are not sorted topologically; sorted them")
    return [(index, nodes[index]) for index in order]


def _is_sorted(nodes: Sequence[onnx.NodeProto], given: Collection[str]) -> bool:
    later = {name for node in nodes for name in node.output if name and name not in given}
    made: set[str] = set()
    for node in nodes:
        if any(name in later and name not in made for name in node_reads(node)):
            return False
        made.update(node.output)
    return True


def _cycle(sources: Sequence[set[int]], stuck: set[int]) -> list[int]:
    """Nodes of which each reads from the next, and the last from the first: every stuck node reads from a stuck one."""
    path: list[int] = []
    index = min(stuck)
    while index not in path:
        path.append(index)
        index = min(sources[index] & stuck)
    cycle = path[path.index(index) :]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _path(labels: Sequence[str]) -> str:
    if len(labels) == 1:
        return "itself"
    shown = [*labels[1:_SHOWN], *(["…"] if len(labels) > _SHOWN else [])]
    return ", that from ".join([*shown, "this node"])


def node_reads(node: onnx.NodeProto) -> set[str]:
    """Every name that a node reads, its subgraphs included; and those that a Gradient node differentiates."""
    names = {name for name in node.input if name}
    if node.op_type == "Gradient":
        differentiated = (attribute for attribute in node.attribute if attribute.name in ("xs", "zs", "y"))
        names.update(text.decode(errors="replace") for a in differentiated for text in (*a.strings, a.s) if text)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
            names |= _graph_reads(graph)
    return names


def _graph_reads(graph: onnx.GraphProto) -> set[str]:
    own = {entry.name for entry in graph.input} | {tensor.name for tensor in graph.initializer}
    reads: set[str] = {entry.name for entry in graph.output}
    for node in graph.node:
        reads |= node_reads(node)
        own |= set(node.output)
    return reads - own
