"""Lets a value go past a node that gives one of the same type, where what comes before and after belongs together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

from argosy.debugging.reduction.capture import Reference
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.graph import Graph
from argosy.debugging.reduction.messages import renamed

__all__ = ["bypassed"]


def bypassed(case: Case, reference: Reference) -> Iterator[Case]:
    """The case without one node after the other, each with one of its operands after the other in place of its result.

    Operands that other nodes give go first: they are what removing the node would cut off.
    """
    graph = Graph.of(case, reference)
    if len(graph.nodes) == 1:
        return
    made = {name for node in graph.nodes for name in node.output}
    for index, node in enumerate(graph.nodes):
        results = [name for name in node.output if name]
        if len(results) != 1:
            continue
        for operand in sorted(dict.fromkeys(node.input), key=lambda name: name not in made):
            if operand and _alike(graph.value(operand), graph.value(results[0])):
                passed = _without(case, index, results[0], operand, reference)
                if passed is not None:
                    yield passed


def _alike(left: Any, right: Any) -> bool:
    both = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
    return both and left.dtype == right.dtype and left.shape == right.shape


def _without(case: Case, index: int, result: str, operand: str, reference: Reference) -> Case | None:
    """The case without a node, where `operand` stands for its `result`; None where nothing would be left to look at."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    nodes = [renamed(node, {result: operand}) for place, node in enumerate(graph.node) if place != index]
    graph.ClearField("node")
    graph.node.extend(nodes)
    made = {name for node in nodes for name in node.output}
    outputs = dict.fromkeys(operand if entry.name == result else entry.name for entry in graph.output)
    graph.ClearField("output")
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs if name in made)
    if not graph.output:
        return None
    whole = Graph.of(Case(model, case.inputs), reference)
    return whole.cut(whole.needed(whole.outputs))
