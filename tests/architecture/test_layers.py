"""The layer contracts of pyproject.toml hold."""

from __future__ import annotations

import subprocess
import sys

from tests.architecture.sources import ROOT

LINT = "from importlinter.cli import lint_imports_command as command; command(['--no-cache', '--no-logo'])"


def test_every_import_contract_is_kept() -> None:
    done = subprocess.run([sys.executable, "-c", LINT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
