"""Large and real models, compiled strictly for every GPU arch on a machine without one; the code is what the rows say.

The tests are in order of what they tell, so that a run that is cut short says most: an arch of each family first, then
the other archs, then float32, then the models of the nightly set. On a machine of many cores:

    ARGOSY_ARCH_REPORT=archs.jsonl pytest -m nightly -n 32 --maxschedchunk=1 tests/models/test_gpu_archs.py

ARGOSY_ARCH_REPORT names a file that gets a line of JSON for each test as it ends: model, arch, precision; kernels,
launches of a run and at load, matrix instructions by their names, registers in memory by kernel, why kernels were not
taken; seconds and the error. What an earlier run wrote there as good is skipped, so that one run goes on
where another was cut short. `python -m benchmarks.gpu.archs FILE` sums it up.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

import argosy
from argosy.artifact.plan import steps_in
from argosy.host_cpu import usable_cores
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import ARCHS, GpuArch
from argosy.targets.gpu.memory import check_memory, device_memory
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.gpu.variant import CompiledModule, compiled_variant, gpu_code
from argosy.toolchains.triton import CompiledKernel, compile_kernels
from argosy.toolchains.triton_crew import TritonCrew
from benchmarks.models import catalog, real
from tests.models import real_models
from tests.targets.gpu.code_checks import check_code, check_matrix, launches

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Large:
    """The sizes that a model of the catalogue is compiled for, and how many kernels a run may start in fp16."""

    sizes: Mapping[str, int]
    most: int


LARGE: Final = {
    "resnet50": Large({"batch": 1}, 60),
    "bert_base": Large({"batch": 1, "sequence": 128}, 90),
    "mobilenet_v2": Large({"batch": 1}, 60),
    "decoder_small": Large({}, 80),
}
EVERY_CHANGE: Final = {("resnet50", "gfx942"), ("resnet50", "sm_90")}
FIRST: Final = (
    "gfx942", "sm_90", "gfx1100", "sm_75", "gfx1201", "sm_120", "gfx906", "gfx950", "sm_100", "gfx1250", "gfx90a",
    "sm_80", "gfx1151", "compute_80", "gfx11-generic",
)  # fmt: skip


REPORT: Final = os.environ.get("ARGOSY_ARCH_REPORT", "")  # noqa: TID251 - for this test alone


@functools.cache
def found_good() -> frozenset[tuple[str, str, str]]:
    """What an earlier run reported as good, by model, arch and precision."""
    if not REPORT or not Path(REPORT).is_file():
        return frozenset()
    lines = [json.loads(text) for text in Path(REPORT).read_text(encoding="utf-8").splitlines()]
    return frozenset((line["model"], line["arch"], line["precision"]) for line in lines if not line.get("error"))


def names(which: str) -> list[str]:
    """The real models of a set, but those that take strings: values of the host alone, so never strict."""
    return [model.id for model in real.models(which) if all(each.dtype != "string" for each in model.inputs)]


def cases() -> Iterator[Any]:
    archs = [*FIRST, *(name for name in ARCHS if name not in FIRST)]
    for precision, models in (
        ("fp16", [*LARGE, *names("per-change")]),
        ("fp32", [*LARGE, *names("per-change")]),
        ("fp16", names("nightly")),
    ):
        for arch in archs:
            for model in models:
                nightly = precision != "fp16" or (model, arch) not in EVERY_CHANGE
                marks = [pytest.mark.nightly] if nightly else []
                yield pytest.param(model, arch, precision, id=f"{precision}-{arch}-{model}", marks=marks)


@functools.lru_cache(maxsize=100)
def module_of(model: str, precision: str) -> Module:
    """A model behind the passes, which ask nothing of the arch."""
    large = LARGE.get(model)
    source = catalog.make(model).SerializeToString() if large else real_models.graph(model)
    program = argosy.load_onnx(source, dims=dict(large.sizes) if large else None)
    return PassManager(tuple(pipeline(CompileOptions(precision=precision)))).run(program.main)


@pytest.fixture(scope="session")
def crew(request: pytest.FixtureRequest) -> Iterator[TritonCrew]:
    """Triton's processes, for all tests of a worker: its share of the cores."""
    workers = getattr(request.config, "workerinput", {}).get("workercount", 1)
    with TritonCrew(max(usable_cores() // workers, 1)) as made:
        yield made


@pytest.mark.parametrize(("model", "arch", "precision"), list(cases()))
def test_a_model_is_code_for_the_arch(model: str, arch: str, precision: str, crew: TritonCrew) -> None:
    if (model, arch, precision) in found_good():
        pytest.skip("an earlier run reported it as good")
    module = module_of(model, precision)
    with reported(model, arch, precision) as line:
        made = compiled_variant(module, ARCHS[arch], CompileOptions(precision=precision, strict=True), crew)
        check_memory(device_memory(made.plan), ARCHS[arch], strict=True)
        line.update(described(made))
        facts = check_code(made.plan, made.entries.__getitem__, ARCHS[arch])
        line["spills"] = {entry: found.spilled for entry, found in facts.items() if found.spilled}
        line["matrix"] = matrix(made, ARCHS[arch])
        if model in LARGE and precision == "fp16":
            check_launches(made, LARGE[model].most)


def described(made: CompiledModule) -> dict[str, Any]:
    return {
        "kernels": len(made.lowered.kernels),
        "launches": len(list(launches(made.plan.body))),
        "at_load": sum(len(list(launches(record.body))) for record in made.plan.prepare),
        "steps": len(list(steps_in(made.plan.body))),
    }


def matrix(made: CompiledModule, row: GpuArch) -> dict[str, int]:
    """Matrix instructions of all kernels; their assembly is in the cache of compiled kernels."""
    sources = {name: kernel.source() for name, kernel in made.lowered.kernels.items()}
    compiled = compile_kernels(list(sources.values()), gpu_code(row), jobs=1)
    assembly = {
        name: kernel.assembly
        for name, kernel in zip(sources, compiled, strict=True)
        if isinstance(kernel, CompiledKernel)
    }
    return dict(check_matrix({name: source.text for name, source in sources.items()}, assembly, row))


def check_launches(made: CompiledModule, most: int) -> None:
    """Few kernels, and none only moves its operand: that is part of what computes with it."""
    run = [step.entry for step in launches(made.plan.body)]
    assert len(run) <= most
    assert not [entry for entry in run if entry.startswith(("reorder", "transpose_", "copy"))]
    assert any("tl.dot(" in kernel.text for kernel in made.lowered.kernels.values())


@contextmanager
def reported(model: str, arch: str, precision: str) -> Iterator[dict[str, Any]]:
    """Collects the line of a test, and writes it where one is asked for, also of a test that fails."""
    line: dict[str, Any] = {"model": model, "arch": arch, "precision": precision}
    kept = _Kept()
    log = logging.getLogger("argosy.gpu")
    before, level = time.perf_counter(), log.level
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    try:
        yield line
    except BaseException as error:
        line["error"] = f"{type(error).__name__}: {error}"[:2000]
        raise
    finally:
        log.removeHandler(kept)
        log.setLevel(level)
        line["refused"] = [text for text in kept.texts if "is not taken" in text]
        line["seconds"] = round(time.perf_counter() - before, 2)
        if REPORT:
            with Path(REPORT).open("ab", buffering=0) as report:  # one write, so that lines of processes don't mix
                report.write(json.dumps(line).encode() + b"\n")


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
