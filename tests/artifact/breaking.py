"""Breaks the writing of a file at a chosen operation, and as a program: kills a merge at each of them.

`python -m tests.artifact.breaking OLD TARGET INPUT…` merges the inputs to TARGET again and again, each time in a
process of its own that ends by SIGKILL one operation later, until one lives. Before each, TARGET is what OLD is, or
missing where OLD is `-`; after each, it must be that or the whole merge. It prints which: `old` or `new`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from unittest import mock

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.merge import merge

COUNTED = ("write", "writelines", "seek", "flush")


class _Counted:
    """A file that tells of each operation before it does it."""

    def __init__(self, file: Any, tell: Callable[[], None]) -> None:
        self._file = file
        self._tell = tell

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        if name in COUNTED:
            self._tell()
        return getattr(self._file, name)


@contextmanager
def broken_writes(at: int, act: Callable[[], None]) -> Iterator[None]:
    """Within the block, `act` is called before the operation number `at` on files that are written atomically.

    They are written without a buffer, so that what was written before is in the file.
    """
    count = 0
    fdopen, fsync, replace = os.fdopen, os.fsync, Path.replace

    def tell() -> None:
        nonlocal count
        if count == at:
            act()
        count += 1

    def opened(descriptor: int, mode: str, **_: Any) -> _Counted:
        return _Counted(fdopen(descriptor, mode, buffering=0), tell)

    def synced(descriptor: int) -> None:
        tell()
        fsync(descriptor)

    def replaced(path: Path, target: Path) -> Path:
        tell()
        return replace(path, target)

    with (
        mock.patch.object(os, "fdopen", opened),
        mock.patch.object(os, "fsync", synced),
        mock.patch.object(Path, "replace", replaced),
    ):
        yield


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _child(inputs: list[ArtifactFile], target: Path, at: int) -> int:
    """The wait status of a process that merges, and dies before the operation number `at`."""
    child = os.fork()
    if child == 0:
        with broken_writes(at, _die):
            merge(inputs, target)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main(old: str, target: Path, files: list[str]) -> None:
    """Kill merges until one lives."""
    inputs = [ArtifactFile.open(file) for file in files]
    merge(inputs, target)
    new = target.read_bytes()
    before = None if old == "-" else Path(old).read_bytes()
    for at in range(100_000):
        target.unlink(missing_ok=True)
        if before is not None:
            shutil.copyfile(old, target)
        status = _child(inputs, target, at)
        left = target.read_bytes() if target.exists() else None
        if left not in (before, new):
            sys.exit(f"killed at operation {at}, the file is neither the old one nor the new one")
        sys.stdout.write("new\n" if left == new else "old\n")
        if status == 0:
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
