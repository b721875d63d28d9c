"""`list`, `inspect` and `merge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.artifact.artifact import Artifact
from tests.cli import models
from tests.cli.conftest import Call
from tests.targets import mirror

assert mirror.MirrorTarget.name == "mirror"


@pytest.fixture
def two(call: Call, model: Path, tmp_path: Path) -> tuple[Path, Path]:
    """One model for two archs, a file each."""
    paths = tmp_path / "one.argosy", tmp_path / "two.argosy"
    for arch, path in zip(("mirror1", "mirror2"), paths, strict=True):
        assert call("compile", model, "--arch", arch, "-o", path).code == 0
    return paths


def test_list_has_a_line_for_each_variant(call: Call, two: tuple[Path, Path]) -> None:
    lines = call("list", two[0], "--why").out.splitlines()
    assert len(lines) == 3, "header, variant, ref"
    assert lines[1].startswith("mirror1, fp32")
    assert "optimal: " in lines[1]
    assert lines[2].startswith("ref")
    told = json.loads(call("list", two[0], "--json").out)
    assert told["variants"][0]["here"]["answer"] == "optimal"


def test_merge_holds_both(call: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    merged = tmp_path / "merged.argosy"
    answer = call("merge", *two, "-o", merged)
    assert answer.code == 0
    assert "mirror1" in answer.out
    assert "mirror2" in answer.out
    assert {variant.arch for variant in Artifact.open(merged).variants} == {"mirror1", "mirror2"}
    assert json.loads(call("merge", *two, "-o", merged, "--json").out)["weights"]["count"] == 1


def test_merge_refuses_what_differs_and_names_it(call: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    other = models.classifier(tmp_path / "other.onnx", name="other", output="z")
    assert call("compile", other, "-o", tmp_path / "other.argosy").code == 0
    merged = tmp_path / "merged.argosy"
    answer = call("merge", two[0], tmp_path / "other.argosy", "-o", merged)
    assert answer.code == 5
    assert "'classifier'" in answer.err
    assert "'other'" in answer.err
    assert "the output 'z' is only in" in answer.err
    assert not merged.exists()


def test_merge_says_what_is_missing(call: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    assert call("merge", two[0], "-o", tmp_path / "m.argosy").code == 2
    assert call("merge", *two).code == 2
    assert "this version" in call("merge", *two, "--fallback", "p.argosy", "-o", "m.argosy").err


def test_inspect_shows_the_manifest(call: Call, two: tuple[Path, Path]) -> None:
    text = call("inspect", two[0]).out
    artifact = Artifact.open(two[0])
    assert all(word in text for word in (artifact.model_hash, "float32[N, 4]", "mirror1, fp32", "embedded"))


def test_inspect_one_variant_its_plan_and_the_weights(call: Call, two: tuple[Path, Path]) -> None:
    key = Artifact.open(two[0]).variants[0].key
    for name in ("mirror1", "mirror1, fp32", key[:10]):
        assert key in call("inspect", two[0], "--variant", name).out
    plan = call("inspect", two[0], "--plan").out
    assert "= dot(" in plan
    assert "# mm" in plan
    assert "float32[4, 300]" in call("inspect", two[0], "--weights").out
    told = json.loads(call("inspect", two[0], "--plan", "--weights", "--json").out)
    assert told["plans"][key]["inputs"] == [{"name": "x", "buffer": 0}]
    assert len(told["weights"]["entries"]) == 1


def test_inspect_says_what_is_not_there(call: Call, two: tuple[Path, Path], artifact: Path) -> None:
    answer = call("inspect", two[0], "--variant", "miror1")
    assert answer.code == 2
    assert "did you mean 'mirror1'?" in answer.err
    assert call("inspect", artifact, "--plan").code == 2
    assert call("inspect", artifact, "--code").code == 2
    assert "--code" in call("inspect", two[0], "--kernel", "k").err
