"""Instructions one by one by code that was compiled elsewhere: the same verdicts, and nothing compiled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import argosy
from argosy import Artifact
from argosy.compiler import compile_program
from argosy.errors import CompileError, UsageError
from argosy.ir import Builder, Program
from argosy.ir.dtype import FLOAT32, INT64
from argosy.ops.matmul import Dot
from argosy.options import CompileOptions
from argosy.targets.base import Target
from argosy.verification import Parts, Report, save_parts
from benchmarks.models import catalog
from tests.targets.cpu.loops import needs_compiler
from tests.verification.test_instructions import SIZE, plant, program

pytestmark = needs_compiler

INPUTS = {"x": np.random.default_rng(2).standard_normal((5, SIZE)).astype(np.float32)}


@contextmanager
def no_compiler() -> Iterator[None]:
    """Whoever compiles fails."""
    broken = mock.Mock(side_effect=AssertionError("there is no compiler here"))
    names = ("argosy.verification.code.compile_program", "argosy.verification.parts.compile_program")
    with mock.patch(names[0], broken), mock.patch(names[1], broken):
        yield


def verified(artifact: Artifact, parts: Path) -> Report:
    """By the program in the artifact, as on a machine that has nothing else."""
    with no_compiler():
        return argosy.verify(artifact.program(), artifact, device="cpu", per_instruction=True, parts=parts)


@pytest.fixture
def artifact() -> Artifact:
    return argosy.compile(program(), targets=["cpu"])


@pytest.fixture
def parts(artifact: Artifact, tmp_path: Path) -> Path:
    save_parts(artifact.program(), artifact, INPUTS, tmp_path / "parts")
    return tmp_path / "parts"


def test_the_verdicts_are_those_of_one_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Code with a planted fault is judged where neither the fault nor a compiler is."""
    with monkeypatch.context() as planted:
        plant(planted)
        given = program()
        artifact = argosy.compile(given, targets=["cpu"])
        save_parts(given, artifact, INPUTS, tmp_path / "parts")
        here = argosy.verify(given, artifact, device="cpu", inputs=INPUTS, per_instruction=True)
    there = verified(artifact, tmp_path / "parts")
    assert [entry.node for entry in there.instructions if entry.mismatches] == ["one"]
    wrong = [entry.node for entry in there.instructions if entry.accumulated_mismatches]
    assert wrong == ["one", "tanh1", "dot2", "tanh2"]
    for ours, theirs in zip(there.instructions, here.instructions, strict=True):
        assert (ours.node, ours.differences, ours.mismatches) == (theirs.node, theirs.differences, theirs.mismatches)
        assert bool(ours.accumulated_mismatches) == bool(theirs.accumulated_mismatches)
    assert there.cases[0].differences == here.cases[0].differences, "the inputs came along"
    assert not there.passed


def test_bodies_come_along(tmp_path: Path) -> None:
    source, feeds = catalog.make("decoder_small"), catalog.feeds("decoder_small")
    given = argosy.load_onnx(source)
    artifact = argosy.compile(given, targets=["cpu"])
    save_parts(given, artifact, feeds, tmp_path / "parts")
    here = argosy.verify(given, artifact, device="cpu", inputs=feeds, per_instruction=True)
    there = verified(artifact, tmp_path / "parts")
    assert [entry.node for entry in there.instructions] == [entry.node for entry in here.instructions]
    assert all(entry.passed and not entry.failed for entry in there.instructions)


def test_weights_stay_in_the_artifact(tmp_path: Path) -> None:
    build = Builder()
    x = build.tensor_parameter("x", FLOAT32, ("N", 256))
    y = build.add(Dot(), x, build.constant(np.random.default_rng(1).standard_normal((256, 256)).astype(np.float32)))
    given = Program(build.module({"y": y}))
    artifact = argosy.compile(given, targets=["cpu"])
    save_parts(given, artifact, {"x": np.ones((2, 256), np.float32)}, tmp_path / "parts")
    assert sum(file.stat().st_size for file in (tmp_path / "parts").glob("*.argosy")) < 256 * 256 * 4
    assert all(entry.passed and not entry.failed for entry in verified(artifact, tmp_path / "parts").instructions)


def test_a_part_that_does_not_compile_is_told_there(tmp_path: Path, artifact: Artifact) -> None:
    def refuses(given: Program, targets: Sequence[Target], options: CompileOptions, **more: Any) -> Artifact:
        if any(step.source == "tanh1" for step in given.main.instructions):
            raise CompileError("tanh1 is too hard")
        return compile_program(given, targets, options, **more)

    with mock.patch("argosy.verification.parts.compile_program", refuses):
        (saved,) = save_parts(artifact.program(), artifact, INPUTS, tmp_path / "parts")
    assert saved.failed
    assert "do not compile" in str(saved)
    failed = {entry.node: entry.failed for entry in verified(artifact, tmp_path / "parts").instructions}
    assert failed["tanh1"] == "tanh1 is too hard"
    alone = {entry.node for entry in verified(artifact, tmp_path / "parts").instructions if entry.differences}
    assert alone == {"dot0", "tanh0", "dot1", "one", "dot2", "tanh2", "apart"}


def test_every_variant_that_takes_the_sizes_has_parts(tmp_path: Path) -> None:
    artifact = argosy.compile(program(), targets=["cpu"], dims={"N": [5, 7]})
    saved = save_parts(artifact.program(), artifact, INPUTS, tmp_path / "parts")
    assert [each.variant for each in saved] == [
        variant.words for variant in artifact.variants if variant.dims in ({}, {"N": 5})
    ]
    assert len(saved) == 2
    report = verified(artifact, tmp_path / "parts")
    assert "N=5" in report.variant
    assert all(entry.passed and not entry.failed for entry in report.instructions)


def test_what_lies_in_the_folder_is_all_there_is(parts: Path, artifact: Artifact) -> None:
    for file in parts.glob("*.argosy"):
        file.unlink()
    report = verified(artifact, parts)
    assert report.passed, "the artifact itself runs"
    assert {entry.failed for entry in report.instructions} == {"no code of it was saved"}


def edited(parts: Path, **changes: Any) -> Path:
    about = json.loads((parts / "about.json").read_text())
    (parts / "about.json").write_text(json.dumps(about | changes))
    return parts


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"argosy": "0.0.1"}, "argosy 0.0.1"),
        ({"model": "0" * 64}, "another model"),
        ({"variants": {"0" * 64: "gfx942"}}, "only for gfx942"),
    ],
)
def test_parts_of_something_else_are_refused(
    parts: Path, artifact: Artifact, changes: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        verified(artifact, edited(parts, **changes))


def test_folders_that_are_none(parts: Path, artifact: Artifact, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder of parts"):
        Parts.open(tmp_path)
    with pytest.raises(UsageError, match="there already"):
        save_parts(artifact.program(), artifact, INPUTS, parts)
    (parts / "about.json").write_text("[]")
    with pytest.raises(UsageError, match="no folder of parts"):
        Parts.open(parts)


def test_inputs_of_other_sizes_have_no_code(tmp_path: Path) -> None:
    build = Builder()
    x = build.tensor_parameter("x", INT64, ("N",))
    given = Program(build.module({"y": build.pointwise("add", x, x)}))
    artifact = argosy.compile(given, targets=["ref"])
    with pytest.raises(UsageError, match="no code for inputs of these sizes"):
        save_parts(given, artifact, {"x": np.zeros(3, np.int64)}, tmp_path / "parts")
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize("more", [{"inputs": INPUTS}, {"cases": 2}, {"per_instruction": False}])
def test_what_does_not_go_with_parts(parts: Path, artifact: Artifact, more: dict[str, Any]) -> None:
    options: dict[str, Any] = {"per_instruction": True, "parts": parts, **more}
    with pytest.raises(UsageError, match="parts have inputs of their own"):
        argosy.verify(artifact.program(), artifact, device="cpu", **options)
