"""How a check of a case ended, and whether two of them failed in the same way."""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import argosy
from argosy.errors import ArgosyError, DeviceError, ModelError, UnsupportedError
from argosy.verification import Report

__all__ = ["Kind", "Outcome"]

Kind: TypeAlias = Literal["agrees", "wrong numbers", "error", "crash", "hang", "check"]

_WORD: Final = re.compile(r"[^\s'\"(),:;\[\]→]+")
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+")
_HOME: Final = Path(argosy.__file__).parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """`told` is for people; `marks` tell one failure of a kind from another: a place in the code, or a text.

    One that `spoils` leaves a process that is of no use, if any.
    """

    kind: Kind
    told: str = ""
    marks: frozenset[str] = frozenset()
    spoils: bool = False

    @property
    def failed(self) -> bool:
        """Whether there is something to reduce."""
        return self.kind != "agrees"

    def is_like(self, other: Outcome) -> bool:
        """Whether both failed in the same way."""
        same = self.marks == other.marks or not self.marks.isdisjoint(other.marks)
        return self.failed and self.kind == other.kind and same

    @staticmethod
    def of_report(report: Report) -> Outcome:
        """The outcome of a verification."""
        wrong = [str(mismatch) for case in report.cases for mismatch in case.mismatches]
        return Outcome("wrong numbers", wrong[0]) if wrong else Outcome("agrees")

    @staticmethod
    def of_error(error: Exception, names: Collection[str]) -> Outcome:
        """The outcome that is an error; `names`, of nodes and values, don't tell one from another."""
        told = str(error) if isinstance(error, ArgosyError) else f"{type(error).__name__}: {error}"
        return Outcome("error", told, frozenset(_marks(error, names)), spoils=isinstance(error, DeviceError))


def _marks(error: Exception, names: Collection[str]) -> Iterator[str]:
    """For what a model or a device says, the text; for what we do wrong, the place, whose texts may be many."""
    if isinstance(error, UnsupportedError) and error.items:
        yield from (_nameless(item, names) for item in error.items)
    elif isinstance(error, (ModelError, DeviceError)):
        yield f"{type(error).__name__}: {_nameless(error.what, names)}"
    else:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        where = _nameless(error.where, names) if isinstance(error, ArgosyError) else ""
        yield f"{type(error).__name__}, {type(cause).__name__} in {_place(cause)}: {where}"


def _nameless(text: str, names: Collection[str]) -> str:
    """The text without names of nodes and values, and without numbers, which smaller shapes change."""

    def word(match: re.Match[str]) -> str:
        parts = match[0].split("/")
        inner = any("/".join(parts[:end]) in names for end in range(1, len(parts) + 1))
        return "·" if inner else match[0]

    return _NUMBER.sub("#", _WORD.sub(word, text))


def _place(error: BaseException) -> str:
    """The innermost function of Argosy that an error came through."""
    place = "?"
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_HOME):
            place = f"{file.relative_to(_HOME).as_posix()}, {frame.f_code.co_name}"
    return place
