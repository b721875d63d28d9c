"""Writes a verb's results to files, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.console import Console
from argosy.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_npz", "emit", "write_npz", "write_text"]


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


def check_npz(path: str | None) -> None:
    """Raise UsageError, before anything is computed, where outputs can't go to `path`."""
    if path is not None and Path(path).suffix != ".npz":
        raise UsageError(f"outputs go to an .npz file, not to {path!r}")


def write_npz(path: str, values: Mapping[str, Any]) -> None:
    """Write arrays by name, atomically; absent values are left out.

    The items of a sequence are called `name[0]`, …, the keys and values of a map `name.keys` and `name.values`.
    Element types that numpy's files lack (bf16, fp8) are stored as raw bytes, as numpy stores them.
    """
    check_npz(path)
    import numpy as np

    from argosy.artifact.atomic import atomic_file

    arrays: dict[str, NDArray[Any]] = {}
    for name, value in values.items():
        arrays.update(_arrays(name, value, np))
    with atomic_file(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def _arrays(name: str, value: Any, numpy: Any) -> dict[str, NDArray[Any]]:
    if value is None:
        return {}
    if isinstance(value, list):
        found: dict[str, NDArray[Any]] = {}
        for index, item in enumerate(value):
            found.update(_arrays(f"{name}[{index}]", item, numpy))
        return found
    if isinstance(value, dict):
        return {
            f"{name}.keys": numpy.array(list(value)),
            f"{name}.values": numpy.array(list(value.values())),
        }
    return {name: _plain(numpy.asarray(value))}


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Strings as numpy's text type: object arrays would be pickled, which nobody should have to load."""
    return array.astype(str) if array.dtype.kind == "O" else array
