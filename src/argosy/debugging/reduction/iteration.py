"""The body of a conditional or a loop as a model of its own, on the values that it has in the first iteration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.graph import Graph
from argosy.frontends.onnx.domains import canonical_domain
from argosy.frontends.onnx.order import node_reads
from argosy.ops.shapes import normalize_axis

__all__ = ["alone", "attribute_of", "body_of", "control", "first_iteration"]


def control(node: onnx.NodeProto) -> str:
    """If, Loop or Scan; empty for another op."""
    standard = canonical_domain(node.domain) == "" and node.op_type in ("If", "Loop", "Scan")
    return node.op_type if standard else ""


def body_of(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    """The body that the attribute `name` holds."""
    return next(attribute.g for attribute in node.attribute if attribute.name == name)


def attribute_of(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """The value of an attribute."""
    found = next((attribute for attribute in node.attribute if attribute.name == name), None)
    return default if found is None else helper.get_attribute_value(found)


def first_iteration(graph: Graph, index: int, name: str) -> Case | None:
    """The body in the attribute `name` of a node of the graph.

    None where it has no nodes, and where what it reads isn't known.
    """
    node = graph.nodes[index]
    body = body_of(node, name)
    given = _given(graph, node, body)
    if given is None:
        return None
    found = alone(graph, body.node, [entry.name for entry in body.output], given)
    if found is not None:
        found.model.graph.initializer.extend(body.initializer)
    return found


def alone(
    graph: Graph,
    nodes: Sequence[onnx.NodeProto],
    outputs: Collection[str],
    given: Mapping[str, tuple[onnx.ValueInfoProto, Any]],
) -> Case | None:
    """A model of nodes that read values of the graph, and what is `given`: its type and its value.

    Its outputs are those of `outputs` that a node makes. None where there is none, or a value isn't known.
    """
    model = graph.header()
    model.graph.node.extend(nodes)
    made = {name for node in nodes for name in node.output}
    reads = {name for node in nodes for name in node_reads(node)} - made
    inputs: dict[str, Any] = {}
    for name in (name for name in given if name in reads):
        entry, inputs[name] = given[name]
        model.graph.input.add().CopyFrom(entry)
        model.graph.input[-1].name = name
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(outputs) if name in made)
    known = graph.give(model, inputs, reads.difference(given))
    return Case(model, inputs) if known and model.graph.output else None


def _given(
    graph: Graph, node: onnx.NodeProto, body: onnx.GraphProto
) -> dict[str, tuple[onnx.ValueInfoProto, Any]] | None:
    """What the inputs of a body are in the first iteration; None where that isn't known."""
    names = [entry.name for entry in body.input]
    values: list[tuple[onnx.ValueInfoProto | None, Any]] = []
    if control(node) == "Loop":
        for entry, kind, value in zip(
            body.input, (onnx.TensorProto.INT64, onnx.TensorProto.BOOL), (0, 1), strict=False
        ):
            first: Any = np.full((1,) * len(entry.type.tensor_type.shape.dim), value, np.bool_ if value else np.int64)
            values.append((helper.make_tensor_value_info(entry.name, kind, first.shape), first))
        values += [(graph.entry(name), graph.value(name)) for name in node.input[2:]]
    elif control(node) == "Scan":
        count = attribute_of(node, "num_scan_inputs", 0)
        states, scanned = list(node.input[:-count]), list(node.input[-count:])
        if len(states) + count != len(names):
            return None  # opset 8, with a batch
        values += [(graph.entry(name), graph.value(name)) for name in states]
        axes = attribute_of(node, "scan_input_axes", [0] * count)
        backwards = attribute_of(node, "scan_input_directions", [0] * count)
        for name, axis, last in zip(scanned, axes, backwards, strict=True):
            values.append(_element(graph.entry(name), graph.value(name), axis, -1 if last else 0))
    known = {
        name: (entry, value)
        for name, (entry, value) in zip(names, values, strict=False)
        if entry is not None and value is not None
    }
    return known if len(known) == len(names) else None


def _element(
    entry: onnx.ValueInfoProto | None, value: Any, axis: int, place: int
) -> tuple[onnx.ValueInfoProto | None, Any]:
    if entry is None or not isinstance(value, np.ndarray) or not value.shape[normalize_axis(axis, value.ndim)]:
        return None, None
    first = np.take(value, place, axis)
    return helper.make_tensor_value_info(entry.name, entry.type.tensor_type.elem_type, first.shape), np.asarray(first)
