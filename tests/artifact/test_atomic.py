"""Atomic writing: all or nothing under the target's name, and no litter beside it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from argosy.artifact.atomic import atomic_file
from argosy.errors import EnvironmentError_


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def write_then_raise(target: Path, error: Exception) -> None:
    with atomic_file(target) as file:
        file.write(b"part")
        raise error


def test_replaces_the_target_when_all_is_written(tmp_path: Path) -> None:
    target = tmp_path / "a.argosy"
    target.write_bytes(b"old")
    with atomic_file(target) as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert names_in(tmp_path) == ["a.argosy"]


def test_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "a") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_failure_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "a.argosy"
    target.write_bytes(b"old")
    with pytest.raises(KeyError):
        write_then_raise(target, KeyError())
    assert target.read_bytes() == b"old"
    assert names_in(tmp_path) == ["a.argosy"]


def test_full_disk_is_an_environment_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentError_, match="free some disk space"):
        write_then_raise(tmp_path / "a.argosy", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert names_in(tmp_path) == []


def test_missing_folder_is_an_environment_error(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentError_, match="No such file.*\n  make its folder first"),
        atomic_file(tmp_path / "no" / "a"),
    ):
        pass


def test_devices_and_folders_are_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentError_, match="not a regular file"), atomic_file(tmp_path):
        pass
    with pytest.raises(EnvironmentError_, match="not a regular file"), atomic_file("/dev/null"):
        pass


def test_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with atomic_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
