"""`argosy drop`: an artifact without some of its variants."""

from __future__ import annotations

import argparse

from argosy.cli.console import Console, table
from argosy.cli.describe import artifact_json, variant_rows
from argosy.cli.parser import Parser
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb
from argosy.errors import UsageError

__all__ = ["drop_variants"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="an artifact")
    parser.add_argument(
        "variants", metavar="V", nargs="*", help="a variant: its arch, its words, or the beginning of its key"
    )
    parser.add_argument("--variant", action="append", default=[], metavar="V", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the artifact without them to FILE (needed)")


@verb(
    "drop",
    group="Artifacts",
    summary="write an artifact without some of its variants",
    configure=configure,
    examples=(("argosy drop fleet.argosy 3f2a9c -o smaller.argosy", "without the variant whose key begins so"),),
)
def drop_variants(arguments: argparse.Namespace, console: Console) -> int:
    """Drop, and list what is left."""
    from argosy.artifact.artifact import Artifact
    from argosy.artifact.subset import drop

    names = [*arguments.variants, *arguments.variant]
    if not names or not arguments.output:
        missing = "-o FILE" if names else "the variant to drop"
        raise UsageError(f"{missing} is missing", hint="argosy drop FILE V -o OUT; argosy list FILE names the variants")
    dropped = drop(open_artifact(arguments.file).as_file(), names, arguments.output)
    artifact = Artifact.open(arguments.output)
    if arguments.json:
        console.json({**artifact_json(artifact), "dropped": [variant.key for variant in dropped]})
        return 0
    console.write(f"dropped {'; '.join(variant.words for variant in dropped)}")
    console.write(console.paint(arguments.output, "bold"))
    for line in table(variant_rows(artifact)):
        console.write(f"  {line}")
    return 0
