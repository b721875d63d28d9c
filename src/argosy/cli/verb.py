"""What a verb is, and the table of verbs, which fills itself from the folder `verbs`.

A verb is a function under `@verb(...)` in a file of its own. Verbs are all imported to print the help, so what
one needs of numpy, the compiler or the runtime is imported inside its function.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from argosy.cli.console import Console
from argosy.cli.parser import Parser
from argosy.registry import Registry

__all__ = ["GROUPS", "VERBS", "Verb", "verb"]

GROUPS: Final = ("Models", "Artifacts", "Machines")
"""The headings of `argosy --help`, in order."""

Configure: TypeAlias = Callable[[Parser], None]
Run: TypeAlias = Callable[[argparse.Namespace, Console], int]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: its name, its heading and line in the help, its options, what it does, and examples with their meaning.

    `run` gives the exit code: 0, or 1 where the answer is no.
    """

    name: str
    group: str
    summary: str
    configure: Configure
    run: Run
    examples: tuple[tuple[str, str], ...]


VERBS: Final[Registry[str, Verb]] = Registry("verb", "argosy.cli.verbs")


def verb(
    name: str, *, group: str, summary: str, configure: Configure, examples: tuple[tuple[str, str], ...]
) -> Callable[[Run], Run]:
    """Function decorator: enters a verb. `examples` are command lines with what each does, shown in its help."""

    def enter(run: Run) -> Run:
        VERBS.add(name, Verb(name, group, summary, configure, run, examples))
        return run

    return enter
