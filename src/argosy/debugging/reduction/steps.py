"""The steps of a reduction, from the whole to a small case: each keeps what fails, and hands on a case that does."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import TypeAlias

import onnx

from argosy.debugging.reduction.branches import opened_branches
from argosy.debugging.reduction.bypasses import bypassed
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.ddmin import minimise
from argosy.debugging.reduction.graph import Graph
from argosy.debugging.reduction.messages import value_message
from argosy.debugging.reduction.shapes import fix_shapes, shrink_shapes
from argosy.debugging.reduction.simplify import simplify_values
from argosy.errors import ArgosyError
from argosy.frontends.onnx import load

__all__ = ["reduce_case"]

log = logging.getLogger("argosy.reduce")

Holds: TypeAlias = Callable[[Case | None], bool]


def reduce_case(case: Case, holds: Holds) -> Case:
    """A small case for which `holds`, as it does for `case`: few nodes, then few outputs, small shapes, plain values.

    Integers are made plain before shapes shrink, as an index into a long axis would keep it long.
    """
    fixed = fix_shapes(case)
    case = fixed if holds(fixed) else case
    while True:
        case = _fewer_outputs(_fewer_nodes(case, holds), holds)
        changed = next(filter(holds, itertools.chain(opened_branches(case), bypassed(case))), None)
        if changed is None:
            break
        case = changed
    case = simplify_values(case, holds, integers_only=True)
    case = shrink_shapes(case, holds)
    case = simplify_values(case, holds)
    return _with_output_types(case)


def _fewer_nodes(case: Case, holds: Holds) -> Case:
    graph = Graph.of(case)
    chosen = minimise(range(len(graph.nodes)), lambda part: holds(graph.cut(part)))
    return case if len(chosen) == len(graph.nodes) else graph.cut(chosen) or case


def _fewer_outputs(case: Case, holds: Holds) -> Case:
    if len(case.model.graph.output) == 1:
        return case
    graph = Graph.of(case)
    outputs = minimise(graph.outputs, lambda part: holds(graph.cut(graph.needed(part), part)))
    return case if len(outputs) == len(graph.outputs) else graph.cut(graph.needed(outputs), outputs) or case


def _with_output_types(case: Case) -> Case:
    """The case with the types of its outputs as they follow from its inputs, where the model can be read."""
    try:
        outputs = load(case.model).outputs
    except ArgosyError as error:
        log.debug("the outputs keep the types that they have: %s", error)
        return case
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.ClearField("output")
    model.graph.output.extend(value_message(name, kind) for name, kind in outputs.items())
    return Case(model, case.inputs)
