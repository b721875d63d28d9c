"""Replaces a node that holds others by these, so that they can be told apart.

An If gives way to the branch that is taken, a call to the body of its function, a whole model to the first iteration of
a loop in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from argosy.debugging.reduction.capture import Reference
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.graph import Graph
from argosy.debugging.reduction.iteration import alone, body_of, control, first_iteration
from argosy.debugging.reduction.messages import renamed
from argosy.debugging.reduction.prepare import put_constants_aside
from argosy.debugging.reduction.scopes import with_plain_bodies
from argosy.debugging.reduction.unused import called
from argosy.errors import ModelError
from argosy.frontends.onnx.domains import canonical_domain
from argosy.frontends.onnx.functions import Functions

__all__ = ["opened"]


def opened(case: Case, reference: Reference) -> Iterator[Case]:
    """The case with one of its nodes after the other opened."""
    model = case.model
    if not any(control(node) or called(model, node) for node in model.graph.node):
        return
    graph = Graph.of(with_plain_bodies(case), reference)
    for index, node in enumerate(graph.nodes):
        function = called(model, node)
        if function is not None:
            yield from _call(graph, index, function, reference)
        elif control(node) == "If":
            for name in _branches(graph.value(node.input[0])):
                yield _branch(graph, index, name)
        elif control(node):
            yield from _typed(first_iteration(graph, index, "body"), reference)


def _branches(condition: Any) -> Sequence[str]:
    """The branch that is taken, and the other one, whose code is there too."""
    taken = not isinstance(condition, np.ndarray) or condition.size != 1 or bool(condition.reshape(-1)[0])
    return ("then_branch", "else_branch") if taken else ("else_branch", "then_branch")


def _branch(graph: Graph, index: int, name: str) -> Case:
    body = body_of(graph.nodes[index], name)
    model = _replaced(graph.case.model, index, body.node, [entry.name for entry in body.output])
    model.graph.initializer.extend(body.initializer)
    return Case(model, graph.case.inputs)


def _typed(case: Case | None, reference: Reference) -> Iterator[Case]:
    """The case with the types of its outputs, where it is one."""
    if case is not None:
        whole = Graph.of(case, reference)
        yield whole.cut(range(len(whole.nodes)), whole.outputs) or case


def _call(graph: Graph, index: int, function: onnx.FunctionProto, reference: Reference) -> Iterator[Case]:
    """The function's nodes in place of a call; alone where they mean something else in this model."""
    model, node = graph.case.model, graph.nodes[index]
    pairs = dict(zip(function.input, node.input, strict=False))
    given = {formal: actual for formal, actual in pairs.items() if actual}
    try:
        nodes = Functions(model).bind_attributes(function, node, set(given))
    except ModelError:
        return
    result = next(name for name in node.output if name)  # no other value of the model, however deep, begins with it
    made = {name: f"{result}/{name}" for each in nodes for name in each.output if name}
    names = {**given, **made}
    inside = [renamed(each, names) for each in nodes]
    for each in inside:
        each.name = each.name and f"{node.name or result}/{each.name}"
    outputs = [names.get(name, name) for name in function.output]
    own, others = _versions(function.opset_import), _versions(model.opset_import)
    if own.items() <= others.items():
        yield Case(_replaced(model, index, inside, outputs), graph.case.inputs)
        return
    apart = alone(graph, inside, outputs, {})
    if apart is not None:
        apart.model.ClearField("opset_import")
        apart.model.opset_import.extend(helper.make_opsetid(*each) for each in {**others, **own}.items())
        put_constants_aside(apart.model.graph)
        yield from _typed(apart, reference)


def _versions(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {canonical_domain(entry.domain): entry.version for entry in imports}


def _replaced(
    model: onnx.ModelProto, index: int, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]
) -> onnx.ModelProto:
    """The model with `nodes`, which give `outputs`, in place of a node."""
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    graph = opened.graph
    before, node, after = list(graph.node[:index]), model.graph.node[index], list(graph.node[index + 1 :])
    made = {name for inner in nodes for name in inner.output if name}
    names: dict[str, str] = {}
    aliases: list[onnx.NodeProto] = []
    for name, result in zip(outputs, node.output, strict=False):
        if result and name in made and name not in names:
            names[name] = result
        elif result:
            aliases.append(helper.make_node("Identity", [names.get(name, name)], [result]))
    graph.ClearField("node")
    graph.node.extend((*before, *(renamed(inner, names) for inner in nodes), *aliases, *after))
    put_constants_aside(graph)
    return opened
