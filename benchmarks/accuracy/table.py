"""The tables of docs/accuracy.md, one for each file of results."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from benchmarks.accuracy.measured import Figure, Results

__all__ = ["PAGE", "tables", "updated", "write_tables"]

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"
_BEGIN: Final = "<!-- errors: begin (python -m benchmarks.accuracy table) -->"
_END: Final = "<!-- errors: end -->"
_ELEMENTS: Final = ("float32", "float16", "bfloat16", "float64")
_WORDS: Final = {"cpu": "on a CPU", "emulated": "emulated", "cuda": "on a GPU", "hip": "on a GPU"}


def write_tables(results: Path, page: Path = PAGE) -> int:
    """Write the tables into the page."""
    page.write_text(updated(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    return 0


def updated(text: str, results: Path) -> str:
    """The page with its tables made anew."""
    head, _, rest = text.partition(_BEGIN)
    tail = rest.partition(_END)[2]
    return f"{head}{_BEGIN}\n{tables(results)}\n{_END}{tail}"


def tables(results: Path) -> str:
    """A table for each `accuracy-ARCH.json`, under the arch and how it ran."""
    parts = []
    for path in sorted(
        results.glob("accuracy-*.json"), key=lambda path: (not path.stem.startswith("accuracy-x"), path)
    ):
        found = msgspec.json.decode(path.read_bytes(), type=Results)
        where = f"on an {found.gpu}" if found.gpu else _WORDS[found.device]
        parts.append(f"### {found.arch}, {where}\n\n{_table(found)}\n\n{_note(found)}")
    return "\n\n".join(parts)


def _table(found: Results) -> str:
    figures = {(figure.family, figure.element): figure for figure in found.figures}
    families = dict.fromkeys(figure.family for figure in found.figures)
    lines = [f"| family | {' | '.join(_ELEMENTS)} |", "|---|" + "---|" * len(_ELEMENTS)]
    for family in families:
        cells = [_cell(figures.get((family, element))) for element in _ELEMENTS]
        lines.append(f"| {family} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(figure: Figure | None) -> str:
    """`ulp · share`, both rounded up to two digits; a dash where there is no code."""
    if figure is None or figure.reason:
        return "–"
    return f"{_rounded_up(figure.ulp)} · {_rounded_up(figure.share)}"


def _rounded_up(value: float) -> str:
    text = f"{value:.1e}"
    if float(text) < value:
        digits, _, exponent = text.partition("e")
        text = f"{float(digits) + 0.1:.1f}e{exponent}"
    number = float(text)
    return f"{number:g}" if number == 0 or 0.01 <= number < 1e4 else f"{number:.1e}".replace("e-0", "e-")


def _note(found: Results) -> str:
    told = ", ".join(f"{name} {number}" for name, number in found.versions.items())
    missing = [f for f in found.figures if f.reason]
    lines = [f"With {told}."]
    lines += [f"No code: {figure.family} in {figure.element} ({figure.reason})." for figure in missing]
    return "\n".join(lines)
