"""What a check says of installations, where these are played: each way to go wrong is found, and told."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import ArtifactError, EnvironmentError_, UsageError
from argosy.packaging import check, pip
from argosy.packaging.check import Finding, check_index
from tests.packaging.releases import index

Done = subprocess.CompletedProcess[str]
Pip = Callable[[Sequence[str], Path], Done]


def done(code: int = 0, out: str = "", err: str = "") -> Done:
    return Done([], code, out, err)


def good_pip(words: Sequence[str], python: Path) -> Done:
    """As pip does on a good index: the arch's own page, and its extra alone."""
    url, requirement = words[2], words[-1]
    with urllib.request.urlopen(url, timeout=10) as page:  # noqa: S310 - the server of this process
        listed = page.read().decode()
    extras = requirement.partition("[")[2].partition("]")[0].split(",")
    missing = [extra for extra in extras if f"net-{extra}/" not in listed]
    return done(1, err=f"No matching distribution found for net-{missing[0]}") if missing else done()


def played(monkeypatch: pytest.MonkeyPatch, folder: Path, run: Pip = good_pip, **probe: Any) -> list[Finding]:
    told = {
        "archs": ["gfx942"],
        "wheels": ["net-device-gfx942"],
        "taken": [],
        "refused": ["cpu", "cuda"],
        "runs": "ref",
    }
    monkeypatch.setattr(check, "fresh_environment", lambda folder: folder / "python")
    monkeypatch.setattr(check, "run_pip", run)
    monkeypatch.setattr(check, "run_python", lambda *_: done(out=json.dumps(told | probe)))
    return list(check_index(index(folder), folder, ordinary="https://other.example/simple", only="gfx942"))


def test_a_good_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    findings = played(monkeypatch, tmp_path)
    assert [finding.good for finding in findings] == [True, True]
    assert findings[0].words == "gives code for gfx942 alone, and refuses cpu, cuda; here runs ref"
    assert findings[0].command.endswith(
        f"--extra-index-url https://other.example/simple 'net[device-gfx942]=={index(tmp_path).releases[0].version}'"
    )
    assert findings[1].words == "fails: sm_90 is not of this index"


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ({"archs": ["gfx942", "sm_90"]}, "it gives code for gfx942, sm_90 in net-device-gfx942"),
        ({"archs": [], "wheels": []}, "it gives code for none in no wheel"),
        ({"wheels": ["net-device-gfx942", "net-device-sm-90"]}, "in net-device-gfx942, net-device-sm-90"),
        ({"taken": ["sm_90 on cuda"]}, "sessions take devices that they have no code for: sm_90 on cuda"),
    ],
)
def test_other_code_and_other_devices_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, probe: dict[str, Any], words: str
) -> None:
    first, second = played(monkeypatch, tmp_path, **probe)
    assert (first.good, second.good) == (False, True)
    assert words in first.words


def test_what_does_not_install_or_run_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    findings = played(monkeypatch, tmp_path, lambda *_: done(1, err="no network"))
    assert [finding.good for finding in findings] == [False, False]
    assert findings[0].words == "it does not install:\n  no network"
    assert findings[1].words == "it fails for another reason:\n  no network"
    (first, second) = played(monkeypatch, tmp_path, lambda *_: done())
    assert first.good
    assert (second.good, second.words) == (False, "it installs, though sm_90 is not of this index")


def test_only_the_pages_of_the_index_are_checked(tmp_path: Path) -> None:
    made = index(tmp_path)
    with pytest.raises(UsageError, match="the index has no arch 'gfx94'\n  did you mean 'gfx942'"):
        next(check_index(made, tmp_path, ordinary="x", only="gfx94"))
    page = tmp_path / "simple" / "all" / "net" / "index.html"
    page.write_text(page.read_text().replace("sha256=", "sha256=0"))
    with pytest.raises(ArtifactError, match="all/net/index.html: this page is not the one of the index"):
        next(check_index(made, tmp_path, ordinary="x"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no such option", "does not tell which index it asks"),
        ("--index-url <url>  Base (default\n  https://user:****@host/simple).", "has a password in its address"),
    ],
)
def test_an_ordinary_index_that_pip_does_not_tell_must_be_named(
    monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.setattr(pip, "_run", lambda *_, **__: done(out=text))
    with pytest.raises(
        EnvironmentError_, match=f"{words}\n  name the index of ordinary packages with --extra-index-url"
    ):
        pip.ordinary_index()


def test_the_ordinary_index_is_that_of_pips_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"https://host.example/{'very/' * 40}simple"
    monkeypatch.setenv("PIP_INDEX_URL", address)
    assert pip.ordinary_index() == address
