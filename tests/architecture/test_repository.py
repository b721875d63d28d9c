"""The repository names no machine: no home or working folders, no addresses of package registries."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.architecture.sources import ROOT

FOLDERS = re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt)/\w")
HOSTS = re.compile(r"\b(?:pypi|pythonhosted|npmjs|debian)\.(?:org|com)\b")
# The licence is quoted word for word.
QUOTED = ("LICENSE",)


def repository_files() -> list[str]:
    """Tracked files, and new ones that are not ignored."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted({name for name in listed.split("\0") if name and name not in QUOTED and (ROOT / name).is_file()})


@pytest.mark.parametrize("pattern", [FOLDERS, HOSTS], ids=["folders", "hosts"])
def test_no_file_names_a_machine(pattern: re.Pattern[str]) -> None:
    found = []
    for name in repository_files():
        content = (ROOT / name).read_bytes()
        if b"\0" in content:
            continue
        text = content.decode("utf-8")
        found += [f"{name}:{number}" for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    assert not found


def test_the_patterns_find_what_they_are_for() -> None:
    assert FOLDERS.search("open('/" + "home/someone/x')")
    assert not FOLDERS.search("frame/" + "work/flow")
    assert HOSTS.search("https://" + "pypi" + ".org/simple")


def test_no_large_file_is_committed() -> None:
    large = {name: size for name in repository_files() if (size := (ROOT / name).stat().st_size) > 1 << 20}
    assert not large, "models and artifacts of more than 1 MiB are fetched or built, not committed"
