"""`verify --reduce` on the command line: the folder, the exit codes, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Call
from tests.debugging.planting import ModelBuilder, plant, wrong_maximum
from tests.targets import mirror

assert mirror.MirrorTarget.name == "mirror"


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model with a node that goes wrong, in the folder that the command line starts in."""
    plant(monkeypatch, wrong_maximum)
    build = ModelBuilder("N", 8)
    build.chain(9)
    build.add("ReduceMax", axes=[1], keepdims=1, name="culprit")
    build.add("Mul", "b")
    path = tmp_path / "wrong.onnx"
    onnx.save(build.model(), path)
    monkeypatch.chdir(tmp_path)
    return path


def test_a_folder_with_all_that_shows_the_failure(call: Call, failing: Path, tmp_path: Path) -> None:
    answer = call("verify", failing, "--arch", "mirror1", "--dim", "N=3", "--reduce")
    assert answer.code == 1
    assert "1 of 11 nodes remains" in answer.out
    assert "culprit (ReduceMax)" in answer.out
    folder = tmp_path / "wrong-reduced"
    assert {file.name for file in folder.iterdir()} == {"model.onnx", "inputs.npz", "reproduce.py", "report.json"}
    report = json.loads((folder / "report.json").read_text())
    assert report["kind"] == "wrong numbers"
    assert (report["nodes_before"], report["nodes_after"]) == (11, 1)
    small = call("verify", folder / "model.onnx", "--inputs", folder / "inputs.npz", "--arch", "mirror1")
    assert small.code == 1, "the small model fails by itself"


def test_a_folder_with_files_is_left_alone(call: Call, failing: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "notes.txt").write_text("mine")
    answer = call("verify", failing, "--arch", "mirror1", "--reduce", "-o", kept)
    assert answer.code == 2
    assert "there already" in answer.err
    assert [file.name for file in kept.iterdir()] == ["notes.txt"]


def test_json_names_the_folder(call: Call, failing: Path, tmp_path: Path) -> None:
    told = json.loads(call("verify", failing, "--arch", "mirror1", "--reduce", "-o", "small", "--json").out)
    assert told["passed"] is False
    assert told["folder"] == "small"
    assert told["nodes"] == ["culprit (ReduceMax)"]
    assert (tmp_path / "small" / "model.onnx").is_file()


def test_a_model_that_agrees_gives_0_and_no_folder(call: Call, model: Path, tmp_path: Path) -> None:
    answer = call("verify", model, "--arch", "mirror1", "--reduce", "-o", tmp_path / "small")
    assert answer.code == 0
    assert "nothing fails" in answer.out
    assert not (tmp_path / "small").exists()


def test_a_check_of_the_user(call: Call, failing: Path, tmp_path: Path) -> None:
    answer = call("verify", failing, "--reduce", "--check", "grep -q culprit", "--checks", "30", "-o", "small")
    assert answer.code == 1
    assert "culprit (ReduceMax)" in answer.out
    wrong = call("verify", failing, "--reduce", "--check", "false", "-o", "other")
    assert wrong.code == 2
    assert "does not hold for the model itself" in wrong.err
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--check", "true"), "add --reduce"),
        (("--checks", "4"), "--checks is given, and not --reduce"),
        (("--check-seconds", "4"), "--check-seconds is given, and not --reduce"),
        (("-o", "small"), "--output is given, and not --reduce"),
        (("--cases", "0"), "cases is 0, expected at least 1"),
        (("--reduce", "--against", "outputs.npz"), "no outputs for parts"),
        (("--reduce", "--checks", "0"), "no number of checks"),
        (("--reduce", "--check-seconds", "-1"), "no time in seconds"),
        (("--reduce", "--per-instruction"), "one at a time"),
        (("--reduce", "--bisect"), "one at a time"),
        (("--reduce", "--strict-onnx"), "leave --strict-onnx out"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Call, model: Path, words: tuple[str, ...], told: str) -> None:
    answer = call("verify", model, *words)
    assert answer.code == 2
    assert told in answer.err


def test_an_artifact_is_not_taken_apart(call: Call, model: Path, artifact: Path) -> None:
    for words in ((artifact,), (model, artifact)):
        answer = call("verify", *words, "--reduce")
        assert answer.code == 2
        assert "needs the ONNX model alone" in answer.err
