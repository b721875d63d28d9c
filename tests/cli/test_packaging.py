"""`package` and `index`: options, answers and exit codes; what the wheels are is tested in tests/packaging."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.packaging import check, pip
from argosy.packaging.check import Finding
from tests.cli.conftest import Call
from tests.packaging.releases import fleet, index


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The artifact of a fleet."""
    fleet().save(tmp_path / "fleet.argosy")
    return tmp_path / "fleet.argosy"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the wheels of a fleet and their index."""
    monkeypatch.setattr(pip, "ordinary_index", lambda: "https://other.example/simple")
    index(tmp_path / "dist")
    return tmp_path / "dist"


def test_package_lists_the_wheels(call: Call, file: Path, tmp_path: Path) -> None:
    answer = call("package", file, "--name", "Net", "--version", "1.2", "-o", tmp_path / "dist")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert [line.rpartition("B  ")[2] for line in lines] == [
        "the model, for every machine", "code for gfx942", "code for x86-64-v3", "code for sm_90",
    ]  # fmt: skip
    assert all(Path(line.split()[0]).is_file() for line in lines)
    assert f"argosy index build {tmp_path / 'dist'}" in answer.err
    told = json.loads(call("package", file, "--name", "Net", "--version", "1.2", "-o", tmp_path / "dist", "--json").out)
    assert [one["file"] for one in told] == [line.split()[0] for line in lines]
    assert {one["role"] for one in told} == {"host", "device"}


def test_package_needs_a_name_and_a_version(call: Call, file: Path) -> None:
    for words, missing in ((("--version", "1.2"), "--name"), (("--name", "net"), "--version")):
        answer = call("package", file, *words)
        assert (answer.code, f"{missing} is missing" in answer.err) == (2, True)
    assert call("package", file, "--name", "a b", "--version", "1.2").code == 2


def test_build_prints_the_line_for_each_arch(call: Call, built: Path, tmp_path: Path) -> None:
    answer = call("index", "build", built, "-o", tmp_path / "served")
    assert answer.code == 0
    lines = [line.strip() for line in answer.out.splitlines() if "pip install" in line]
    assert len(lines) == 3
    url = (tmp_path / "served" / "simple" / "gfx942").as_uri()
    assert lines[0].startswith(
        f"pip install --index-url {url}/ --extra-index-url https://other.example/simple 'net[dev"
    )
    words = (
        "--pages-url",
        "https://pages.example/",
        "--wheel-url",
        "https://files.example",
        "--extra-index-url",
        "https://b",
    )
    told = json.loads(call("index", "build", built, *words, "--json").out)
    assert [one["arch"] for one in told] == ["gfx942", "sm_90", "x86-64-v3"]
    assert told[1]["install"].startswith(
        "pip install --index-url https://pages.example/simple/sm_90/ --extra-index-url https://b 'net[device-sm-90]=="
    )


def test_a_model_without_code_is_for_any_machine(call: Call, artifact: Path, tmp_path: Path) -> None:
    assert call("package", artifact, "--name", "net", "--version", "1.2", "-o", tmp_path / "dist").code == 0
    answer = call("index", "build", tmp_path / "dist", "--extra-index-url", "https://other.example")
    title, line = answer.out.splitlines()
    assert title.endswith(" on any machine")
    url = (tmp_path / "dist" / "simple" / "all").as_uri()
    assert line.strip().startswith(
        f"pip install --index-url {url}/ --extra-index-url https://other.example net==1.2+argosy."
    )


@pytest.mark.parametrize("good", [True, False])
def test_check_ends_with_what_it_finds(call: Call, built: Path, monkeypatch: pytest.MonkeyPatch, good: bool) -> None:
    findings = [
        Finding("gfx942", "pip install net", good, "words"),
        Finding("all", "pip install net", good=True, words=""),
    ]
    monkeypatch.setattr(check, "check_index", lambda *_, **__: iter(findings))
    answer = call("index", "check", built)
    assert answer.code == (0 if good else 1)
    assert answer.out.splitlines()[:2] == [f"{'ok' if good else 'wrong'}  gfx942: words", "      pip install net"]
    told = json.loads(call("index", "check", built, "--json").out)
    assert [one["good"] for one in told] == [good, True]


def test_publish_lists_the_files(call: Call, built: Path, tmp_path: Path) -> None:
    answer = call("index", "publish", built, "--to", tmp_path / "out", "--dry-run")
    assert answer.code == 0
    assert "releases/sm_90/net_device_sm_90" in answer.out
    assert "would write" in answer.err
    assert not (tmp_path / "out").exists()
    told = json.loads(call("index", "publish", built, "--to", tmp_path / "out", "--arch", "sm_90", "--json").out)
    assert all((tmp_path / "out" / one["path"]).stat().st_size == one["size"] for one in told)
    assert not any("gfx942" in one["path"] for one in told)


def test_an_action_takes_its_own_options_alone(call: Call, built: Path) -> None:
    for words in (("check", built, "--to", "x"), ("build", built, "--dry-run"), ("publish", built, "--also", "x")):
        answer = call("index", *words)
        assert answer.code == 2
        assert f"index {words[0]} takes no {words[2]}" in answer.err
    assert "--to DIR is missing" in call("index", "publish", built).err
    assert call("index", "publish", built, "--to", "x", "--arch", "gfx9").code == 2
    assert call("index", "sort", built).code == 2
