"""Writes a verb's results to files, all of them or none."""

from __future__ import annotations

from pathlib import Path

from argosy.cli.console import Console
from argosy.errors import EnvironmentError_, UsageError

__all__ = ["check_folders", "check_npz", "emit", "write_text"]


def emit(text: str, output: str | None, console: Console) -> None:
    """Text to a file where one is named, else to stdout."""
    if output is None:
        console.write(text.rstrip("\n"))
    else:
        write_text(output, text if text.endswith("\n") else f"{text}\n")
        console.note(f"wrote {output}")


def write_text(path: str, text: str) -> None:
    """Write a text file, atomically. Raises EnvironmentError_ where the disk refuses."""
    from argosy.artifact.atomic import atomic_file

    with atomic_file(path) as file:
        file.write(text.encode())


def check_folders(*paths: str | None) -> None:
    """Raise EnvironmentError_, before anything is computed, where the folder of one of these files is not there."""
    for path in paths:
        if path is not None and not Path(path).parent.is_dir():
            raise EnvironmentError_("can't write the file: its folder is not there", where=path, hint="make it first")


def check_npz(path: str | None) -> None:
    """Raise UsageError, before anything is computed, where outputs can't go to `path`."""
    if path is not None and Path(path).suffix != ".npz":
        raise UsageError(f"outputs go to an .npz file, not to {path!r}")
