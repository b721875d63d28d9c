"""The README's fleet: its commands, one after the other, answer what it shows, but for numbers and hashes."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from argosy import host_cpu
from argosy.packaging.pip import ordinary_index
from tests.models import real_models

ROOT: Final = Path(__file__).resolve().parents[2]
_FENCE: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER: Final = re.compile(r"\b[0-9a-f]{12}\b|\d+(\.\d+)?( [kMG]?B)?")


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """Each command of the page's console, and what it shows of the answer."""
    (console,) = _FENCE.findall(page.read_text(encoding="utf-8"))
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def plain(text: str) -> str:
    """Without what differs from run to run, or with the width of columns."""
    return re.sub(r"\s+", " ", _NUMBER.sub("#", text)).strip()


def pattern(shown: str) -> str:
    """What an answer must match: the text as shown, and anything where it has an ellipsis."""
    return r"\s*.*\s*".join(re.escape(plain(part)) for part in shown.split("…"))


@pytest.mark.models
@pytest.mark.skipif(
    (host_cpu.system(), host_cpu.isa()) != ("linux", "x86_64"), reason="the last step runs its code here"
)
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is missing")
def test_the_fleet_of_the_readme(tmp_path: Path) -> None:
    real_models.path("magika-model")
    (tmp_path / "argosy").symlink_to(ROOT)
    folder = tmp_path / "fleet"
    folder.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # noqa: TID251 - for a shell
    environment = {**os.environ, "PATH": path, "INDEX": ordinary_index()}  # noqa: TID251
    node = {name: value for name, value in environment.items() if name != "PYTHONPATH"}  # it has what it installs
    for command, shown in steps(ROOT / "README.md"):
        words = ["/bin/sh", "-c", command]
        where = node if command.startswith("node/") else environment
        done = subprocess.run(words, cwd=folder, env=where, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"
        assert re.fullmatch(pattern(shown), plain(done.stdout)), f"{command}\n{done.stdout}"
