"""`compile` and `run`: artifacts on disk, inputs from files and generated, outputs against numpy."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from argosy.artifact.artifact import Artifact
from argosy.inputs import write_npz
from tests.cli import models
from tests.cli.conftest import Call
from tests.targets import mirror

X = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def test_compile_writes_beside_the_model_and_says_what(call: Call, model: Path) -> None:
    answer = call("compile", model, "--arch", "ref")
    assert answer.code == 0
    assert str(model.with_suffix(".argosy")) in answer.out
    assert "support of ref: run on hardware" in answer.out
    assert Artifact.open(model.with_suffix(".argosy")).manifest.model.name == "classifier"


def test_compile_as_json(call: Call, model: Path, tmp_path: Path) -> None:
    told = json.loads(call("compile", model, "--arch", "mirror1,ref", "-o", tmp_path / "a.argosy", "--json").out)
    assert [variant["arch"] for variant in told["variants"]] == ["mirror1"]
    assert [target["arch"] for target in told["targets"]] == ["mirror1", "ref"]
    assert told["ref"]
    assert told["seconds"] > 0


def test_a_failed_compile_leaves_the_old_artifact(call: Call, artifact: Path, tmp_path: Path) -> None:
    before = artifact.read_bytes()
    unknown = models.unknown_ops(tmp_path / "unknown.onnx")
    assert call("compile", unknown, "-o", artifact).code == 3
    assert artifact.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.argosy", "model.onnx", "unknown.onnx"]


def test_slim_needs_a_variant(call: Call, model: Path, tmp_path: Path) -> None:
    assert call("compile", model, "--slim", "--arch", "ref").code == 2
    slim = tmp_path / "slim.argosy"
    assert call("compile", model, "--slim", "--arch", "mirror1", "-o", slim).code == 0
    assert Artifact.open(slim).is_slim
    assert call("run", slim, "--dim", "N=2").code == 0
    assert "float32[N, 4]" in call("params", slim).out
    assert call("read", slim).code == 5


def test_weights_left_out_are_found_where_they_are_named(
    call: Call, model: Path, artifact: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.argosy"
    assert call("compile", model, "--weights", "omit", "-o", bare).code == 0
    assert call("run", bare, "--dim", "N=2").code == 5
    assert call("run", bare, "--dim", "N=2", "--weights", artifact).code == 0
    assert call("compile", model, "--weights", "w.bin", "-o", bare).code == 0
    assert (tmp_path / "w.bin").exists()
    assert call("run", bare, "--dim", "N=2").code == 0


def test_what_ref_cannot_honour_is_told_and_with_strict_refused(call: Call, model: Path) -> None:
    assert "--fp16" in call("compile", model, "--fp16", "--arch", "ref").err
    assert call("compile", model, "--fp16", "--strict", "--arch", "ref").code == 2
    assert "none for single sizes of N" in call("compile", model, "--dim", "N=1,8", "--arch", "ref").err
    assert call("compile", model, "--fp16", "--bf16").code == 2


@pytest.mark.parametrize("kind", ["npy", "npz", "named npz", "pb"])
def test_inputs_come_from_files(call: Call, artifact: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"x.{kind.rsplit(maxsplit=1)[-1]}"
    if kind == "npy":
        np.save(file, X)
    elif kind == "pb":
        file.write_bytes(numpy_helper.from_array(X).SerializeToString())
    else:
        named: dict[str, Any] = {"x" if kind == "named npz" else "anything": X}
        np.savez(file, allow_pickle=False, **named)
    answer = call("run", artifact, "--input", f"x={file}", "-o", tmp_path / "out.npz")
    assert answer.code == 0
    assert str(file) in answer.out
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], models.classify(X), rtol=1e-4)


def test_inputs_come_from_folders(call: Call, artifact: Path, tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    assert call("run", artifact, "--inputs", folder).code == 2
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
    assert call("run", artifact, "--inputs", folder, "-o", tmp_path / "out.npz").code == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], models.classify(X), rtol=1e-4)


def test_a_model_runs_as_its_artifact_does(call: Call, model: Path, artifact: Path, tmp_path: Path) -> None:
    for source in (model, artifact):
        out = tmp_path / f"{source.suffix}.npz"
        assert call("run", source, "--device", "ref", "--input", "@0", "5", "4", "-o", out).code == 0
    left, right = (np.load(tmp_path / f"{suffix}.npz")["y"] for suffix in (".onnx", ".argosy"))
    assert left.shape == (5, 300)
    assert np.array_equal(left, right), "generated inputs depend on seed and name only"


def test_run_says_what_ran_and_why(call: Call, model: Path, artifact: Path) -> None:
    answer = call("run", artifact, "--dim", "N=2", "--why")
    assert "variant ref: " in answer.out
    assert "numpy runs everywhere" in answer.out
    assert "y  float32[2, 300]" in answer.out
    told = json.loads(call("run", artifact, "--dim", "N=2", "--json").out)
    assert told["variant"] == "ref"
    assert told["outputs"][0]["name"] == "y"
    mirrored = call("run", model, "--arch", "mirror2", "--dim", "N=2")
    assert "mirror2" in mirrored.out
    assert mirror.MirrorTarget(2).arch == "mirror2"


def test_sizes_that_nobody_gave_are_told(call: Call, artifact: Path) -> None:
    assert "generated with N = 1" in call("run", artifact).err
    assert "generated with" not in call("run", artifact, "--dim", "N=2").err


def test_a_file_of_several_inputs_belongs_elsewhere(call: Call, artifact: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=np.ones((2, 5), np.float32))
    answer = call("run", artifact, "--input", tmp_path / "all.npz")
    assert answer.code == 2
    assert f"--inputs {tmp_path / 'all.npz'}" in answer.err
    assert "--inputs" not in call("run", artifact, "--input", tmp_path / "absent.npz").err


def test_integers_stay_in_range(call: Call, tmp_path: Path) -> None:
    picker = models.picker(tmp_path / "picker.onnx")
    out = tmp_path / "out.npz"
    for seed in range(5):
        assert call("run", picker, "--dim", "K=20", "--seed", seed, "-o", out).code == 0
        assert set(np.load(out)["picked"].tolist()) == {10.0, 20.0, 30.0}, "the whole table"
    assert call("run", picker, "--dim", "K=50", "--input-range", "index=0..2", "-o", out).code == 0
    assert set(np.load(out)["picked"].tolist()) == {10.0, 20.0, 30.0}
    assert call("run", picker, "--dim", "K=2", "--fill1", "index", "--fill0", "@1", "-o", out).code == 0
    assert np.load(out)["picked"].tolist() == [20.0, 20.0]
    assert np.load(out)["opposite"].tolist() == [True, True]


@pytest.mark.parametrize(
    "words",
    [
        ["--input", "z=x.npy"],
        ["--input", "x"],
        ["--input", "x=absent.npy"],
        ["--input", "x=model.onnx"],
        ["--input", "@0", "5"],
        ["--input", "@7", "5"],
        ["--input-range", "x=2..1"],
        ["--fill0", "z"],
        ["--dim", "M=2"],
        ["--arch", "ref"],
        ["--fp16"],
        ["-o", "out.txt"],
        ["--inputs", "absent"],
    ],
    ids=" ".join,
)
def test_inputs_that_do_not_fit_are_usage_errors(call: Call, artifact: Path, words: list[str]) -> None:
    answer = call("run", artifact, *words)
    assert answer.code == 2
    assert answer.err.startswith("argosy: error:")


def test_a_wrong_shape_says_what_was_expected(call: Call, artifact: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.T)
    answer = call("run", artifact, "--input", f"x={tmp_path / 'x.npy'}")
    assert answer.code == 2
    assert "expected float32[N, 4], found float32[4, 3]" in answer.err


def test_files_follow_the_umask(call: Call, model: Path) -> None:
    assert call("compile", model).code == 0
    mode = stat.S_IMODE(model.with_suffix(".argosy").stat().st_mode)
    assert mode & 0o400


def test_external_data_travels_into_the_artifact(call: Call, model: Path, tmp_path: Path) -> None:
    proto = onnx.load(model)
    onnx.save(proto, tmp_path / "split.onnx", save_as_external_data=True, location="split.bin", size_threshold=1)
    assert call("compile", tmp_path / "split.onnx").code == 0
    np.save(tmp_path / "x.npy", X)
    words = ["--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz"]
    assert call("run", tmp_path / "split.argosy", *words).code == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], models.classify(X), rtol=1e-4)


def test_values_may_have_any_name(tmp_path: Path) -> None:
    """`np.savez` takes these names as its own keywords."""
    path = tmp_path / "named.npz"
    write_npz(path, {"file": X, "allow_pickle": X + 1, "a/b": [X]})
    with np.load(path) as held:
        assert sorted(held) == ["a/b[0]", "allow_pickle", "file"]
        assert np.array_equal(held["file"], X)
