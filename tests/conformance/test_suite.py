"""ONNX's backend suite on ref: what passed when the list was recorded still passes; the lists and the page agree.

The cases of the list run here but for the large `real` models, which `make conformance` runs as well.
"""

from __future__ import annotations

from collections import Counter

import onnx
import pytest

from tests.architecture.sources import ROOT
from tests.conformance import baseline
from tests.conformance.cases import KINDS, find_case, load_cases
from tests.conformance.judge import judge
from tests.conformance.runners import RUNNERS

LEAST = {"ref": 2000, "cpu": 1850, "cpu-x86-64-v3": 1850, "cpu-with-host-steps": 1950}
"""The targets with a recorded list, and how many cases pass at least."""


def is_quick(case: str) -> bool:
    """Whether every change runs the case: all but most of the large models."""
    return not case.startswith("real/") or case == "real/test_bvlc_alexnet"


RECORDED = baseline.read("ref")
QUICK = [case for case in RECORDED if is_quick(case)]
SIZES = {"node": 1884, "simple": 23, "real": 9, "pytorch-converted": 82, "pytorch-operator": 35}
VERSION = "1.23.2"  # the release of onnx whose suite the list was recorded with


@pytest.mark.parametrize("name", QUICK)
def test_what_passed_still_passes(name: str) -> None:
    case = find_case(name)
    if case is None:
        assert onnx.__version__ != VERSION
        pytest.skip(f"onnx {onnx.__version__} has no such case")
    assert judge(case, RUNNERS["ref"]).reason == ""


@pytest.mark.skipif(onnx.__version__ != VERSION, reason=f"counts are those of onnx {VERSION}")
def test_the_suite_is_whole() -> None:
    cases = load_cases()
    assert Counter(case.kind for case in cases) == SIZES
    assert len({case.id for case in cases}) == sum(SIZES.values()) == 2033
    assert tuple(SIZES) == KINDS


@pytest.mark.skipif(onnx.__version__ != VERSION, reason=f"the list is that of onnx {VERSION}")
def test_every_op_of_the_suite_that_can_pass_is_tried() -> None:
    """The quick list leaves out no op that the whole list covers."""

    def ops(names: list[str]) -> set[tuple[str, str]]:
        found = [find_case(name) for name in names]
        return {(node.domain, node.op_type) for case in found if case for node in case.read()[0].graph.node}

    assert ops([name for name in RECORDED if name.startswith("real/")]) <= ops(QUICK)


@pytest.mark.parametrize("target", LEAST)
def test_the_lists_are_sorted_and_long_enough(target: str) -> None:
    held = baseline.read(target)
    assert list(held) == sorted(set(held))
    assert len(held) >= LEAST[target]
    assert set(held) <= {case.id for case in load_cases()}


def test_the_page_gives_the_totals_of_the_lists() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    recorded = {target: held for target in RUNNERS if (held := baseline.read(target))}
    assert recorded.keys() == LEAST.keys()
    totals = " | ".join(f"**{len(held)}**" for held in recorded.values())
    assert f"| kind | cases | {' | '.join(recorded)} |" in page
    assert f"| **all** | **{sum(SIZES.values())}** | {totals} |" in page
