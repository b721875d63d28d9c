"""Random graphs of one to eight ONNX nodes, of many families, opsets and element types, equal ONNX Runtime.

Some of their dims are dynamic. Templates leave out what the standard leaves open, and the few places where ONNX
Runtime departs from it; each says so where it does.
"""

from __future__ import annotations

from collections import Counter

import pytest

from argosy.frontends.onnx.registry import known_ops
from tests.properties.onnx_graphs.compared import TEMPLATES, compare_graph, draw_graph

CHUNK = 200


def run(numbers: range, target: str = "ref") -> Counter[str]:
    """Verdicts on the graphs; fails at the first one that differs."""
    verdicts: Counter[str] = Counter()
    for number in numbers:
        verdict = compare_graph(number, target)
        assert verdict.kind != "differs", f"graph {number} of {', '.join(verdict.ops)}: {verdict.why}"
        verdicts[verdict.kind] += 1
    assert verdicts["agrees"] >= 0.85 * len(numbers), "ONNX Runtime runs too few of them"
    assert verdicts["amplified"] <= 0.01 * len(numbers) + 2, "one in a hundred, and what chance brings to a small batch"
    return verdicts


@pytest.mark.parametrize("first", range(0, 400, CHUNK))
def test_graphs_agree_with_onnx_runtime(first: int) -> None:
    run(range(first, first + CHUNK))


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(400, 2000, CHUNK))
def test_more_graphs_agree_with_onnx_runtime(first: int) -> None:
    run(range(first, first + CHUNK))


def test_graphs_agree_with_onnx_runtime_as_native_code() -> None:
    run(range(40), "cpu")


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(40, 400, 60))
def test_more_graphs_agree_with_onnx_runtime_as_native_code(first: int) -> None:
    run(range(first, first + 60), "cpu")


def test_most_ops_have_a_template() -> None:
    """The others are random, or are compared with ONNX Runtime in the tests of their handlers."""
    known = {f"{domain}::{name}" if domain else name for domain, name in known_ops()}
    assert TEMPLATES.keys() <= known
    standard = {name for name in known if "::" not in name}
    assert len(standard & TEMPLATES.keys()) >= 0.85 * len(standard), sorted(standard - TEMPLATES.keys())


def test_the_graphs_hold_every_template() -> None:
    """Else a template that never draws anything would go unseen."""
    seen = {node.op_type for number in range(1000) for node in draw_graph(number).nodes}
    assert {name.rpartition("::")[2] for name in TEMPLATES} <= seen
