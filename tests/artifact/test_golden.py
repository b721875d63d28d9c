"""Artifacts of every schema version that has been still load and compute what numpy does."""

from __future__ import annotations

from pathlib import Path

import pytest

import argosy
from argosy.artifact.manifest import SCHEMA
from argosy.comparison import Agree, compare
from tests.artifact.golden.__main__ import CASES, FOLDER

FILES = sorted(FOLDER.glob("*/*.argosy"))


def test_there_are_golden_artifacts_of_this_schema() -> None:
    assert {path.stem for path in FILES if path.parent.name == str(SCHEMA)} >= set(CASES)


@pytest.mark.parametrize("device", ["ref", "host"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_golden_artifact_loads_and_computes(path: Path, device: str) -> None:
    _, inputs, expected = CASES[path.stem]()
    found = argosy.Session(path, device=device).run(inputs)
    assert compare(expected, found, Agree()) == ()


def test_the_same_program_gives_the_same_bytes_again() -> None:
    for make in CASES.values():
        first, second = (argosy.compile(make()[0], targets=["ref"]).to_bytes() for _ in range(2))
        assert first == second
