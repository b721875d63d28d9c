"""Processes that run Triton are shared by all archs of a compile, and whatever kills one costs one kernel."""

from __future__ import annotations

import importlib.util
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

import argosy
from argosy import compiler
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import ARCHS
from argosy.targets.gpu.variant import gpu_code
from argosy.toolchains import triton_crew
from argosy.toolchains.cache import DiskCache
from argosy.toolchains.triton import CompiledKernel, Refused, TritonSource, compile_kernels
from argosy.toolchains.triton_crew import TritonCrew

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)

COPY = """
@triton.jit
def copy(x, y):
    i = tl.arange(0, 64)
    tl.store(y + i, tl.load(x + i))
"""
CODE = gpu_code(ARCHS["gfx942"])


def source(first: str = "") -> TritonSource:
    return TritonSource("copy", first + COPY, (("x", "*fp32"), ("y", "*fp32")))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that were started."""
    found: list[Any] = []

    class Counted(triton_crew._Worker):
        def __init__(self, *arguments: Any) -> None:
            found.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(triton_crew, "_Worker", Counted)
    return found


def test_a_kernel_that_kills_its_process_is_refused_and_the_next_is_compiled(
    tmp_path: Path, started: list[Any]
) -> None:
    texts = ["import os; os._exit(3)\n# long, so that it comes first\n", "# good\n"]
    with TritonCrew(1) as crew:
        bad, good = compile_kernels([source(text) for text in texts], CODE, crew=crew, cache=DiskCache(tmp_path))
    assert isinstance(bad, Refused)
    assert "ended with status 3" in bad.reason
    assert isinstance(good, CompiledKernel)
    assert len(started) == 2


def test_what_a_process_did_before_does_not_decide(tmp_path: Path, started: list[Any]) -> None:
    marks = "import sys; sys.argosy_mark = 1  # long, so that it comes first, and leaves its mark\n"
    dies = "import os, sys; hasattr(sys, 'argosy_mark') and os._exit(3)\n"
    with TritonCrew(1) as crew:
        made = compile_kernels([source(marks), source(dies)], CODE, crew=crew, cache=DiskCache(tmp_path))
    assert all(isinstance(each, CompiledKernel) for each in made)
    assert len(started) == 2


def test_a_kernel_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    with TritonCrew(1, seconds=1) as crew:
        (made,) = compile_kernels([source("while True: pass\n")], CODE, crew=crew, cache=DiskCache(tmp_path))
    assert isinstance(made, Refused)
    assert "more than 1 s" in made.reason


def interrupted(found: list[Future[Any]]) -> None:
    """Leave a crew by an exception while a kernel that never ends is compiled."""
    with TritonCrew(1) as crew:
        found.append(
            crew.start(
                "long", lambda: crew.ask({"text": "while True: pass\n", "entry": "", "types": (), "backend": "hip"})
            )
        )
        while not crew._alive:
            time.sleep(0.01)
        raise KeyboardInterrupt


def test_an_exception_ends_what_goes_on() -> None:
    begin, found = time.monotonic(), list[Future[Any]]()
    with pytest.raises(KeyboardInterrupt):
        interrupted(found)
    assert "error" in found[0].result(timeout=10)
    assert time.monotonic() - begin < 60


def test_the_same_work_is_done_once_at_a_time() -> None:
    with TritonCrew(2) as crew:
        first = crew.start("key", lambda: time.sleep(0.2))
        assert crew.start("key", lambda: pytest.fail("done twice")) is first
        assert crew.start("other", lambda: 1).result() == 1
        first.result()
        assert crew.start("key", lambda: 2).result() == 2


def test_many_jobs_leave_each_process_memory_to_work_with() -> None:
    with TritonCrew(64) as crew:
        assert crew.workers == 8
        assert crew._limits.memory * crew.places <= 8 << 30
        assert crew._limits.memory >= 1 << 30


def test_a_process_makes_room_for_one_of_another_backend(tmp_path: Path, started: list[Any]) -> None:
    with TritonCrew(1) as crew:
        crew.places = 1
        for name in ("gfx942", "sm_80", "gfx942"):
            (made,) = compile_kernels([source()], gpu_code(ARCHS[name]), crew=crew, cache=DiskCache(tmp_path / "none"))
            assert isinstance(made, CompiledKernel)
            assert len(crew._alive) == 1
            DiskCache(tmp_path / "none").prune(0)
    assert len(started) == 3


def test_archs_share_processes_and_passes(started: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders = [tmp_path]
    monkeypatch.setattr("argosy.toolchains.triton.cache_folder", lambda: folders[-1])
    runs: list[object] = []

    class Counted(PassManager):
        def run(self, *arguments: Any) -> Any:
            runs.append(self.phases)
            return super().run(*arguments)

    monkeypatch.setattr(compiler, "PassManager", Counted)
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("N", 64)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "exp", kinds[:1], kinds[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    archs = ("gfx942", "sm_80", "gfx1100")
    together = argosy.compile(model, targets=archs, strict=True, jobs=1)
    assert len(started) == 2, "one for AMD, one for NVIDIA"
    assert len(runs) == 1
    assert [variant.arch for variant in together.variants] == list(archs)
    folders.append(tmp_path / "alone")
    alone = argosy.compile(model, targets=archs[:1], strict=True)
    (record,) = alone.variants
    assert record == together.variants[0]
    for code in alone.plan(record.key).code:
        assert alone.entry(record.key, code.path) == together.entry(record.key, code.path)
    assert len(started) > 2
