"""Real models, compiled and saved, agree with ONNX Runtime: every output, at every size, from one artifact."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy.comparison import Agree, compare
from benchmarks.models import real
from tests.models import real_models
from tests.models.oracle import expected_outputs
from tests.models.test_node_by_node import CHAOTIC
from tests.targets.mirror import MirrorTarget

# Some models are compared node by node instead: see test_node_by_node.
CASES = [case for case in real_models.cases("all") if case.values[0] not in CHAOTIC]
TARGETS: Mapping[str, Any] = {"ref": "ref", "host": MirrorTarget(), "cpu": "cpu"}
"""By device. The mirror has a plan of evaluated steps for the normalised program."""


@lru_cache(maxsize=3)
def artifact(path: Path, device: str) -> argosy.Artifact:
    """The saved artifact of a model for a device. Native code needs no host step but for strings."""
    program = argosy.load_onnx(path)
    strict = device == "cpu" and not any("string" in str(kind) for kind in program.inputs.values())
    return argosy.Artifact.open(argosy.compile(program, targets=[TARGETS[device]], strict=strict).to_bytes())


@lru_cache(maxsize=2)
def reference(model_id: str, sizes: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    """ONNX Runtime's outputs, by name; of the float rewrite for models with DynamicQuantizeLSTM."""
    return expected_outputs(real_models.path(model_id), real_models.feeds(model_id, **dict(sizes)))


@pytest.mark.models
@pytest.mark.parametrize("device", TARGETS)
@pytest.mark.parametrize(("model_id", "sizes"), CASES)
def test_a_real_model_agrees_with_onnxruntime(model_id: str, sizes: Mapping[str, int], device: str) -> None:
    path = real_models.path(model_id)
    session = argosy.Session(artifact(path, device), device=device)
    found = session.run(real_models.feeds(model_id, **sizes))
    expected = reference(model_id, tuple(sizes.items()))
    assert compare(expected, found, Agree(quantised=real.model(model_id).quantised)) == ()
