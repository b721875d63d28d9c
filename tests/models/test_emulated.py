"""Files compiled for a fleet, read back and found right by `argosy verify`: on this CPU, and as AMD code by emulation.

A file is compiled once for several archs and stays on the disk; `verify` has the program and the inputs from there, and
ends with 0 only where the code of the one arch agrees with `ref`. On a machine with an NVIDIA GPU the same command
without `--device` takes its code of the same file.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import onnx
import pytest

from argosy.emulation.archs import GENERATIONS
from argosy.emulation.c_engine.build import engine_reason
from benchmarks.models import catalog
from tests.models import real_models

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is missing"),
    pytest.mark.skipif(bool(engine_reason()), reason=engine_reason()),
]

REAL: Final = (
    "magika-model",  # norms, products over a long axis
    "silero-vad-silero-vad-16k-op15",  # branches, recurrence
    "rapidocr-ch-ppocr-mobile-v2-0-cls-mobile",  # convolutions of images
)
MADE: Final = ("resnet50", "mobilenet_v2", "bert_small")
FAR: Final = ("gfx942", "gfx1100")
"""The archs that larger models are emulated on."""
FLEET: Final = "gfx942,sm_90,x86-64-v3"


def command(*arguments: object) -> str:
    """What a command prints; it must end with 0."""
    done = subprocess.run(
        [sys.executable, "-m", "argosy", *map(str, arguments)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def bound(model: str) -> list[str]:
    """The options that give the dims of a real model the first of its sizes."""
    return options(real_models.dims(model))


def options(sizes: Mapping[str, int]) -> list[str]:
    return [word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")]


@pytest.mark.models
@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=[pytest.mark.nightly] if number else []) for number, name in enumerate(REAL)]
)
def test_one_file_is_right_on_the_cpu_and_emulated(model: str, tmp_path: Path) -> None:
    path = tmp_path / "m.argosy"
    command("compile", real_models.path(model), "--arch", FLEET, "-o", path)
    for device in ("cpu", "emulated"):
        assert command("verify", path, "--device", device, *bound(model)).endswith("passed\n")


def larger() -> Iterator[Any]:
    for arch in FAR:
        yield from (pytest.param(model, arch, "fp16", id=f"{arch}-{model}-fp16") for model in MADE)
        yield from (pytest.param(model, arch, "fp32", id=f"{arch}-{model}") for model in REAL)
    for arch in GENERATIONS:
        if arch not in FAR:
            yield pytest.param("light_squeezenet", arch, "fp16", id=f"{arch}-light_squeezenet-fp16")


@pytest.mark.nightly
@pytest.mark.models
@pytest.mark.parametrize(("model", "arch", "precision"), list(larger()))
def test_a_model_is_right_on_an_emulated_arch(model: str, arch: str, precision: str, tmp_path: Path) -> None:
    path, source = tmp_path / "m.argosy", tmp_path / "m.onnx"
    if model in REAL:
        source, sizes = real_models.path(model), bound(model)
    else:
        onnx.save(catalog.make(model), source)
        sizes = options(catalog.find(model)[1].sizes[0])
    command("compile", source, "--arch", arch, *(["--fp16"] if precision == "fp16" else []), "--strict", "-o", path)
    assert command("verify", path, "--device", f"emulated:{arch}", *sizes).endswith("passed\n")
