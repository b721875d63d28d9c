"""`verify --save-parts` on one machine, `verify --per-instruction --parts` on another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.cli.main import main
from tests.cli import models
from tests.cli.conftest import Call
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def compiled(model: Path) -> Path:
    path = model.with_suffix(".argosy")
    assert main(["compile", str(model), "--arch", "x86-64-v2", "-o", str(path), "--quiet"]) == 0
    return path


def test_there_and_back(call: Call, compiled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    saved = call("verify", compiled, "--save-parts", folder, "--dim", "N=3", "--seed", "5")
    assert saved.code == 0
    assert saved.out.startswith("x86-64-v2")
    assert f"argosy verify ARTIFACT --per-instruction --parts {folder}" in saved.out
    answer = call("verify", compiled, "--device", "cpu", "--per-instruction", "--parts", folder)
    assert answer.code == 0
    assert "[3, 4]" in answer.out, "the sizes that were asked for when they were saved"
    assert "instructions compared: 0 differ alone" in answer.out
    assert "could not be run" not in answer.out


def test_a_model_that_is_compiled_for_its_parts(call: Call, model: Path, tmp_path: Path) -> None:
    """Its dims are bound, in the artifact too that is made of it with the same options."""
    folder, bound = tmp_path / "parts", tmp_path / "bound.argosy"
    asked = ("--arch", "x86-64-v2", "--dim", "N=3")
    assert call("verify", model, *asked, "--save-parts", folder).code == 0
    assert call("compile", model, *asked, "-o", bound).code == 0
    answer = call("verify", bound, "--device", "cpu", "--per-instruction", "--parts", folder)
    assert answer.code == 0
    assert "could not be run" not in answer.out


def test_as_json(call: Call, compiled: Path, tmp_path: Path) -> None:
    told = json.loads(call("verify", compiled, "--save-parts", tmp_path / "parts", "--json").out)
    assert told["folder"] == str(tmp_path / "parts")
    (variant,) = told["variants"]
    assert variant["variant"].startswith("x86-64-v2")
    assert variant["programs"] > 0
    assert variant["failed"] == 0


def test_a_wrong_artifact_is_found_wrong(call: Call, model: Path, tmp_path: Path) -> None:
    """Its own run differs; code that is compiled for the model alone does not."""
    other, wrong = models.classifier(tmp_path / "other.onnx", seed=7), tmp_path / "wrong.argosy"
    assert call("compile", other, "--arch", "x86-64-v2", "-o", wrong).code == 0
    assert call("verify", model, wrong, "--save-parts", tmp_path / "parts").code == 0
    answer = call("verify", model, wrong, "--device", "cpu", "--per-instruction", "--parts", tmp_path / "parts")
    assert answer.code == 1
    assert "0 differ alone" in answer.out
    assert "could not be run" not in answer.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--parts", "p"), "--per-instruction"),
        (("--parts", "p", "--per-instruction", "--bisect"), "both given"),
        (("--parts", "p", "--per-instruction", "--seed", "3"), "has its own"),
        (("--parts", "p", "--per-instruction", "--dim", "N=2"), "has its own"),
        (("--parts", "p", "--per-instruction", "--batch", "2"), "has its own"),
        (("--parts", "p", "--per-instruction", "--cases", "2"), "has its own"),
        (("--save-parts", "p", "--parts", "p", "--per-instruction"), "both given"),
        (("--save-parts", "p", "--bisect"), "both given"),
        (("--save-parts", "p", "--reduce"), "one at a time"),
        (("--parts", "p", "--per-instruction"), "no folder of parts"),
    ],
)
def test_what_does_not_go_together(call: Call, compiled: Path, words: tuple[str, ...], told: str) -> None:
    answer = call("verify", compiled.with_suffix(".onnx") if "--reduce" in words else compiled, *words)
    assert answer.code == 2
    assert told in answer.err


def test_a_folder_with_something_in_it(call: Call, compiled: Path, tmp_path: Path) -> None:
    answer = call("verify", compiled, "--save-parts", tmp_path)
    assert answer.code == 2
    assert "there already" in answer.err
