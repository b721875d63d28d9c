"""`argosy list`: a line for each variant of an artifact, and whether it runs here."""

from __future__ import annotations

import argparse

from argosy.cli.console import Console, table
from argosy.cli.describe import artifact_json, needs_text, variant_needs, variant_rows
from argosy.cli.options.common import add_why_option
from argosy.cli.parser import Parser
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb

__all__ = ["list_variants"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="an artifact")
    add_why_option(parser, "why each variant does or does not run here")


@verb(
    "list",
    group="Artifacts",
    summary="list the variants of an artifact",
    configure=configure,
    examples=(("argosy list model.argosy --why", "what is in the file, and what of it runs here"),),
)
def list_variants(arguments: argparse.Namespace, console: Console) -> int:
    """A line for each variant; the last column is the answer for this machine."""
    from argosy.runtime.selection import judge

    artifact = open_artifact(arguments.file)
    selection = judge(artifact.variants, slim=artifact.is_slim)
    choices = {choice.variant.key if choice.variant else "": choice for choice in selection.choices}
    records = {variant.key: variant for variant in artifact.variants}
    if arguments.json:
        told = artifact_json(artifact)
        for variant in told["variants"]:
            choice = choices[variant["key"]]
            variant["needs"] = variant_needs(artifact, records[variant["key"]])
            variant["here"] = {"answer": choice.answer, "reason": choice.reason}
        console.json(told)
        return 0
    keys = [variant.key for variant in artifact.variants] + ([] if artifact.is_slim else [""])
    rows = []
    for row, key in zip(variant_rows(artifact), keys, strict=True):
        choice = choices[key]
        needs = needs_text(variant_needs(artifact, records[key])) if key else ""
        rows.append((*row, needs, f"{choice.answer}: {choice.reason}" if arguments.why else choice.answer))
    for line in table(rows, header=("variant", "key", "sizes", "bytes", "needs", "here")):
        console.write(line)
    return 0
