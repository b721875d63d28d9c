"""Consoles of the documentation: commands, and what they answer but for numbers and hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["answers", "consoles", "steps"]

_FENCE: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER: Final = re.compile(r"\b[0-9a-f]{12}\b|\d+(\.\d+)?( [kMG]?B)?")


def consoles(page: Path) -> list[str]:
    """The consoles of a page, in order."""
    return _FENCE.findall(page.read_text(encoding="utf-8"))


def steps(console: str) -> Iterator[tuple[str, str]]:
    """Each command of a console, and what it shows of the answer."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def answers(shown: str, answer: str) -> bool:
    """Whether an answer is what is shown, with anything where that has an ellipsis."""
    pattern = r"\s*.*\s*".join(re.escape(_plain(part)) for part in shown.split("…"))
    return re.fullmatch(pattern, _plain(answer)) is not None


def _plain(text: str) -> str:
    """Without what differs from run to run, or with the width of columns."""
    return re.sub(r"\s+", " ", _NUMBER.sub("#", text)).strip()
