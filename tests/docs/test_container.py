"""The container file of the docs is one that its linter has nothing to say about."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "examples" / "Containerfile"
LINTER = Path(sys.executable).with_name("hadolint")


def lint(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LINTER, "--no-color", "-"], input=text, capture_output=True, text=True, check=False)


def test_the_linter_finds_nothing() -> None:
    done = lint(FILE.read_text())
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_would_find_something() -> None:
    done = lint(FILE.read_text().replace("--no-cache-dir", ""))
    assert done.returncode == 1
    assert "DL3042" in done.stdout


def test_it_is_slim_has_no_privileges_and_asks_pip_as_the_index_says() -> None:
    text = FILE.read_text()
    assert re.search(r"^ARG BASE=python:3\.\d+-slim$", text, re.MULTILINE)
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
    for option in ("--index-url", "--extra-index-url"):
        assert option in text
