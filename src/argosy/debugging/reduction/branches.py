"""Replaces an If by the nodes of the branch that is taken, so that these can be told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.graph import Graph
from argosy.debugging.reduction.messages import renamed
from argosy.debugging.reduction.prepare import put_constants_aside

__all__ = ["opened_branches"]


def opened_branches(case: Case) -> Iterator[Case]:
    """The case with one If after the other replaced, where it is known which branch is taken."""
    if not any(_is_if(node) for node in case.model.graph.node):
        return
    graph = Graph.of(case)
    for index, node in enumerate(graph.nodes):
        taken = _condition(graph.value(node.input[0])) if _is_if(node) else None
        if taken is not None:
            yield Case(_opened(case.model, index, taken=taken), case.inputs)


def _is_if(node: onnx.NodeProto) -> bool:
    return node.op_type == "If" and node.domain in ("", "ai.onnx") and len(node.input) == 1


def _condition(value: Any) -> bool | None:
    return bool(value.reshape(-1)[0]) if isinstance(value, np.ndarray) and value.size == 1 else None


def _opened(model: onnx.ModelProto, index: int, *, taken: bool) -> onnx.ModelProto:
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    graph = opened.graph
    before, node, after = graph.node[:index], model.graph.node[index], graph.node[index + 1 :]
    wanted = "then_branch" if taken else "else_branch"
    body = next(attribute.g for attribute in node.attribute if attribute.name == wanted)
    made = [name for inner in body.node for name in inner.output if name]
    held = [tensor.name for tensor in body.initializer]
    prefix = node.name or node.output[0]
    names = {name: f"{prefix}/{name}" for name in (*made, *held)}
    aliases: list[onnx.NodeProto] = []
    for entry, output in zip(body.output, node.output, strict=False):
        if not output:
            continue
        if entry.name in made and names[entry.name] == f"{prefix}/{entry.name}":
            names[entry.name] = output
        else:
            aliases.append(helper.make_node("Identity", [names.get(entry.name, entry.name)], [output]))
    for tensor in body.initializer:
        copied = graph.initializer.add()
        copied.CopyFrom(tensor)
        copied.name = names[tensor.name]
    inside = [renamed(inner, names) for inner in body.node]
    before, after = list(before), list(after)
    graph.ClearField("node")
    graph.node.extend((*before, *inside, *aliases, *after))
    put_constants_aside(graph)
    return opened
