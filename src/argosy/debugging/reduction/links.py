"""Fewer values between a loop or conditional and what is around it: few iterations, states that stay as they begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import onnx

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.graph import Graph
from argosy.debugging.reduction.iteration import attribute_of, control
from argosy.debugging.reduction.messages import renamed, tensor_message
from argosy.debugging.reduction.nodes import graphs_of
from argosy.frontends.onnx.order import node_reads

__all__ = ["fewer_links", "fewer_trips", "is_bounded"]

_TRIPS: Final = (1, 2, 4, 8, 16)


def fewer_trips(graph: Graph) -> Iterator[Case]:
    """The case with one loop after the other ending early."""
    for index, node in enumerate(graph.nodes):
        trips = _trips(graph, node)
        for fewer in (fewer for fewer in _TRIPS if control(node) == "Loop" and (trips is None or fewer < trips)):
            model = onnx.ModelProto()
            model.CopyFrom(graph.case.model)
            name = f"{node.output[0]}:trips"
            model.graph.node[index].input[0] = name
            model.graph.initializer.append(tensor_message(name, np.array(fewer)))
            yield Case(model, graph.case.inputs)


def is_bounded(graph: Graph, index: int) -> bool:
    """Whether a node ends whatever its body gives: for a Loop, after few iterations."""
    node = graph.nodes[index]
    trips = _trips(graph, node)
    return control(node) != "Loop" or (trips is not None and trips <= _TRIPS[-1])


def _trips(graph: Graph, node: onnx.NodeProto) -> int | None:
    value = graph.value(node.input[0]) if node.input and node.input[0] else None
    return int(value.reshape(-1)[0]) if isinstance(value, np.ndarray) and value.size == 1 else None


def fewer_links(case: Case) -> Iterator[Case]:
    """The case with what a control op gives left out where nothing reads it; with one state after the other fixed."""
    read = {entry.name for entry in case.model.graph.output}
    read.update(name for node in case.model.graph.node for name in node_reads(node))
    for index, node in enumerate(case.model.graph.node):
        if not control(node):
            continue
        states = _states(node)
        unread = [place for place, name in enumerate(node.output) if place >= states and name not in read]
        if unread and len(unread) < len(node.output):
            yield _without_results(case, index, unread)
        for place in range(min(states, len(node.output))):
            fixed = _with_fixed_state(case, index, place)
            if fixed is not None:
                yield fixed


def _states(node: onnx.NodeProto) -> int:
    """How many values a loop carries."""
    if control(node) == "Loop":
        return len(node.input) - 2
    return len(node.input) - int(attribute_of(node, "num_scan_inputs", 0)) if control(node) == "Scan" else 0


def _without_results(case: Case, index: int, unread: list[int]) -> Case:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node = model.graph.node[index]
    states = _states(node)
    for place in reversed(unread):
        del node.output[place]
        for body in graphs_of(node):
            del body.output[place + (control(node) == "Loop")]
        for attribute in node.attribute:
            if attribute.name in ("scan_output_axes", "scan_output_directions"):
                del attribute.ints[place - states]
    for body in graphs_of(node):
        _drop_dead(body)
    return Case(model, case.inputs)


def _drop_dead(body: onnx.GraphProto) -> None:
    """Leave out the nodes and initializers of a body that none of its results needs."""
    wanted = {entry.name for entry in body.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(body.node):
        if wanted.intersection(node.output):
            wanted |= node_reads(node)
            kept.append(node)
    tensors = [tensor for tensor in body.initializer if tensor.name in wanted]
    body.ClearField("node")
    body.node.extend(kept[::-1])
    body.ClearField("initializer")
    body.initializer.extend(tensors)


def _with_fixed_state(case: Case, index: int, place: int) -> Case | None:
    """The case where a carried value is what it is at first; None where the body gives it on otherwise too."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    node = graph.node[index]
    skipped = 2 if control(node) == "Loop" else 0
    (body,) = graphs_of(node)
    initial, formal, result = node.input[skipped + place], body.input[skipped + place].name, node.output[place]
    del node.input[skipped + place], body.input[skipped + place], node.output[place]
    del body.output[place + skipped // 2]
    if not node.output or formal in {entry.name for entry in body.output}:
        return None
    _rename(body, {formal: initial})
    _drop_dead(body)
    _rename(graph, {result: initial})
    left = [entry for entry in graph.output if entry.name != result]
    graph.ClearField("output")
    graph.output.extend(left)
    return Case(model, case.inputs) if left else None


def _rename(graph: onnx.GraphProto, names: dict[str, Any]) -> None:
    nodes = [renamed(node, names) for node in graph.node]
    graph.ClearField("node")
    graph.node.extend(nodes)
