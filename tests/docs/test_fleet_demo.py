"""The README's fleet: its commands, one after the other, answer what it shows, but for numbers and hashes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from argosy import host_cpu
from argosy.packaging.pip import ordinary_index
from tests.docs.consoles import answers, consoles, steps
from tests.models import real_models

ROOT: Final = Path(__file__).resolve().parents[2]


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
    (console,) = consoles(ROOT / "README.md")
    for command, shown in steps(console):
        words = ["/bin/sh", "-c", command]
        where = node if command.startswith("node/") else environment
        done = subprocess.run(words, cwd=folder, env=where, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"
        assert answers(shown, done.stdout), f"{command}\n{done.stdout}"
