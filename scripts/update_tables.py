"""Writes the generated tables into the documents: today, the list of IR ops in ARCHITECTURE.md.

`python scripts/update_tables.py` writes them, `--check` only says whether they are current.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from itertools import groupby
from pathlib import Path

from argosy.ir.op import OPS

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- ops: begin (python scripts/update_tables.py) -->", "<!-- ops: end -->"


def op_table() -> str:
    """A line per family: each op with its attributes."""
    rows = sorted((cls.__module__.rpartition(".")[2], name, cls) for name, cls in OPS.items())
    lines = ["| file | ops and their attributes |", "|---|---|"]
    for family, members in groupby(rows, key=lambda row: row[0]):
        texts = []
        for _, name, cls in members:
            fields = ", ".join(field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]
            texts.append(f"`{name}`({fields})")
        lines.append(f"| `{family}` | {' · '.join(texts)} |")
    return "\n".join(lines)


def updated(text: str) -> str:
    """The document with its table made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{op_table()}\n{END}{tail}"


def main() -> int:
    """Write or check; 1 where a table is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a table is out of date")
    options = parser.parse_args()
    path = ROOT / "ARCHITECTURE.md"
    before = path.read_text()
    after = updated(before)
    if before == after:
        return 0
    if options.check:
        sys.stderr.write(f"{path.name} is out of date: run python scripts/update_tables.py\n")
        return 1
    path.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
