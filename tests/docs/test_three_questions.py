"""The three questions of the documentation: each is answered by five commands, which answer what the page shows."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from argosy import host_cpu
from argosy.emulation.c_engine.build import engine_reason
from tests.docs.consoles import answers, consoles, steps

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/three-questions.md"
LONG: Final = 200
"""Seconds that a command may take on a busy machine."""


@pytest.mark.skipif((host_cpu.system(), host_cpu.isa()) != ("linux", "x86_64"), reason="code for x86-64 runs here")
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is missing")
@pytest.mark.skipif(bool(engine_reason()), reason=engine_reason())
@pytest.mark.parametrize("question", ["numbers", "speed", "compiling"])
def test_a_question_is_answered_in_five_commands(question: str, tmp_path: Path) -> None:
    console = consoles(PAGE)[["numbers", "speed", "compiling"].index(question)]
    commands = list(steps(console))
    assert len(commands) == 5
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # noqa: TID251 - for a shell
    environment = {**os.environ, "PATH": path}  # noqa: TID251 - for a shell
    models = ["python", str(ROOT / "examples/puzzling_models.py")]
    subprocess.run(models, cwd=tmp_path, env=environment, check=True)
    for command, shown in commands:
        words = ["/bin/sh", "-c", command]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=LONG
        )
        assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"
        assert answers(shown, done.stdout), f"{command}\n{done.stdout}"
