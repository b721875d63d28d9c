"""Where a verb writes: answers to stdout, everything about the work to stderr, colours only where they are wanted."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from argosy.options import wants_colour

__all__ = ["Console", "Painter", "table"]

_CODES: Final = {"bold": "1", "faint": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Painter:
    """Puts colours on text, or leaves it as it is."""

    on: bool

    @staticmethod
    def of(stream: TextIO) -> Painter:
        """The painter for a stream: on for terminals, unless the environment says otherwise."""
        return Painter(wants_colour(terminal=stream.isatty()))

    def __call__(self, text: str, *styles: str) -> str:
        """`text` in the named styles."""
        if not self.on or not text:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


@dataclass(frozen=True, slots=True)
class Console:
    """The two streams of a process. They are looked up at each use, so that tests and pipes can replace them."""

    quiet: bool = False

    @property
    def paint(self) -> Painter:
        """The painter for stdout."""
        return Painter.of(sys.stdout)

    def write(self, text: str = "") -> None:
        """A line (or several) of the answer."""
        print(text)

    def json(self, value: Any) -> None:
        """The answer as one JSON document."""
        print(json.dumps(value, indent=2, ensure_ascii=False))

    def note(self, text: str) -> None:
        """A line about the work, for people: stderr, and not when quiet."""
        if not self.quiet:
            print(text, file=sys.stderr)

    def error(self, text: str, hint: str = "") -> None:
        """A fault: stderr, whatever is quiet."""
        paint = Painter.of(sys.stderr)
        first, *more = text.splitlines() or [""]
        print(f"{paint('argosy: error:', 'red', 'bold')} {first}", file=sys.stderr)
        for line in (*more, *hint.splitlines()):
            print(f"  {line.strip()}" if not line.startswith("  ") else line, file=sys.stderr)


def table(rows: Sequence[Sequence[object]], *, header: Sequence[str] = (), right: Sequence[int] = ()) -> list[str]:
    """Rows as aligned lines, two blanks between columns; `right` are the columns that end flush."""
    texts = [[str(cell) for cell in row] for row in ([header, *rows] if header else rows)]
    if not texts:
        return []
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in texts
    ]
