"""Rewrites a command line into our own spelling before it is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from argosy.cli.later import LATER
from argosy.cli.migraphx import MIGRAPHX
from argosy.cli.spelling import Spelling
from argosy.errors import UsageError

__all__ = ["respell"]

_INPUT: Final = "--input"


def respell(verb: str, words: Sequence[str]) -> list[str]:
    """`words` as our parsers take them; raises UsageError for an option that is known and refused."""
    rows = {name: row for row in (*MIGRAPHX, *LATER) if verb in row.verbs and row.state != "same" for name in row.names}
    ours: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*ours, word, *rest]
        name, equals, value = word.partition("=")
        if name == _INPUT and not equals and rest and rest[0].startswith("@") and "=" not in rest[0]:
            ours.append(f"{_INPUT}={' '.join(_take_named(rest))}")
            continue
        row = rows.get(name)
        if row is None:
            ours.append(word)
            continue
        if row.rewrite is None:
            raise UsageError(f"{name}: {row.told}", hint=f"argosy {verb} --help lists the options")
        values = [value] if equals else _take(row, name, rest)
        ours.extend(row.rewrite(values))
    return ours


def _take(row: Spelling, name: str, rest: list[str]) -> list[str]:
    """Take the words that belong to an option off `rest`."""
    if row.takes == "nothing":
        return []
    if row.takes == "a name and values":
        if not rest or not rest[0].startswith("@"):
            raise UsageError(f"{name} needs a name that begins with @", hint=row.ours and f"our form is {row.ours}")
        values = []
        while rest and rest[0].startswith("@"):
            values.append(" ".join(_take_named(rest)))
        return values
    if not rest or rest[0].startswith("-"):
        raise UsageError(f"{name} needs a value")
    values = [rest.pop(0)]
    while row.takes == "values" and rest and not rest[0].startswith("-") and not Path(rest[0]).is_file():
        values.append(rest.pop(0))
    return values


def _take_named(rest: list[str]) -> list[str]:
    """`@name` and what follows it: sizes, or one value that is none."""
    values = [rest.pop(0)]
    while rest and rest[0].isdigit():
        values.append(rest.pop(0))
    if len(values) == 1 and rest and not rest[0].startswith(("-", "@")) and Path(rest[0]).suffix != ".onnx":
        values.append(rest.pop(0))
    return values
