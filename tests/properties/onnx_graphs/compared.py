"""Draws a graph by its number, and compares us with ONNX Runtime on it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.comparison import Agree, compare
from argosy.ir.dtype import Array, DType
from tests.properties.onnx_graphs import classical, elementwise, numeric, shapes
from tests.properties.onnx_graphs.graph import (
    Graph,
    NotDrawn,
    Step,
    Template,
    newest_opset,
    run_onnxruntime,
    run_ours,
)

__all__ = ["TEMPLATES", "Verdict", "compare_graph", "draw_graph"]

TEMPLATES: dict[str, Template] = {
    **elementwise.TEMPLATES,
    **shapes.TEMPLATES,
    **numeric.TEMPLATES,
    **classical.TEMPLATES,
}
_OLDEST = 7
_TRIES = 60


@dataclass(frozen=True, slots=True)
class _Close(Agree):
    """As `Agree`, but at least 1e-6: where an output is a small difference of numbers of size 1, as in Gelu's tail."""

    def allowed(self, expected: Array, dtype: DType) -> Array:
        return np.maximum(Agree.allowed(self, expected, dtype), 1e-6)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one graph, and the ops in it.

    `agrees`; `not run` by ONNX Runtime; `amplified`: the outputs differ, but every node agrees on the inputs that it
    has in ONNX Runtime (a difference of rounding decides a comparison, or passes a pole); else `differs`, and why.
    """

    kind: str
    ops: tuple[str, ...]
    why: str = ""


def draw_graph(number: int) -> Graph:
    """Graph `number`: one to eight nodes of one opset."""
    rng = random.Random(number)
    graph = Graph(rng, rng.randint(_OLDEST, newest_opset()))
    wanted, names = rng.randint(1, 8), list(TEMPLATES)
    for _ in range(_TRIES):
        if len(graph.nodes) >= wanted:
            break
        name = rng.choice(names)
        before = len(graph.values)
        try:
            TEMPLATES[name](graph, name.rpartition("::")[2])
        except NotDrawn:
            del graph.values[before:]
    return graph


def compare_graph(number: int, target: str = "ref") -> Verdict:
    """Graph `number`, on ONNX Runtime and on a target of ours."""
    graph = draw_graph(number)
    model, feeds = graph.model(), graph.feeds()
    ops = tuple(node.op_type for node in graph.nodes)
    expected, _ = run_onnxruntime(model, feeds) if graph.comparable else (None, "")
    found, why = run_ours(model, feeds, target)
    if expected is None:
        return Verdict("differs", ops, f"refused: {why}") if found is None else Verdict("not run", ops)
    if found is not None:
        names = [entry.name for entry in model.graph.output]
        wrong = compare(_named(names, expected), _named(names, found), _Close(quantised=graph.loose))
        if not wrong:
            return Verdict("agrees", ops)
        why = "; ".join(map(str, wrong))
    nodes = [(step, _compare_step(step, target, loose=graph.loose)) for step in graph.steps]
    apart = [f"{step.model.graph.node[0].op_type}: {why}" for step, why in nodes if why]
    return Verdict("differs", ops, "; ".join(apart)) if apart else Verdict("amplified", ops, why)


def _compare_step(step: Step, target: str, *, loose: bool) -> str:
    found, why = run_ours(step.model, step.feeds, target)
    if found is None:
        return f"refused: {why}"
    names = [entry.name for entry in step.model.graph.output]
    return "; ".join(map(str, compare(_named(names, step.results), _named(names, found), _Close(quantised=loose))))


def _named(names: list[str], values: list[Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, list) else np.asarray(value) for name, value in zip(names, values, strict=True)
    }
