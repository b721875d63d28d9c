"""`list`, `inspect`, `merge`, `split`, `drop`, `diff` and `recompile`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argosy
from argosy.artifact.artifact import Artifact
from argosy.artifact.manifest import Requirements, VariantRecord
from argosy.cli.describe import requirements_text
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
    assert "p.argosy: no such file" in call("merge", *two, "--fallback", "p.argosy", "-o", "m.argosy").err


def test_merge_tells_of_each_variant_and_of_what_it_leaves_out(
    call: Call, two: tuple[Path, Path], model: Path, tmp_path: Path
) -> None:
    fat, portable, merged = (tmp_path / f"{name}.argosy" for name in ("fat", "portable", "merged"))
    assert call("compile", model, "--arch", "mirror1,mirror2-portable", "-o", fat).code == 0
    assert call("compile", model, "--arch", "mirror1-portable", "-o", portable).code == 0
    words = "merge", fat, two[1], "--fallback", portable, "-o", merged
    title, header, *rows = call(*words).out.splitlines()
    assert str(merged) in title
    assert header.split() == ["variant", "kind", "requires", "bytes", "from"]
    assert [[" ".join(row.split()[:3]), row.split()[-1]] for row in rows[:3]] == [
        ["mirror1, fp32 native", str(fat)],
        ["mirror1-portable, fp32 fallback", str(portable)],
        ["mirror2, fp32 native", str(two[1])],
    ]
    assert rows[3].split()[0] == "ref"
    assert rows[4:] == [f"  left out: mirror2-portable, fp32 of {fat}: it is portable, and not named with --fallback"]
    told = json.loads(call(*words, "--json").out)
    assert [(v["arch"], v["fallback"], v["sources"]) for v in told["variants"]] == [
        ("mirror1", False, [str(fat)]),
        ("mirror1-portable", True, [str(portable)]),
        ("mirror2", False, [str(two[1])]),
    ]
    assert [(left["variant"], left["source"]) for left in told["left_out"]] == [("mirror2-portable, fp32", str(fat))]
    listed = call("list", merged).out
    assert "fallback" in next(line for line in listed.splitlines() if line.startswith("mirror1-portable"))
    assert argosy.Session(merged, device="host").run({"x": np.ones((2, 4), np.float32)})["y"].shape == (2, 300)


@pytest.mark.parametrize(
    ("system", "needs", "words"),
    [
        ("", Requirements(), "nothing more"),
        ("", Requirements((), "12.8", 4800), "driver 12.8, 4.8 kB of device memory"),
        ("", Requirements(("g1", "g2")), "g1 or g2"),
        ("linux", Requirements(tuple("abcdef")), "a b c d and 2 more"),
    ],
)
def test_requirements_in_words(system: str, needs: Requirements, words: str) -> None:
    assert requirements_text(VariantRecord("", "f", "a", "a", system=system, requirements=needs)) == words


def test_merge_in_python_warns_of_what_it_leaves_out(
    call: Call, two: tuple[Path, Path], model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert call("compile", model, "--arch", "mirror1-portable", "-o", tmp_path / "p.argosy").code == 0
    one, other, portable = (Artifact.open(path) for path in (*two, tmp_path / "p.argosy"))
    kept = one.merge(other, path=tmp_path / "m.argosy", fallbacks=[portable])
    assert [variant.fallback for variant in kept.variants] == [False, True, False]
    assert not caplog.records
    assert len(one.merge(other, portable, path=tmp_path / "m.argosy").variants) == 2
    assert "mirror1-portable, fp32 of" in caplog.text


@pytest.mark.parametrize(
    "words", [["merge", "a", "b", "-o", "o"], ["split", "c", "-o", "{arch}"], ["drop", "c", "mirror1", "-o", "o"]]
)
def test_artifacts_are_handled_without_compiler_devices_and_torch(
    call: Call, two: tuple[Path, Path], tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "a").write_bytes(two[0].read_bytes())
    (tmp_path / "b").write_bytes(two[1].read_bytes())
    assert call("merge", *two, "-o", tmp_path / "c").code == 0
    code = (
        "import sys\n"
        "from argosy.cli.main import main\n"
        f"assert main({words}) == 0\n"
        "print(*(name for name in sys.modules if name.startswith('argosy') or '.' not in name), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    loaded = set(done.stderr.split())
    sides = ("compiler", "passes", "rewrite", "frontends", "targets", "runtime", "drivers", "toolchains")
    assert "argosy.artifact.artifact_file" in loaded
    assert not loaded & {*(f"argosy.{side}" for side in sides), "torch", "triton", "onnx", "ziglang"}


@pytest.fixture
def fleet(call: Call, two: tuple[Path, Path], tmp_path: Path) -> Path:
    """Both archs in one file."""
    assert call("merge", *two, "-o", tmp_path / "fleet.argosy").code == 0
    return tmp_path / "fleet.argosy"


def test_split_lists_the_files(call: Call, fleet: Path, tmp_path: Path) -> None:
    pattern = str(tmp_path / "dist" / "{arch}" / "{name}.argosy")
    _, *rows = call("split", fleet, "-o", pattern).out.splitlines()
    files = [tmp_path / "dist" / arch / "fleet.argosy" for arch in ("mirror1", "mirror2")]
    assert [row.split()[0] for row in rows] == list(map(str, files))
    assert [Artifact.open(file).variants[0].arch for file in files] == ["mirror1", "mirror2"]
    told = json.loads(call("split", fleet, "-o", pattern, "--json").out)
    assert [(row["file"], row["arch"], len(row["variants"])) for row in told] == [
        (str(files[0]), "mirror1", 1),
        (str(files[1]), "mirror2", 1),
    ]
    (again,) = Artifact.open(files[0]).split(str(tmp_path / "{arch}.argosy"))
    assert again.where == str(tmp_path / "mirror1.argosy")


def test_split_says_what_is_missing(call: Call, fleet: Path) -> None:
    assert "-o PATTERN is missing" in call("split", fleet).err
    answer = call("split", fleet, "-o", "x.argosy")
    assert answer.code == 2
    assert "has no {arch}" in answer.err


@pytest.mark.parametrize("words", [["mirror1"], ["--variant", "mirror1, fp32"]])
def test_drop_says_what_it_dropped(call: Call, fleet: Path, tmp_path: Path, words: list[str]) -> None:
    answer = call("drop", fleet, *words, "-o", tmp_path / "less.argosy")
    assert answer.out.splitlines()[0] == "dropped mirror1, fp32"
    assert [variant.arch for variant in Artifact.open(tmp_path / "less.argosy").variants] == ["mirror2"]
    key = Artifact.open(fleet).variants[0].key
    told = json.loads(call("drop", fleet, *words, "-o", tmp_path / "less.argosy", "--json").out)
    assert told["dropped"] == [key]
    assert [v.arch for v in Artifact.open(fleet).drop(key, path=tmp_path / "l.argosy").variants] == ["mirror2"]


def test_drop_says_what_is_missing(call: Call, fleet: Path, tmp_path: Path) -> None:
    assert "the variant to drop is missing" in call("drop", fleet, "-o", tmp_path / "x").err
    assert "-o FILE is missing" in call("drop", fleet, "mirror1").err
    answer = call("drop", fleet, "mirror1", "mirror2", "-o", tmp_path / "x")
    assert answer.code == 2
    assert "the last variant can't be dropped" in answer.err
    assert not (tmp_path / "x").exists()


def test_diff_ends_with_1_where_files_differ(call: Call, two: tuple[Path, Path], fleet: Path) -> None:
    same = call("diff", two[0], two[0])
    assert (same.code, same.out) == (0, "")
    assert "they are the same" in same.err
    answer = call("diff", two[0], fleet)
    assert answer.code == 1
    assert answer.out.splitlines()[0] == "variants"
    assert (
        f"the variant 'mirror2, fp32' ({Artifact.open(two[1]).variants[0].key[:12]}) is only in {fleet}" in answer.out
    )
    told = json.loads(call("diff", *two, "--json").out)
    assert told["same"] is False
    assert [len(told[title]) for title in ("program", "options", "weights", "variants")] == [0, 0, 0, 2]
    assert json.loads(call("diff", fleet, fleet, "--json").out)["same"] is True
    assert Artifact.open(two[0]).diff(Artifact.open(fleet)).variants


def test_diff_names_what_is_no_artifact(call: Call, two: tuple[Path, Path], model: Path) -> None:
    answer = call("diff", two[0], model)
    assert answer.code == 5
    assert str(model) in answer.err


def test_recompile_lists_what_came_out(call: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    new = tmp_path / "new.argosy"
    answer = call("recompile", two[0], "--arch", "mirror2", "-o", new)
    assert answer.code == 0
    assert [line.split()[0].strip(",") for line in answer.out.splitlines()[1:]] == ["mirror1", "mirror2", "ref"]
    told = json.loads(call("recompile", two[0], "-o", new, "--json").out)
    assert [variant["arch"] for variant in told["variants"]] == ["mirror1"]
    assert new.read_bytes() == two[0].read_bytes()


def test_recompile_says_what_is_missing(call: Call, two: tuple[Path, Path], tmp_path: Path) -> None:
    assert "-o FILE is missing" in call("recompile", two[0]).err
    numbers = call("recompile", two[0], "--gpu-arch-params", "{num_cu:8}", "-o", tmp_path / "x")
    assert (numbers.code, "and no arch" in numbers.err) == (2, True)
    unknown = call("recompile", two[0], "--arch", "mirror7", "-o", tmp_path / "x")
    assert (unknown.code, "did you mean" in unknown.err) == (2, True)
    slim = tmp_path / "slim.argosy"
    model = tmp_path / "model.onnx"
    assert call("compile", model, "--arch", "mirror1", "--slim", "-o", slim).code == 0
    answer = call("recompile", slim, "-o", tmp_path / "x")
    assert (answer.code, "a slim artifact can't be recompiled" in answer.err) == (5, True)
    assert not (tmp_path / "x").exists()


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
