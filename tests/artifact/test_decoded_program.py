"""What an artifact holds of its program can be changed and compiled again, as the program itself can."""

from __future__ import annotations

import numpy as np
import pytest

import argosy
from argosy.compiler import load_onnx
from argosy.ir.validate import validate
from argosy.options import Dimensions
from benchmarks.models import catalog

SYMBOLIC = {
    "resnet_small": {"batch": 2},
    "bert_small": {"batch": 1, "sequence": 9},
    "lstm_small": {"batch": 2, "sequence": 3},
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_a_program_out_of_an_artifact_is_valid_and_takes_sizes(name: str) -> None:
    model = argosy.load_onnx(catalog.make(name))
    artifact = argosy.compile(model, targets=["ref"])
    program = argosy.Artifact.open(artifact.to_bytes()).program()
    validate(program.main)
    bound = load_onnx(program, dims=Dimensions.of(SYMBOLIC[name]))
    feeds = catalog.feeds(name, SYMBOLIC[name])
    found = argosy.Session(argosy.compile(bound, targets=["ref"])).run(feeds)
    expected = argosy.Session(artifact).run(feeds)
    for output, value in expected.items():
        np.testing.assert_allclose(found[output], value, rtol=1e-5, atol=1e-6)
