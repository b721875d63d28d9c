"""A body as a model that is made small by itself, and put back each time to see whether the whole still fails.

What the body has lost, it reads as the true value of the first iteration from outside, and what it gives besides, its
node gives too. In place of a result that it has no more, it gives what it was given, or the true value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from argosy.debugging.reduction.capture import Reference
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.graph import Graph
from argosy.debugging.reduction.iteration import body_of, control, first_iteration
from argosy.debugging.reduction.messages import tensor_message

__all__ = ["Body", "places"]


def places(model: onnx.ModelProto) -> list[tuple[int, str]]:
    """Node and attribute of the bodies of a model's conditionals and loops."""
    return [
        (index, attribute.name)
        for index, node in enumerate(model.graph.node)
        for attribute in node.attribute
        if control(node) and attribute.type == onnx.AttributeProto.GRAPH
    ]


@dataclass(frozen=True, slots=True)
class Body:
    """One body in a graph whose bodies are plain, and it alone with the values of the first iteration."""

    outer: Graph
    index: int
    attribute: str
    inner: Graph

    @staticmethod
    def of(outer: Graph, index: int, attribute: str, reference: Reference) -> Body | None:
        """The body; None where it has no nodes, and where what it reads isn't known."""
        case = first_iteration(outer, index, attribute)
        return None if case is None else Body(outer, index, attribute, Graph.of(case, reference))

    @property
    def case(self) -> Case:
        """The body alone."""
        return self.inner.case

    @property
    def nothing(self) -> Case:
        """The body alone without its nodes."""
        return Case(self.inner.header(), {})

    def put_back(self, part: Case) -> Case | None:
        """The whole with `part` for the body; None where what it should give isn't known."""
        model = onnx.ModelProto()
        model.CopyFrom(self.outer.case.model)
        graph = model.graph
        node = graph.node[self.index]
        body = body_of(node, self.attribute)
        formals = [entry.name for entry in body.input]
        body.ClearField("node")
        body.node.extend(part.model.graph.node)
        inputs = {**self.outer.case.inputs, **_bring(graph, part, {*formals, *(t.name for t in body.initializer)})}
        held = {name for inner in body.node for name in inner.output}.union(formals, (t.name for t in body.initializer))
        results = [entry.name for entry in body.output]
        for place, entry in enumerate(body.output):
            if entry.name not in held:
                formal = _passed(node, place, len(formals))
                if formal is not None:
                    entry.name = formals[formal]
                    continue
                value = self._value(place, entry.name)
                if not isinstance(value, np.ndarray):
                    return None
                body.initializer.append(tensor_message(entry.name, value))
        for entry in part.model.graph.output:
            if entry.name not in results:
                self._show(graph, node, entry)
        return Case(model, inputs)

    def _value(self, place: int, name: str) -> Any:
        """The true value of a result of the body."""
        value = self.inner.value(name)
        node = self.outer.nodes[self.index]
        return self.outer.value(node.output[place]) if value is None and control(node) == "If" else value

    def _show(self, graph: onnx.GraphProto, node: onnx.NodeProto, entry: onnx.ValueInfoProto) -> None:
        """Let the node give a value of the body, where that is a tensor, and the graph too."""
        tensor = entry.type.tensor_type
        if not tensor.HasField("shape"):
            return
        sizes = [dim.dim_value or 1 for dim in tensor.shape.dim]
        body = body_of(node, self.attribute)
        absent = len(body.output) - (control(node) == "Loop") - len(node.output)
        body.output.append(_open_entry(entry.name, tensor.elem_type, len(sizes)))
        result = f"{entry.name}:result"
        node.output.extend((*[""] * absent, result))
        if control(node) == "If":
            name = f"{entry.name}:other"
            other = body_of(node, "else_branch" if self.attribute == "then_branch" else "then_branch")
            zeros = np.zeros(sizes, helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            other.initializer.append(tensor_message(name, zeros))
            other.output.append(_open_entry(name, tensor.elem_type, len(sizes)))
        for attribute in node.attribute:
            if attribute.name in ("scan_output_axes", "scan_output_directions"):
                attribute.ints.append(0)
        graph.output.append(_open_entry(result, tensor.elem_type, len(sizes) + (control(node) != "If")))


def _bring(graph: onnx.GraphProto, part: Case, own: set[str]) -> dict[str, Any]:
    """Give the graph those inputs and initializers of a part that neither it has nor the body; the inputs' values."""
    own |= {entry.name for entry in (*graph.input, *graph.initializer)}
    own.update(name for node in graph.node for name in node.output)
    graph.initializer.extend(tensor for tensor in part.model.graph.initializer if tensor.name not in own)
    brought = [entry for entry in part.model.graph.input if entry.name not in own]
    graph.input.extend(brought)
    return {entry.name: part.inputs[entry.name] for entry in brought}


def _passed(node: onnx.NodeProto, place: int, formals: int) -> int | None:
    """Which input of its own a body gives on as a result; None where that has to be a value."""
    if control(node) == "Loop":
        return place + 1 if place + 1 < formals else None
    states = formals - next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
    return place if control(node) == "Scan" and place < states else None


def _open_entry(name: str, kind: int, rank: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [None] * rank)
