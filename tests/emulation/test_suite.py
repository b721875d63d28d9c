"""Cases of ONNX's suite, compiled strictly for gfx archs and run on the emulated device."""

from __future__ import annotations

import importlib.util
import random
from collections import defaultdict
from typing import Any

import pytest

from argosy.emulation.archs import GENERATIONS
from argosy.host_cpu import usable_cores
from tests.conformance import baseline
from tests.conformance.cases import Case, find_case
from tests.conformance.families import family
from tests.conformance.judge import judge, shorten
from tests.conformance.pool import run_cases
from tests.conformance.runners import RUNNERS

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)

_SEED = 7
_EVERY_CHANGE = 6
"""Cases for each arch."""
_NIGHTLY = {"gfx942": 300, "gfx1100": 300}
_OTHERS = 100
_EACH = 3
"""Cases of each family of ops at least, where there are so many."""


def known() -> list[str]:
    """What native code does strictly."""
    return [name for name in baseline.read("cpu") if name.startswith("node/")]


def cases() -> list[Any]:
    """The same ones in every run, other cases for each arch."""
    return [
        pytest.param(arch, name, id=f"{arch}-{name}")
        for number, arch in enumerate(GENERATIONS)
        for name in random.Random(_SEED + number).sample(known(), _EVERY_CHANGE)
    ]


def drawn(arch: str) -> list[Case]:
    """Cases of every family of ops, then any, as many as an arch shall agree on; the same ones in every run."""
    draw = random.Random(f"{_SEED} {arch}")
    every = [case for name in known() if (case := find_case(name)) is not None]
    draw.shuffle(every)
    families: dict[str, list[Case]] = defaultdict(list)
    for case in every:
        families[family(case)].append(case)
    first = [case for name in sorted(families) for case in families[name][:_EACH]]
    chosen = dict.fromkeys(first)
    chosen.update(dict.fromkeys(every))
    return list(chosen)[: _NIGHTLY.get(arch, _OTHERS)]


@pytest.mark.parametrize(("arch", "name"), cases())
def test_a_case_agrees(arch: str, name: str) -> None:
    case = find_case(name)
    assert case is not None
    assert not judge(case, RUNNERS[f"emulated-{arch}"]).reason


@pytest.mark.nightly
@pytest.mark.parametrize("arch", GENERATIONS)
def test_cases_of_every_family_agree(arch: str) -> None:
    runner = RUNNERS[f"emulated-{arch}"]
    failed = [
        f"{outcome.id}: {shorten(outcome.reason)}"
        for outcome in run_cases(drawn(arch), lambda case: judge(case, runner), workers=usable_cores(), limit=600)
        if not outcome.passed
    ]
    assert not failed, "\n".join(failed)
