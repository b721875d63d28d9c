"""`argosy.verify` as a function: cases, inputs, references, reports."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.compiler import load_onnx
from argosy.errors import ArgosyError, EnvironmentError_
from argosy.inputs import InputRequest
from argosy.verification import Tolerance
from tests.cli import models
from tests.targets import mirror

ARCH = mirror.MirrorTarget(1)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.classifier(tmp_path / "model.onnx")


def test_the_public_names_are_functions() -> None:
    assert callable(argosy.verify)
    assert callable(argosy.perf)
    for package in ("argosy.profiling", "argosy.verification"):
        importlib.import_module(package)  # must not hide the functions
    assert callable(argosy.verify)
    assert callable(argosy.perf)


@pytest.mark.parametrize("against", ["ref", "onnxruntime"])
def test_a_model_agrees_at_several_sizes(model: Path, against: str) -> None:
    report = argosy.verify(model, targets=[ARCH], against=against, cases=3, inputs=InputRequest(seed=5))
    assert report.passed
    assert [case.seed for case in report.cases] == [5, 6, 7]
    assert report.variant.startswith("mirror1")
    assert report.reference.startswith(against)
    assert str(report).endswith("passed")


def test_inputs_can_be_arrays(model: Path) -> None:
    x = np.ones((2, 4), np.float32)
    report = argosy.verify(model, targets=[ARCH], inputs={"x": x})
    assert report.cases[0].inputs == {"x": "float32[2, 4], given"}


class Truth:
    """A reference of our own: the classifier in float64."""

    name = "numpy"

    def answer(self, inputs: Any, case: int) -> dict[str, Any]:
        return {"y": models.classify(inputs["x"]).astype(np.float32)}


def test_a_reference_can_be_anything_that_answers(model: Path) -> None:
    assert argosy.verify(model, targets=[ARCH], against=Truth()).passed
    report = argosy.verify(models.classifier(model, seed=3), targets=[ARCH], against=Truth())
    assert not report.passed
    assert report.reference == "numpy"
    assert "FAILED" in str(report)


def test_reports_are_plain_json_even_with_infinities(model: Path) -> None:
    class Infinite(Truth):
        def answer(self, inputs: Any, case: int) -> dict[str, Any]:
            return {"y": np.full((1, 300), np.inf, np.float32)}

    report = argosy.verify(model, targets=[ARCH], against=Infinite())
    told = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert told["passed"] is False
    assert told["cases"][0]["differences"][0]["largest"] == "inf"


def test_instructions_are_those_of_the_model(model: Path) -> None:
    report = argosy.verify(model, targets=[ARCH], per_instruction=True)
    assert [entry.node for entry in report.instructions] == ["mm", "Relu (node 1 → 'r')", "sm"]
    assert report.first_difference is None
    wrong = argosy.compile(models.classifier(model.with_name("wrong.onnx"), seed=3), targets=[ARCH])
    other = argosy.verify(load_onnx(model), wrong, per_instruction=True)
    assert other.first_difference is not None
    assert other.first_difference.node == "mm"


def test_tolerances_are_those_asked_for(model: Path) -> None:
    strict = argosy.verify(model, targets=[ARCH], against="onnxruntime", tolerance=Tolerance(ulp=0), cases=3)
    assert strict.tolerance.startswith("each within 0 units in the last place")
    loose = argosy.verify(model, targets=[ARCH], against="onnxruntime", tolerance=Tolerance(atol=1.0))
    assert loose.passed


def test_what_cannot_be_verified_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgosyError, match="cases is 0"):
        argosy.verify(model, cases=0)
    with pytest.raises(ArgosyError, match="needs the ONNX model"):
        argosy.verify(load_onnx(model), against="onnxruntime")
    (tmp_path / "noise.onnx").write_bytes(b"noise")
    with pytest.raises(EnvironmentError_, match="can't load"):
        argosy.verify(load_onnx(model), against=_onnxruntime(tmp_path / "noise.onnx"))


def _onnxruntime(path: Path) -> Any:
    from argosy.verification import make_reference  # noqa: PLC0415

    return make_reference("onnxruntime", path, load_onnx(models.classifier(path.with_name("good.onnx"))))


def test_a_tolerance_that_is_given_is_the_one_that_judges(model: Path) -> None:
    class Off(Truth):
        def answer(self, inputs: Any, case: int) -> dict[str, Any]:
            return {name: value * np.float32(1.02) for name, value in super().answer(inputs, case).items()}

    assert not argosy.verify(model, targets=[ARCH], against=Off()).passed
    assert argosy.verify(model, targets=[ARCH], against=Off(), tolerance=Tolerance(quantised=True)).passed
