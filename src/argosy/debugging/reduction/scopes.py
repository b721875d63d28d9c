"""Bodies whose values can be told apart: names that no other value of the model has, constants in the main graph."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.nodes import graphs_of
from argosy.debugging.reduction.prepare import put_constants_aside

__all__ = ["with_plain_bodies"]


def with_plain_bodies(case: Case) -> Case:
    """The case where what stands in a body means the same outside of it, but for what it computes."""
    if not any(True for node in case.model.graph.node for _ in graphs_of(node)):
        return case
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    taken = {entry.name for entry in (*graph.input, *graph.initializer)}
    taken.update(name for node in graph.node for name in node.output)
    for node in graph.node:
        _make_plain(node, {}, graph, taken)
    return Case(model, case.inputs)


def _make_plain(node: onnx.NodeProto, names: Mapping[str, str], outer: onnx.GraphProto, taken: set[str]) -> None:
    """Rename what a node reads, and what its bodies hold; initializers of these go to the outer graph."""
    node.input[:] = [names.get(name, name) for name in node.input]
    for body in graphs_of(node):
        put_constants_aside(body)
        body.ClearField("value_info")
        own = [entry.name for entry in (*body.input, *body.initializer)]
        own += [name for inner in body.node for name in inner.output if name]
        prefix = node.name or next(filter(None, node.output), node.op_type)
        known = {**names, **{name: _unique(name, prefix, taken) for name in dict.fromkeys(own)}}
        for entry in (*body.input, *body.output, *body.initializer):
            entry.name = known.get(entry.name, entry.name)
        for inner in body.node:
            inner.output[:] = [known.get(name, name) for name in inner.output]
            _make_plain(inner, known, outer, taken)
        shown = {entry.name for entry in body.output}
        tensors = list(body.initializer)
        body.ClearField("initializer")
        for tensor in tensors:
            (body if tensor.name in shown else outer).initializer.append(tensor)


def _unique(name: str, prefix: str, taken: set[str]) -> str:
    """The name, with the prefix where it is taken; it is taken from now on."""
    found, number = name, 1
    while found in taken:
        found = f"{prefix}/{name}" if number == 1 else f"{prefix}/{name}#{number}"
        number += 1
    taken.add(found)
    return found
