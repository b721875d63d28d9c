"""Runs pip of this Python, on this environment or on a fresh one."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from argosy.errors import EnvironmentError_
from argosy.options import plain_environment

__all__ = ["fresh_environment", "ordinary_index", "run_pip", "run_python"]

_DEFAULT: Final = re.compile(r"--index-url <url>.*?\(default\s+([^\s)]+)\)", re.DOTALL)
_HIDDEN: Final = "****"
"""What pip shows in place of a password."""


def ordinary_index() -> str:
    """The address of the index that pip of this Python asks by default: its configuration's, else its own.

    Raises EnvironmentError_ where there is no pip, or where the address has a password, which pip does not tell.
    """
    told = _run([sys.executable, "-m", "pip", "install", "--help"], COLUMNS="9999")
    found = _DEFAULT.search(told.stdout)
    hint = "name the index of ordinary packages with --extra-index-url URL"
    if told.returncode or found is None:
        raise EnvironmentError_("pip of this Python does not tell which index it asks", hint=hint)
    if _HIDDEN in found[1]:
        raise EnvironmentError_("the index that pip asks has a password in its address", hint=hint)
    return found[1]


def fresh_environment(folder: Path) -> Path:
    """Make a virtual environment without any package in a folder; returns its interpreter."""
    builder = venv.EnvBuilder(symlinks=sys.platform != "win32")
    builder.create(folder)
    return Path(builder.ensure_directories(folder).env_exe)


def run_pip(words: Sequence[str], python: Path) -> subprocess.CompletedProcess[str]:
    """Run pip on the environment of an interpreter, which is short-lived: nothing is compiled beforehand."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "--no-input",
        "--disable-pip-version-check",
        *words,
    ]
    return _run(command, PIP_NO_COMPILE="1")


def run_python(python: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the text of a program in an environment, which sees nothing of the caller's."""
    return _run([str(python), "-I", "-c", program, *words])


def _run(command: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - a list of words
        list(command),
        env={**plain_environment(), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
