"""A merge that ends before its time, at any operation on its file, leaves the old file or none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.merge import merge
from argosy.errors import EnvironmentError_
from tests.artifact import samples
from tests.artifact.breaking import broken_writes


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "a.argosy", tmp_path / "b.argosy"]
    for path, arch in zip(paths, "ab", strict=True):
        path.write_bytes(samples.artifact(samples.variant(arch)))
    return paths


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked to be killed")
@pytest.mark.parametrize("there", [True, False], ids=["replaces", "makes"])
def test_a_merge_that_is_killed_leaves_the_old_file_or_none(files: list[Path], tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    command = [sys.executable, "-m", "tests.artifact.breaking", str(files[0]) if there else "-"]
    done = subprocess.run(
        [*command, str(folder / "fleet.argosy"), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    left = done.stdout.split()
    # A header, content, and the header again for each of 12 entries; killed as long as it has not been renamed.
    assert len(left) > 36
    assert set(left[:-2]) == {"old"}
    assert left[-1] == "new"


def no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_merge_that_the_disk_refuses_leaves_the_old_file_and_no_other(files: list[Path], tmp_path: Path) -> None:
    inputs = [ArtifactFile.open(file) for file in files]
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "fleet.argosy"
    hints: list[str] = []
    merged = False
    while not merged:
        target.write_bytes(b"old")
        with broken_writes(len(hints), no_space):
            try:
                merge(inputs, target)
                merged = True
            except EnvironmentError_ as error:
                hints.append(error.hint)
        assert merged or target.read_bytes() == b"old"
        assert [path.name for path in folder.iterdir()] == ["fleet.argosy"]
    assert len(hints) > 36
    assert set(hints) == {"free some disk space, or write elsewhere"}
    ArtifactFile.open(target).verify()
