"""The way of ONNX's suite through packs: compiled, packed, restored, run on a device, judged.

The device is Triton's interpreter, and a kernel's code is its text; all else is what a real device gets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from argosy.runtime.devices import gpu
from argosy.runtime.gpu import fitting
from argosy.targets.gpu import variant
from tests.architecture.sources import ROOT
from tests.conformance.cases import Case, find_case
from tests.conformance.judge import Outcome
from tests.conformance.pool import run_cases
from tests.conformance.runners import SessionRunner
from tests.hardware import kernels_first
from tests.hardware.__main__ import main
from tests.hardware.pack_suite import pack
from tests.hardware.packs import Packs
from tests.hardware.run_suite import judge_packed
from tests.hardware.suite import HOST_STEPS, MODE, STEM, STRICT
from tests.targets.gpu.interpreted import InterpretedDevice, interpreted_kernels

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

RIGHT = ("node/test_add", "node/test_matmul_2d", "node/test_top_k", "simple/test_single_relu_model")
ON_THE_HOST = "node/test_string_concat"
HOPELESS = "node/test_bernoulli_seed"  # its expected output comes from numpy's generator


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    """A machine whose GPU is Triton's interpreter."""
    made = InterpretedDevice()
    with (
        mock.patch.object(variant, "compile_kernels", interpreted_kernels),
        mock.patch.object(kernels_first, "compile_kernels", interpreted_kernels),
        mock.patch.object(fitting, "devices", return_value=(made.info,)),
        mock.patch.object(gpu, "open_device", return_value=made),
    ):
        yield


def cases(*names: str) -> list[Case]:
    found = [find_case(name) for name in names]
    return [case for case in found if case is not None]


def packed(folder: Path, *names: str, loose: bool = False) -> tuple[dict[str, int], Packs]:
    counts = pack(folder, cases(*names), "sm_90", loose=loose, workers=1, limit=60)
    return counts, Packs(folder, STEM)


def test_the_way_there_and_back(tmp_path: Path) -> None:
    counts, packs = packed(tmp_path, *RIGHT, ON_THE_HOST, HOPELESS, loose=True)
    assert counts == {STRICT: 5, HOST_STEPS: 1, "refused": 0}
    for case in cases(*RIGHT, ON_THE_HOST):
        way = HOST_STEPS if case.id == ON_THE_HOST else STRICT
        assert packs.about(case.id)[MODE] == way
        assert packs.content(case.id) == SessionRunner("sm_90", strict=way == STRICT).compiled(case.read()[0])
        assert judge_packed(case, packs, "cuda").reason == ""
    (hopeless,) = cases(HOPELESS)
    assert "y: " in judge_packed(hopeless, packs, "cuda").reason


def test_what_strict_refuses_fails_with_the_compilers_words(tmp_path: Path) -> None:
    counts, packs = packed(tmp_path, ON_THE_HOST)
    assert counts == {STRICT: 0, HOST_STEPS: 0, "refused": 1}
    (case,) = cases(ON_THE_HOST)
    assert "CompileError" in judge_packed(case, packs, "cuda").reason


def test_code_for_another_model_or_none_is_no_pass(tmp_path: Path) -> None:
    _, packs = packed(tmp_path, "node/test_add")
    add, sub = cases("node/test_add", "node/test_sub")
    assert judge_packed(sub, packs, "cuda").reason == "it was not packed"
    swapped = Case(add.kind, add.name, add.rtol, add.atol, sub.read)
    assert "another model" in judge_packed(swapped, packs, "cuda").reason


def test_the_command_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = f"^({'|'.join((*RIGHT, ON_THE_HOST, HOPELESS))})$"
    assert main(["pack-suite", str(tmp_path), "--loose", "--only", only, "--workers", "1"]) == 0
    assert "5 strict, 1 with host steps, 0 refused" in capsys.readouterr().out
    report = tmp_path / "report.json"
    run = ["run-suite", str(tmp_path), "--only", only, "--workers", "2", "--json", str(report)]
    assert main([*run, "--at-least-strict", "4", "--at-least", "5"]) == 0
    found = json.loads(report.read_text(encoding="utf-8"))
    assert (found["cases"], found["passed"]) == (6, {"strict": 4, "in all": 5})
    assert found["passed by kind"] == {"node": 4, "simple": 1}
    assert list(found["failures"]) == [HOPELESS]
    assert found["passed only alone"] == []
    assert main([*run, "--at-least-strict", "5"]) == main([*run, "--at-least", "6"]) == 1


@dataclass(frozen=True)
class Spoils:
    """The second case of a process fails, whatever it is."""

    seen: list[str]

    def __call__(self, case: Case) -> Outcome:
        self.seen.append(case.id)
        return Outcome(case.id, "" if len(self.seen) == 1 else "the device was left in a bad state", 0.0)


def test_no_case_suffers_from_another_where_each_is_alone() -> None:
    names = ("node/test_add", "node/test_sub", "node/test_mul", "node/test_div")
    together = [outcome.passed for outcome in run_cases(cases(*names), Spoils([]), workers=1)]
    assert together == [True, False, False, False]
    alone = {outcome.id: outcome.passed for outcome in run_cases(cases(*names), Spoils([]), workers=2, alone=True)}
    assert alone == dict.fromkeys(names, True)


def test_a_device_needs_no_more_than_the_base_package_and_onnx() -> None:
    absent = ("onnxruntime", "triton", "ziglang", "pytest", "PIL", "torch")
    lines = ["import sys", *(f"sys.modules[{name!r}] = None" for name in absent), "import tests.hardware.__main__"]
    where = {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, env=where)
