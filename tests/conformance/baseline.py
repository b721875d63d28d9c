"""The committed lists of cases that pass, a file per target: what passed once must go on passing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["path", "read", "write"]

_FOLDER = Path(__file__).parent / "baseline"


def path(target: str) -> Path:
    """The file of a target."""
    return _FOLDER / f"{target}.txt"


def read(target: str) -> tuple[str, ...]:
    """The ids of the cases that passed when the list was recorded; none for a target without a list."""
    file = path(target)
    return tuple(file.read_text(encoding="utf-8").split()) if file.is_file() else ()


def write(target: str, passed: Iterable[str]) -> None:
    """Record the cases that pass now."""
    _FOLDER.mkdir(exist_ok=True)
    path(target).write_text("".join(f"{case}\n" for case in sorted(passed)), encoding="utf-8")
