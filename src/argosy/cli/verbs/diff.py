"""`argosy diff`: in what two artifacts differ. Exit status 1 where they do."""

from __future__ import annotations

import argparse

from argosy.cli.console import Console
from argosy.cli.parser import Parser
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb

__all__ = ["diff_artifacts"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("left", metavar="A", help="an artifact")
    parser.add_argument("right", metavar="B", help="another")


@verb(
    "diff",
    group="Artifacts",
    summary="compare two artifacts: programs, options, weights, variants",
    configure=configure,
    examples=(("argosy diff old.argosy new.argosy", "what differs, by name; exit status 1 where anything does"),),
)
def diff_artifacts(arguments: argparse.Namespace, console: Console) -> int:
    """Compare; 1 where they differ."""
    from dataclasses import asdict

    from argosy.artifact.diff import diff

    found = diff(*(open_artifact(path).as_file() for path in (arguments.left, arguments.right)))
    if arguments.json:
        console.json({"same": not found, **{title: list(lines) for title, lines in asdict(found).items()}})
    else:
        for title, lines in asdict(found).items():
            if lines:
                console.write("\n".join((console.paint(title, "bold"), *(f"  {line}" for line in lines))))
        if not found:
            console.note("they are the same")
    return int(bool(found))
