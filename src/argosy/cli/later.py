"""Options and verbs of the design that this version does not have yet: refused by name, and not shown in help."""

from __future__ import annotations

from typing import Final

from argosy.cli.spelling import Spelling, refused

__all__ = ["LATER", "LATER_VERBS"]

LATER_VERBS: Final = (
    "tune",
    "db",
    "sign",
    "report",
)

LATER: Final[tuple[Spelling, ...]] = (
    refused("--tune", ("compile",), "this version does not tune"),
    refused("--db", ("compile",), "this version has no tuning database"),
)
