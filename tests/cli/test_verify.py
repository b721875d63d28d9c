"""`verify` and `perf`: the exit code, the report, and that a wrong artifact is found out."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from argosy.errors import DeviceError, EnvironmentError_
from argosy.runtime.session import Session
from tests.cli import models
from tests.cli.conftest import Call
from tests.targets import mirror

assert mirror.MirrorTarget.name == "mirror"


@pytest.fixture
def wrong(call: Call, tmp_path: Path) -> Path:
    """An artifact with the interface of the model and other weights."""
    other = models.classifier(tmp_path / "other.onnx", seed=7)
    path = tmp_path / "wrong.argosy"
    assert call("compile", other, "--arch", "mirror1", "-o", path).code == 0
    return path


@pytest.mark.parametrize("against", ["ref", "onnxruntime"])
def test_right_code_passes(call: Call, model: Path, against: str) -> None:
    answer = call("verify", model, "--arch", "mirror1", "--against", against, "--dim", "N=1,8")
    assert answer.code == 0
    assert answer.out.endswith("passed\n")
    assert "case 1: agrees" in answer.out, "a case for each size"
    assert "float32[8, 4]" in answer.out


def test_ref_against_itself_is_told(call: Call, model: Path) -> None:
    assert "compared with itself" in call("verify", model, "--arch", "ref").err


@pytest.mark.parametrize("against", ["ref", "onnxruntime"])
def test_a_wrong_artifact_fails_with_1(call: Call, model: Path, wrong: Path, against: str) -> None:
    answer = call("verify", model, wrong, "--against", against)
    assert answer.code == 1
    assert "another program" in answer.err
    told = json.loads(call("verify", model, wrong, "--against", against, "--json").out)
    assert told["passed"] is False
    difference = told["cases"][0]["differences"][0]
    assert difference["name"] == "y"
    assert difference["first"] == [0, 0]
    assert difference["found"] != difference["expected"]
    assert told["cases"][0]["mismatches"][0]["output"] == "y"


def test_per_instruction_names_the_first_node_that_differs(call: Call, model: Path, wrong: Path) -> None:
    told = json.loads(call("verify", model, wrong, "--per-instruction", "--json").out)
    failed = [entry["node"] for entry in told["instructions"] if not entry["passed"]]
    assert failed[0] == "mm"
    assert call("verify", model, "--arch", "mirror1", "--per-instruction").code == 0
    assert call("verify", model, "--per-instruction", "--against", "onnxruntime").code == 2


def test_an_artifact_verifies_by_the_program_in_it(call: Call, wrong: Path) -> None:
    answer = call("verify", wrong, "--dim", "N=3")
    assert answer.code == 0
    assert answer.out.startswith("mirror1")
    assert call("verify", wrong, "--against", "onnxruntime").code == 2, "there is no ONNX model in it"


def test_against_a_file(call: Call, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    assert call("run", model, "--dim", "N=2", "-o", out).code == 0
    assert call("verify", model, "--dim", "N=2", "--against", out).code == 0
    assert call("verify", model, "--dim", "N=2", "--against", out, "--seed", "1").code == 1
    held = dict(np.load(out))
    np.savez(out, **held, more=held["y"])
    missing = call("verify", model, "--dim", "N=2", "--against", out)
    assert missing.code == 1
    assert "more: is missing" in missing.out
    assert call("verify", model, "--against", tmp_path / "absent.npz").code == 2
    assert call("verify", model, "--against", "truth").code == 2


@pytest.mark.parametrize("option", ["--atol", "--rtol", "--rms", "--ulp"])
def test_every_tolerance_decides(call: Call, model: Path, wrong: Path, option: str) -> None:
    big = "1e12" if option == "--ulp" else "1e3"
    assert call("verify", model, wrong, option, big).code == 0
    assert call("verify", model, wrong, option, "1e-6").code == 1
    assert call("verify", model, wrong, option, "-1").code == 2


def test_another_model_is_refused(call: Call, artifact: Path, tmp_path: Path) -> None:
    other = models.classifier(tmp_path / "other.onnx", output="z")
    answer = call("verify", other, artifact)
    assert answer.code == 5
    assert "another model" in answer.err


def test_perf_of_what_is_emulated_says_nothing_of_a_device(call: Call, model: Path) -> None:
    told = call("perf", model, "--arch", "gfx942", "--device", "emulated:gfx942", "--dim", "N=2", "-n", "1").out
    assert "emulated: times are those of the emulator, and say nothing of a device" in told.splitlines()
    assert not any(unit in told for unit in ("GFLOP", "GB/s", "roofline"))
    assert max(map(len, told.splitlines())) <= 100


def test_perf_reports_runs_ops_and_instructions(call: Call, model: Path, tmp_path: Path) -> None:
    answer = call("perf", model, "--arch", "ref", "--dim", "N=4", "-n", "5")
    assert answer.code == 0
    assert "5 runs" in answer.out
    assert all(word in answer.out for word in ("median", "p90", "p99", "dot", "softmax"))
    told = json.loads(call("perf", model, "--arch", "ref", "--dim", "N=4", "-n", "5", "--json").out)
    times = told["times"]
    assert times["count"] == 5
    assert 0 < times["minimum"] <= times["median"] <= times["p90"] <= times["maximum"]
    assert [entry["node"] for entry in told["instructions"]] == ["mm", "Relu (node 1 → 'r')", "sm"]
    assert sum(entry["share"] for entry in told["instructions"]) == pytest.approx(1)
    assert {entry["op"] for entry in told["ops"]} >= {"dot", "softmax"}
    assert times["throughput"] == pytest.approx(1 / times["mean"])
    assert "runs/s" in answer.out
    trace = tmp_path / "trace.json"
    assert call("perf", model, "--arch", "ref", "--dim", "N=4", "-n", "2", "--trace", trace).code == 0
    names = [event["name"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    assert names == ["run 1", "mm", "Relu (node 1 → 'r')", "sm", "run 2", "mm", "Relu (node 1 → 'r')", "sm"]
    out = tmp_path / "perf.csv"
    assert call("perf", model, "--arch", "ref", "--dim", "N=4", "-n", "3", "--csv", "-o", out).code == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["op"] for row in rows][::2] == ["dot", "softmax"]
    assert call("perf", model, "--csv", "--json").code == 2
    for words in (("-o", tmp_path / "none" / "x.csv"), ("--trace", tmp_path / "none" / "x.json")):
        answer = call("perf", model, "--arch", "no arch", *words)
        assert answer.code == 7, "before anything else is looked at"
        assert "its folder is not there" in answer.err
    assert call("perf", model, "-n", "0").code == 2


def test_perf_compares_with_the_model_that_it_measures(call: Call, model: Path, wrong: Path) -> None:
    words = ["--dim", "N=4", "-n", "3", "--compare", "onnxruntime", "--json"]
    told = json.loads(call("perf", model, "--arch", "ref", *words, "--compare", wrong).out)
    right, other = told["compared"]
    assert right["name"].startswith("onnxruntime ")
    assert right["times"]["count"] == other["times"]["count"] == told["times"]["count"] == 3
    assert right["ratio"] == pytest.approx(right["times"]["median"] / told["times"]["median"])
    assert (right["differs"], other["differs"][:2]) == ("", "y:")
    answer = call("perf", wrong, *words)
    assert answer.code == 2
    assert "onnxruntime=model.onnx" in answer.err, "an artifact holds no ONNX model"


def test_bisecting_right_code_finds_nothing(call: Call, model: Path) -> None:
    answer = call("verify", model, "--arch", "mirror1", "--bisect")
    assert answer.code == 0
    assert "there is nothing to look for" in answer.out


def test_bisecting_tells_of_an_artifact_that_its_program_does_not_explain(call: Call, model: Path, wrong: Path) -> None:
    """Its code is of other weights: compiled again, the program of the model is right."""
    answer = call("verify", model, wrong, "--bisect", "--json")
    assert answer.code == 1
    told = json.loads(answer.out)["bisection"]
    assert told["agrees"] is False
    assert told["blame"]["kind"] == "artifact"


def test_bisect_takes_the_inputs_of_the_artifact(call: Call, model: Path, tmp_path: Path) -> None:
    bound = tmp_path / "bound.argosy"
    assert call("compile", model, "--arch", "mirror1", "--dim", "N=4", "-o", bound).code == 0
    answer = call("verify", model, bound, "--bisect")
    assert answer.code == 0, answer.err
    assert "float32[4, 4]" in answer.out
    assert "agrees with ref" in answer.out


def test_sizes_that_were_chosen_are_told_once(call: Call, model: Path) -> None:
    assert call("verify", model, "--arch", "mirror1", "--bisect").err.count("inputs are generated with N = 1") == 1


def test_bisect_looks_for_what_ends_with_an_error(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def observe(self: Session, *inputs: object, **more: object) -> None:
        raise DeviceError("the device is lost")

    monkeypatch.setattr(Session, "observe", observe)
    answer = call("verify", model, "--arch", "mirror1", "--bisect")
    assert answer.code == 1, answer.err
    assert "a run ends with an error: the device is lost" in answer.out
    assert "first wrong node: mm (dot), on true inputs\n  it ends with: the device is lost" in answer.out
    told = json.loads(call("verify", model, "--arch", "mirror1", "--bisect", "--json").out)
    assert (told["passed"], told["bisection"]["nodes"]) == (False, ["mm"])
    assert call("verify", model, "--arch", "mirror1").code not in (0, 1)


def test_bisect_takes_no_fault_of_the_machine_for_one_of_the_code(
    call: Call, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def observe(self: Session, *inputs: object, **more: object) -> None:
        raise EnvironmentError_("the disk is full")

    monkeypatch.setattr(Session, "observe", observe)
    answer = call("verify", model, "--arch", "mirror1", "--bisect")
    assert (answer.code, "the disk is full" in answer.err) == (7, True)
