"""Programs as files: what is kept of the constants beside the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir import Builder, Program, program_files
from argosy.ir.dtype import STRING, dtype
from argosy.ir.literal import Literal
from argosy.ir.printer import print_program


def written(folder: Path, *constants: Literal) -> Path:
    build = Builder()
    program = Program(build.module({f"c{number}": build.constant(each) for number, each in enumerate(constants)}))
    for name, content in program_files.program_files("kept", program).items():
        (folder / name).write_bytes(content)
    return folder / "kept.txt"


def texts(*elements: str | bytes) -> Any:
    found = np.empty(len(elements), dtype=object)
    found[:] = elements
    return found


def test_every_kind_of_constant_comes_back(tmp_path: Path) -> None:
    kinds = [
        Literal.of(np.arange(60, dtype=np.float32).reshape(3, 20)),
        Literal.of(np.arange(33, dtype=np.int64) - 7, dtype("int4")),
        Literal.of(texts("a", "", "b\0", "ü", "\udc80", b"\xff\0", *"ghijk"), STRING),
    ]
    program = program_files.read_program(written(tmp_path, *kinds))
    assert [literal.digest for literal in program.literals] == [literal.digest for literal in kinds]
    assert list(program.literals[2].array()[:7]) == ["a", "", "b\0", "ü", "\udc80", b"\xff\0", "g"]
    assert print_program(program) in written(tmp_path, *program.literals).read_text()


def test_a_missing_constant_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, Literal.of(np.arange(60, dtype=np.float32)))
    file.with_suffix(".npz").unlink()
    with pytest.raises(ModelError, match="no constant with the content"):
        program_files.read_program(file)
    file.with_suffix(".npz").write_bytes(b"PK no zip")
    with pytest.raises(ModelError, match="the constants cannot be read"):
        program_files.read_program(file)


def test_many_bytes_are_left_out_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_files, "CONSTANTS_LIMIT", 1 << 20)
    file = written(tmp_path, Literal.of(np.arange(1 << 19, dtype=np.float32)))
    assert file.read_text().startswith("# its constants are over 1 MiB and were left out\n")
    assert not file.with_suffix(".npz").exists()
