"""What the tests of the command line share: a model, its artifact, and a way to call `main`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from argosy.cli.main import main
from tests.cli import models


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command line did."""

    code: int
    out: str
    err: str


Call: TypeAlias = Callable[..., Answer]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command line in this process."""

    def run(*words: object) -> Answer:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A classifier with a symbolic batch."""
    return models.classifier(tmp_path / "model.onnx")


@pytest.fixture
def artifact(model: Path) -> Path:
    """Its artifact."""
    path = model.with_suffix(".argosy")
    assert main(["compile", str(model), "--arch", "ref", "-o", str(path), "--quiet"]) == 0
    return path
