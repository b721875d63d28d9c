"""The documentation is true: its Python examples run, and the site builds without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.models import catalog
from benchmarks.models.family import serialize

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUILD = "from mkdocs.__main__ import cli; cli(['build', '--quiet', '--strict', '--site-dir', {target!r}])"


def examples(page: Path) -> list[str]:
    """The Python blocks of a page, in order; later ones may use what earlier ones define."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples(page)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    (tmp_path / "resnet.onnx").write_bytes(serialize(catalog.make("resnet_small"))[0])
    program = tmp_path / "page.py"
    program.write_text("\n".join(examples(page)), encoding="utf-8")
    command = [sys.executable, "-W", "error", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUILD.format(target=str(tmp_path / "site"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "index.html").is_file()
