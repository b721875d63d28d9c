"""`argosy split`: a file for each arch."""

from __future__ import annotations

import argparse

from argosy.cli.console import Console, table
from argosy.cli.describe import bytes_text
from argosy.cli.parser import Parser
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb
from argosy.errors import UsageError

__all__ = ["split_artifact"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="an artifact")
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATTERN",
        help="the path of each file, with {arch} in it; {family} and {name} may be too (needed)",
    )


@verb(
    "split",
    group="Artifacts",
    summary="write an artifact for each arch",
    configure=configure,
    examples=(("argosy split fleet.argosy -o 'dist/{arch}.argosy'", "a file for each arch, each with the program"),),
)
def split_artifact(arguments: argparse.Namespace, console: Console) -> int:
    """Split, and list the files."""
    from argosy.artifact.subset import split

    if not arguments.output:
        raise UsageError("-o PATTERN is missing", hint="argosy split FILE -o 'dist/{arch}.argosy'")
    made = split(open_artifact(arguments.file).as_file(), arguments.output)
    if arguments.json:
        console.json(
            [
                {"file": str(path), "arch": variants[0].arch, "variants": [variant.key for variant in variants]}
                for path, variants in made.items()
            ]
        )
        return 0
    rows = [
        (str(path), bytes_text(path.stat().st_size), "; ".join(variant.words for variant in variants))
        for path, variants in made.items()
    ]
    console.write("\n".join(table(rows, header=("file", "bytes", "variants"))))
    return 0
