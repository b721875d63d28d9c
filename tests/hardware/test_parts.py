"""Packs of parts: what goes in comes out where it runs, and what is wrong there is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.models import catalog
from tests.hardware.__main__ import main
from tests.hardware.pack_parts import PARTS
from tests.hardware.packs import Packs
from tests.hardware.run_parts import judge_parts
from tests.targets.cpu.loops import needs_compiler

NET = "two_branches_small"

pytestmark = needs_compiler


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    assert main(["pack-parts", str(tmp_path), "--arch", "x86-64-v2", "--model", NET]) == 0
    return tmp_path


def test_instructions_go_there_and_are_judged(packs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-parts", str(packs), "--device", "cpu", "--workers", "1", "--reports", str(packs / "told")]) == 0
    assert f"{NET}: every instruction agrees" in capsys.readouterr().out
    assert "instructions compared: 0 differ alone" in (packs / "told" / f"{NET}.txt").read_text()


def test_other_weights_are_not_taken(packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of parts goes by what they compute: a model with other weights has none."""
    made = catalog.make
    monkeypatch.setattr(catalog, "make", lambda name: made(name, width=16))
    assert judge_parts(Packs(packs, PARTS), NET, "cpu").reason
