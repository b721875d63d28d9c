"""Leaves out what a model brings along and none of its nodes uses: functions, imports of operator sets."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.nodes import nodes_of, nodes_within
from argosy.frontends.onnx.domains import canonical_domain

__all__ = ["called", "without_unused"]


def called(model: onnx.ModelProto, node: onnx.NodeProto) -> onnx.FunctionProto | None:
    """The function of the model that a node calls; None where it calls none."""
    wanted = canonical_domain(node.domain), node.op_type, node.overload
    found = (each for each in model.functions if (canonical_domain(each.domain), each.name, each.overload) == wanted)
    return next(found, None)


def without_unused(case: Case) -> Case:
    """The case without functions that are not called, and without operator sets of which there is no node."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    functions = _called_from(model, nodes_of(model.graph))
    model.ClearField("functions")
    model.functions.extend(functions)
    nodes = [*nodes_of(model.graph), *(node for each in functions for node in nodes_within(each.node))]
    used = {canonical_domain(node.domain) for node in nodes}
    imports = [entry for entry in model.opset_import if canonical_domain(entry.domain) in {"", *used}]
    model.ClearField("opset_import")
    model.opset_import.extend(imports)
    return Case(model, case.inputs)


def _called_from(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> list[onnx.FunctionProto]:
    """The functions that nodes call, and those that these call, in the order of the model."""
    waiting = list(nodes)
    found: list[tuple[str, str, str]] = []
    while waiting:
        function = called(model, waiting.pop())
        if function is not None and _key(function) not in found:
            found.append(_key(function))
            waiting.extend(nodes_within(function.node))
    return [each for each in model.functions if _key(each) in found]


def _key(function: onnx.FunctionProto) -> tuple[str, str, str]:
    return canonical_domain(function.domain), function.name, function.overload
