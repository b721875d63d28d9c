"""Shows people what a pass changed.

The text form numbers values as they come, so that one instruction less would change every line below it. Here a value
keeps its number from before where its line is the same but for numbers; one that is new has a number after a `+`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

from argosy.ir.module import Module
from argosy.ir.printer import print_module

__all__ = ["diff_text"]

_NUMBER: Final = re.compile(r"%(\d+)\b")
_MODULE: Final = re.compile(r"\bmodule (\w+|\"[^\"]*\")\((.*\{)?$")
_DIGEST: Final = re.compile(r"(sha256:[0-9a-f]{8})[0-9a-f]{56}\b")


def diff_text(before: Module, after: Module, names: tuple[str, str] = ("before", "after")) -> str:
    """The unified diff of two modules' text forms, with numbers of values that match and hashes cut short."""
    old, new = (_DIGEST.sub(r"\1…", print_module(module)).splitlines() for module in (before, after))
    return "\n".join(difflib.unified_diff(old, _renumbered(old, new), *names, lineterm=""))


def _renumbered(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The new lines with the numbers that their values have in the old ones, in the scope of each module."""
    plain, other = ([_NUMBER.sub("%", line) for line in lines] for lines in (old, new))
    matched = difflib.SequenceMatcher(None, plain, other, autojunk=False)
    same = {b + step: a + step for a, b, size in matched.get_matching_blocks() for step in range(size)}
    found: list[str] = []
    scopes: list[dict[str, str]] = [{}]
    is_open = False  # the parameters of a module stand on lines of their own
    fresh = 0
    for index, line in enumerate(new):
        begins = _MODULE.search(line) is not None
        if begins or (line.endswith("{") and not is_open):
            scopes.append({} if begins else scopes[-1])
        is_open = not line.endswith("{") and (begins or is_open)
        told = _NUMBER.findall(old[same[index]]) if index in same else []
        for place, text in enumerate(_NUMBER.findall(line)):
            if text not in scopes[-1]:
                scopes[-1][text] = told[place] if told else f"+{fresh}"
                fresh += not told
        found.append(_NUMBER.sub(lambda match, known=scopes[-1]: f"%{known[match[1]]}", line))  # type: ignore[misc]
        if line.lstrip().startswith("}"):
            scopes.pop()
    return found
