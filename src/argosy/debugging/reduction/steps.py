"""The steps of a reduction, from the whole to a small case: each keeps what fails, and hands on a case that does."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import TypeAlias

import onnx

from argosy.debugging.reduction.bodies import Body, places
from argosy.debugging.reduction.bypasses import bypassed
from argosy.debugging.reduction.capture import Capture
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.ddmin import minimise
from argosy.debugging.reduction.graph import Graph
from argosy.debugging.reduction.links import fewer_links, fewer_trips, is_bounded
from argosy.debugging.reduction.opening import opened
from argosy.debugging.reduction.scopes import with_plain_bodies
from argosy.debugging.reduction.shapes import fix_shapes, shrink_shapes
from argosy.debugging.reduction.simplify import simplify_values

__all__ = ["reduce_case"]

log = logging.getLogger("argosy.reduce")

Holds: TypeAlias = Callable[[Case | None], bool]


def reduce_case(case: Case, holds: Holds, capture: Capture) -> Case:
    """A small case for which `holds`, as it does for `case`: few nodes, then few outputs, small shapes, plain values.

    `capture` gives the true values of a case. Integers are made plain before shapes shrink, as an index into a long
    axis would keep it long.
    """
    fixed = fix_shapes(case)
    case = fixed if holds(fixed) else case
    case = _smaller(case, holds, capture)
    case = simplify_values(case, holds, integers_only=True)
    case = shrink_shapes(case, holds)
    case = simplify_values(case, holds)
    return _finished(case, capture)


def _smaller(case: Case, holds: Holds, capture: Capture) -> Case:
    """The case with few nodes, in the bodies that are left too, and few outputs."""
    while True:
        case = _fewer_outputs(_fewer_nodes(case, holds, capture), holds, capture)
        changed = next(filter(holds, itertools.chain(opened(case, capture), bypassed(case, capture))), None)
        if changed is None:
            return _smaller_bodies(case, holds, capture)
        case = changed


def _fewer_nodes(case: Case, holds: Holds, capture: Capture) -> Case:
    graph = Graph.of(case, capture)
    chosen = minimise(range(len(graph.nodes)), lambda part: holds(graph.cut(part)))
    return case if len(chosen) == len(graph.nodes) else graph.cut(chosen) or case


def _fewer_outputs(case: Case, holds: Holds, capture: Capture) -> Case:
    if len(case.model.graph.output) == 1:
        return case
    graph = Graph.of(case, capture)
    outputs = minimise(graph.outputs, lambda part: holds(graph.cut(graph.needed(part), part)))
    return case if len(outputs) == len(graph.outputs) else graph.cut(graph.needed(outputs), outputs) or case


def _smaller_bodies(case: Case, holds: Holds, capture: Capture) -> Case:
    """The case with fewer nodes in the bodies of its loops and conditionals, and fewer values between these and it."""
    plain = with_plain_bodies(case)
    if not places(plain.model) or not holds(plain):
        return case
    case = next(filter(holds, fewer_trips(Graph.of(plain, capture))), plain)
    for index, attribute in places(case.model):
        graph = Graph.of(case, capture)
        body = Body.of(graph, index, attribute, capture) if is_bounded(graph, index) else None
        case = case if body is None else _smaller_body(body, holds, capture) or case
    case = _fewer_outputs(case, holds, capture)
    while True:
        changed = next(filter(holds, fewer_links(case)), None)
        if changed is None:
            return case
        case = changed


def _smaller_body(body: Body, holds: Holds, capture: Capture) -> Case | None:
    """The whole with fewer nodes in a body; None where all are needed."""
    bare = body.put_back(body.nothing)
    if holds(bare):
        return bare
    small = _smaller(body.case, lambda part: part is not None and holds(body.put_back(part)), capture)
    return None if small is body.case else body.put_back(small)


def _finished(case: Case, capture: Capture) -> Case:
    """The case with the types of its outputs as they follow from its inputs, where the model can be read."""
    try:
        known = capture(case, [entry.name for entry in case.model.graph.output])
    except Exception as error:  # noqa: BLE001 - the model is here because something is wrong with it
        log.debug("the outputs keep the types that they have: %s", error)
        return case
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.ClearField("output")
    model.graph.output.extend(found.entry for found in known.values())
    return Case(model, case.inputs)
