"""`argosy merge`: several artifacts of one program to one."""

from __future__ import annotations

import argparse
from pathlib import Path

from argosy.cli.console import Console, table
from argosy.cli.describe import artifact_json, bytes_text, variant_rows
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb
from argosy.errors import UsageError

__all__ = ["merge_artifacts"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="two or more artifacts of the same program")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the merged artifact to FILE (needed)")


@verb(
    "merge",
    group="Artifacts",
    summary="merge artifacts of one program into one",
    configure=configure,
    examples=(("argosy merge gpu.argosy cpu.argosy -o fleet.argosy", "all variants, the weights once"),),
)
def merge_artifacts(arguments: argparse.Namespace, console: Console) -> int:
    """Merge, and list what came out."""
    if len(arguments.files) < 2:
        raise UsageError("a merge needs at least two artifacts")
    if not arguments.output:
        raise UsageError("-o FILE is missing", hint="argosy merge A B -o C")
    first, *others = [open_artifact(file) for file in arguments.files]
    with progress(console, f"merging {len(arguments.files)} artifacts"):
        merged = first.merge(*others, path=arguments.output)
    if arguments.json:
        console.json(artifact_json(merged))
        return 0
    size = bytes_text(Path(arguments.output).stat().st_size)
    console.write(f"{console.paint(arguments.output, 'bold')}  {size}")
    for line in table(variant_rows(merged)):
        console.write(f"  {line}")
    return 0
