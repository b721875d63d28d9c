"""ONNX's backend suite as native code without host steps: a sample that every change runs.

It is drawn once and for all from the recorded lists; `make nightly` runs the suite whole.
"""

from __future__ import annotations

import random

import onnx
import pytest

from argosy import host_cpu
from argosy.targets.cpu.arch import find_cpu
from tests.conformance import baseline
from tests.conformance.cases import find_case
from tests.conformance.judge import judge
from tests.conformance.runners import RUNNERS
from tests.conformance.test_suite import is_quick

SAMPLES = {"cpu": 140, "cpu-x86-64-v3": 60}
SEED = 4
CASES = [
    (target, name)
    for target, size in SAMPLES.items()
    for name in random.Random(SEED).sample([name for name in baseline.read(target) if is_quick(name)], size)
]


@pytest.mark.parametrize(("target", "name"), CASES)
def test_what_passed_still_passes(target: str, name: str) -> None:
    level = find_cpu(target.removeprefix("cpu-"))
    if level is not None and not (level.isa == host_cpu.isa() and level.features <= host_cpu.cpu_features()):
        pytest.skip(f"this CPU can't run {level.name}")
    case = find_case(name)
    if case is None:
        pytest.skip(f"onnx {onnx.__version__} has no such case")
    assert judge(case, RUNNERS[target]).reason == ""
