"""The steps of a reduction, from the whole to a small case: each keeps what fails, and hands on a case that does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeAlias

from argosy.debugging.reduction.bodies import Body, places
from argosy.debugging.reduction.bypasses import bypassed
from argosy.debugging.reduction.capture import Reference
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.ddmin import minimise
from argosy.debugging.reduction.graph import Graph
from argosy.debugging.reduction.links import fewer_links, fewer_trips, is_bounded
from argosy.debugging.reduction.opening import opened
from argosy.debugging.reduction.scopes import with_plain_bodies
from argosy.debugging.reduction.shapes import fix_shapes, shrink_shapes
from argosy.debugging.reduction.simplify import simplify_values
from argosy.debugging.reduction.unused import without_unused

__all__ = ["reduce_case"]

Holds: TypeAlias = Callable[[Case | None], bool]


def reduce_case(case: Case, holds: Holds, reference: Reference) -> Case:
    """A small case for which `holds`, as it does for `case`: few nodes, then few outputs, small shapes, plain values.

    `reference` gives the true values of a case. Integers are made plain before shapes shrink, as an index into a long
    axis would keep it long.
    """
    case = _smaller(_fixed(case, holds), holds, reference)
    case = _fixed(case, holds)  # now that branches which these shapes contradict may be gone
    case = simplify_values(case, holds, integers_only=True)
    case = shrink_shapes(case, holds)
    case = simplify_values(case, holds)
    used = without_unused(case)
    case = used if holds(used) else case
    return reference.with_output_types(case)


def _fixed(case: Case, holds: Holds) -> Case:
    fixed = fix_shapes(case)
    return fixed if holds(fixed) else case


def _smaller(case: Case, holds: Holds, reference: Reference) -> Case:
    """The case with few nodes, in the bodies that are left too, and few outputs."""
    while True:
        case = _fewer_outputs(_fewer_nodes(case, holds, reference), holds, reference)
        changed = next(filter(holds, itertools.chain(opened(case, reference), bypassed(case, reference))), None)
        if changed is None:
            return _smaller_bodies(case, holds, reference)
        case = changed


def _fewer_nodes(case: Case, holds: Holds, reference: Reference) -> Case:
    graph = Graph.of(case, reference)
    chosen = minimise(range(len(graph.nodes)), lambda part: holds(graph.cut(part)))
    return case if len(chosen) == len(graph.nodes) else graph.cut(chosen) or case


def _fewer_outputs(case: Case, holds: Holds, reference: Reference) -> Case:
    if len(case.model.graph.output) == 1:
        return case
    graph = Graph.of(case, reference)
    outputs = minimise(graph.outputs, lambda part: holds(graph.cut(graph.needed(part), part)))
    return case if len(outputs) == len(graph.outputs) else graph.cut(graph.needed(outputs), outputs) or case


def _smaller_bodies(case: Case, holds: Holds, reference: Reference) -> Case:
    """The case with fewer nodes in the bodies of its loops and conditionals, and fewer values between these and it."""
    plain = with_plain_bodies(case)
    if not places(plain.model) or not holds(plain):
        return case
    case = _repeated(plain, holds, lambda case: fewer_trips(Graph.of(case, reference)))
    for index, attribute in places(case.model):
        graph = Graph.of(case, reference)
        body = Body.of(graph, index, attribute, reference) if is_bounded(graph, index) else None
        case = case if body is None else _smaller_body(body, holds, reference) or case
    case = _repeated(_fewer_outputs(case, holds, reference), holds, fewer_links)
    graph = Graph.of(case, reference)
    needed = graph.cut(graph.needed(graph.outputs), graph.outputs)  # without what no node reads any more
    return needed if needed is not None and holds(needed) else case


def _repeated(case: Case, holds: Holds, smaller: Callable[[Case], Iterator[Case]]) -> Case:
    """What is left when none of the `smaller` cases holds any more."""
    while True:
        changed = next(filter(holds, smaller(case)), None)
        if changed is None:
            return case
        case = changed


def _smaller_body(body: Body, holds: Holds, reference: Reference) -> Case | None:
    """The whole with fewer nodes in a body; None where all are needed."""
    bare = body.put_back(body.nothing)
    if holds(bare):
        return bare
    small = _smaller(body.case, lambda part: part is not None and holds(body.put_back(part)), reference)
    return None if small is body.case else body.put_back(small)
