"""Cases of ONNX's suite, compiled strictly for gfx archs and run on the emulated device."""

from __future__ import annotations

import importlib.util
import random
from typing import Any

import pytest

from argosy.emulation.archs import GENERATIONS
from tests.conformance import baseline
from tests.conformance.cases import find_case
from tests.conformance.judge import judge
from tests.conformance.runners import RUNNERS

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)

_SEED = 7
_EVERY_CHANGE, _NIGHTLY = 6, 60
"""Cases for each arch."""


def cases() -> list[Any]:
    """The same ones in every run: what native code does strictly, other cases for each arch."""
    known = [name for name in baseline.read("cpu") if name.startswith("node/")]
    chosen = []
    for number, arch in enumerate(GENERATIONS):
        for place, name in enumerate(random.Random(_SEED + number).sample(known, _NIGHTLY)):
            marks = [] if place < _EVERY_CHANGE else [pytest.mark.nightly]
            chosen.append(pytest.param(arch, name, id=f"{arch}-{name}", marks=marks))
    return chosen


@pytest.mark.parametrize(("arch", "name"), cases())
def test_a_case_agrees(arch: str, name: str) -> None:
    case = find_case(name)
    assert case is not None
    assert not judge(case, RUNNERS[f"emulated-{arch}"]).reason
