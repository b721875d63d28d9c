"""Real models, compiled and saved, agree with ONNX Runtime: every output, at every size, from one artifact."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import argosy
from argosy.comparison import Agree, compare
from benchmarks.models import real
from tests.models import real_models
from tests.models.float_rewrite import float_rewrite, has_quantised_lstm
from tests.models.test_node_by_node import CHAOTIC
from tests.targets.mirror import MirrorTarget

# One model is compared node by node instead: see test_node_by_node.
CASES = [case for case in real_models.cases("all") if case.values[0] != CHAOTIC]


@lru_cache(maxsize=2)
def artifact(path: Path) -> argosy.Artifact:
    """The saved artifact of a model, with `ref` and with a plan for the normalised program."""
    compiled = argosy.compile(path, targets=["ref", MirrorTarget()])
    return argosy.Artifact.open(compiled.to_bytes())


def reference(path: Path, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """ONNX Runtime's outputs, by name; of the float rewrite for models with DynamicQuantizeLSTM."""
    model = onnx.load(path)
    source = float_rewrite(model).SerializeToString() if has_quantised_lstm(model) else path
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    values = session.run(None, dict(feeds))
    return {
        info.name: value if isinstance(value, list) else np.asarray(value)
        for info, value in zip(session.get_outputs(), values, strict=True)
    }


@pytest.mark.models
@pytest.mark.parametrize(("model_id", "sizes"), CASES)
def test_a_real_model_agrees_with_onnxruntime(model_id: str, sizes: Mapping[str, int]) -> None:
    path = real_models.path(model_id)
    feeds = real_models.feeds(model_id, **sizes)
    expected = reference(path, feeds)
    rule = Agree(quantised=real.model(model_id).quantised)
    loaded = artifact(path)
    for device in ("ref", "host"):
        found = argosy.Session(loaded, device=device).run(feeds)
        assert compare(expected, found, rule) == (), device
