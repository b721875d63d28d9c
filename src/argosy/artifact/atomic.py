"""Writes a file so that its name holds the old bytes or all of the new ones, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from argosy.errors import EnvironmentError_, UsageError

__all__ = ["atomic_file", "check_unused", "make_folder"]

_BUFFER: Final = 1 << 16
"""Larger pieces go to the file as they are, without another copy."""
_SPACE: Final = "free some disk space, or write elsewhere"
_HINTS: Final = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.ENOENT: "make its folder first",
    errno.EACCES: "write to a folder that you may change",
    errno.EROFS: "write to a folder that you may change",
}


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file, readable and seekable, that takes the place of `path` when the block ends well.

    It is written in the folder of `path` (through a symbolic link: of what the link names), synced to disk and
    renamed. When the block raises, nothing is left behind. An OSError becomes EnvironmentError_.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise EnvironmentError_("this is not a regular file, so it can't be replaced", where=str(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        # O_EXCL: never write through somebody else's file; mode 0o666 leaves the rest to the umask.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o666)
        try:
            with os.fdopen(descriptor, "w+b", buffering=_BUFFER) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "")
        raise EnvironmentError_(
            f"can't write the file: {error.strerror or error}", where=str(path), hint=hint
        ) from error


def make_folder(path: Path) -> None:
    """Make a folder with those above it, unless it is there. Raises EnvironmentError_ where that can't be done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentError_(f"can't make the folder: {error.strerror}", where=str(path)) from error


def check_unused(path: Path, hint: str) -> None:
    """Raise UsageError with that hint where a folder of files can't go to `path`, because something is there."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError("this is there already", where=str(path), hint=hint)


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself durable, where the system can open a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
