"""`argosy doctor`: what this machine has, and what of an artifact it would run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from argosy.cli.console import Console, table
from argosy.cli.machine import describe_machine, machine_json
from argosy.cli.parser import Parser
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact

__all__ = ["examine"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="an artifact: says what of it would run here, and why")


@verb(
    "doctor",
    group="Machines",
    summary="show what this machine has, and what would run here",
    configure=configure,
    examples=(
        ("argosy doctor", "Python, packages, extras, drivers, CPU"),
        ("argosy doctor model.argosy", "and which variant of the file runs, with reasons"),
        ("argosy doctor --json", "in a file, what `argosy compile --fleet` reads elsewhere"),
    ),
)
def examine(arguments: argparse.Namespace, console: Console) -> int:
    """A section for each part of the machine."""
    told: dict[str, Any] = {**describe_machine()}
    if arguments.file:
        told["artifact"] = _variants(open_artifact(arguments.file))
    if arguments.json:
        console.json({**told, "machine": machine_json()})
        return 0
    for title, section in told.items():
        console.write(console.paint(title, "bold"))
        console.write("\n".join(f"  {line}" for line in table(list(section.items()))) or "  none")
    return 0


def _variants(artifact: Artifact) -> dict[str, str]:
    """Each variant, best first, with the answer and the reason."""
    from argosy.runtime.selection import judge

    selection = judge(artifact.variants, slim=artifact.is_slim)
    return {choice.words: f"{choice.answer}: {choice.reason}" for choice in selection.choices}
