"""Ranges for profilers, as a library of the shape of NVTX's or roctx's records them."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.artifact.plan import StraightBlock
from argosy.cli.main import main
from argosy.errors import EnvironmentError_, UsageError
from argosy.profiling import perf, ranges
from argosy.runtime.session import Session
from tests.cli import models
from tests.runtime.gpu.fakes import artifact, faked, given, launch, numbers, plan, planned
from tests.runtime.gpu.headers import zig_cc

SOURCE = Path(__file__).parent / "recorder.c"


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A recorder that is called like NVTX, and one like roctx, in a folder like ROCm's."""
    folder = tmp_path_factory.mktemp("rocm") / "lib"
    folder.mkdir()
    found = {}
    for kind, file, prefix in (("nvtx", "libfakenvtx.so", "nvtx"), ("roctx", "libroctx64.so.4", "roctx")):
        quiet = ("-fno-sanitize=all", "-fvisibility=hidden")
        names = (f"-DPUSH={prefix}RangePushA", f"-DPOP={prefix}RangePop")
        found[kind] = folder / file
        zig_cc("-shared", "-nostdlib", "-fPIC", *quiet, *names, str(SOURCE), "-o", str(found[kind]))
    return found


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without such libraries."""
    monkeypatch.setattr(ranges, "_NVTX", ("libabsent.so",))
    monkeypatch.setattr(ranges, "_nvidia_folders", list)
    monkeypatch.setattr(ranges, "_ROCTX", ("libroctx64.so.4",))
    monkeypatch.setattr(ranges, "rocm_folders", lambda: ["/nonexistent"])
    monkeypatch.setitem(sys.modules, "nvtx", None)


@pytest.fixture
def nvtx(libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    monkeypatch.setattr(ranges, "_NVTX", ("libabsent.so", str(libraries["nvtx"])))
    return recorder(libraries["nvtx"])


def recorder(path: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(path))
    found.recorded.restype = ctypes.c_char_p
    found.forget()
    return found


def nested(library: ctypes.CDLL) -> list[Any]:
    """What was recorded, as [name, [what is inside]]."""
    stack: list[list[Any]] = [[]]
    lines = iter(library.recorded().decode().splitlines())
    for line in lines:
        if line == "push":
            inside: list[Any] = []
            stack[-1].append([next(lines), inside])
            stack.append(inside)
        else:
            assert line == "pop"
            stack.pop()
    assert len(stack) == 1, "every range has ended"
    return stack[0]


RUN = ["argosy run", [["mm", []], ["Relu (node 1 → 'r')", []], ["sm", []]]]


def test_each_run_has_a_range_and_in_it_each_node(nvtx: ctypes.CDLL, tmp_path: Path) -> None:
    compiled = argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=["ref"])
    report = perf(compiled, iterations=3, dims={"N": 2}, ranges=True)
    assert nested(nvtx) == [RUN] * (1 + report.warmup + 3)
    assert report.ranges == "NVTX"
    assert "step by step, with ranges of NVTX" in str(report)
    assert report.times.median >= 0
    assert not perf(compiled, iterations=1, dims={"N": 2}).ranges
    assert len(nested(nvtx)) == 6, "nothing where it is not asked for"


def test_kernels_have_the_names_of_nodes(nvtx: ctypes.CDLL, tmp_path: Path) -> None:
    compiled = argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=["cpu"])
    perf(compiled, iterations=1, warmup=0, dims={"N": 2}, ranges=True)
    assert nested(nvtx) == [["argosy run", [["Relu (node 1 → 'r')", []], ["sm", []]]]] * 2


@pytest.mark.parametrize("kind", ["cuda", "hip"])
def test_each_gpu_has_the_ranges_of_its_tools(
    kind: str, nvtx: ctypes.CDLL, libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "rocm_folders", lambda: [str(libraries["roctx"].parent.parent)])
    roctx = recorder(libraries["roctx"])
    tensor = "float32[4,8]"
    steps = launch("scale", [0], [1], [32, 3]), launch("scale", [1], [2], [32, 2], source="other")
    record = plan({"a": 0}, {"y": 2}, [given(tensor), planned(tensor), planned(tensor)], [StraightBlock(steps)])
    with faked(kind) as fake:
        session = Session(artifact(record, fake.kind))
        report = perf(session, inputs={"a": numbers(4, 8)}, iterations=2, ranges=True)
        graphs = fake.alive.get("executable", 0)
        del session
    assert nested(nvtx if kind == "cuda" else roctx) == [["argosy run", [["node scale", []], ["other", []]]]] * 5
    assert nested(roctx if kind == "cuda" else nvtx) == []
    assert report.ranges == {"cuda": "NVTX", "hip": "roctx"}[kind]
    assert report.device_seconds is None, "no graph of a whole run is timed"
    assert not graphs


def test_what_fails_leaves_no_range_open(nvtx: ctypes.CDLL, tmp_path: Path) -> None:
    session = Session(argosy.compile(models.picker(tmp_path / "model.onnx"), targets=["ref"]))
    marks = ranges.Ranges(ranges.range_library(""))
    with pytest.raises(UsageError):
        marks.run(session, {"index": np.array([10**6]), "flag": np.array([True, False])})
    assert nested(nvtx)[0][0] == "argosy run"


def test_libraries_of_wheels_are_found(libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_NVTX", (libraries["nvtx"].name,))
    monkeypatch.setattr(ranges, "_nvidia_folders", lambda: [libraries["nvtx"].parent.parent.parent])
    nvtx = recorder(libraries["nvtx"])
    found = ranges.range_library("nvidia")
    found.push("a")
    found.pop()
    assert nested(nvtx) == [["a", []]]


def test_the_package_comes_first(nvtx: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    package = ModuleType("nvtx")
    package.push_range = told.append  # type: ignore[attr-defined]
    package.pop_range = lambda: told.append("pop")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nvtx", package)
    found = ranges.range_library("nvidia")
    found.push("a")
    found.pop()
    assert told == ["a", "pop"]
    assert nested(nvtx) == []


@pytest.mark.parametrize(
    ("family", "what", "hint"),
    [
        ("nvidia", "(nvtx)", "install it with: pip install nvtx"),
        ("amd", "(roctx)", "install rocprofiler-sdk or roctracer"),
        ("", "(nvtx or roctx)", "pip install nvtx; or it is part of ROCm"),
    ],
)
def test_what_is_missing_is_named(family: str, what: str, hint: str) -> None:
    with pytest.raises(EnvironmentError_) as caught:
        ranges.range_library(family)
    assert what in caught.value.what
    assert hint in (caught.value.hint or "")


def test_the_option(nvtx: ctypes.CDLL, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = models.classifier(tmp_path / "model.onnx")
    assert main(["perf", str(model), "--arch", "ref", "--dim", "N=2", "-n", "2", "--ranges"]) == 0
    assert "with ranges of NVTX" in capsys.readouterr().out
    assert nested(nvtx) == [RUN] * 5
