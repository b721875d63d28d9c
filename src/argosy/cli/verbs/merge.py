"""`argosy merge`: several artifacts of one program to one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.console import Console, table
from argosy.cli.describe import artifact_json, bytes_text, requirements_text, variant_bytes
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb
from argosy.errors import UsageError

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.artifact.merge import Merged

__all__ = ["merge_artifacts"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="artifacts of the same program, earlier merges too")
    parser.add_argument(
        "--fallback",
        action="append",
        default=[],
        metavar="FILE",
        help="an artifact with one portable variant, for machines that no other fits; may be repeated",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the merged artifact to FILE (needed)")


@verb(
    "merge",
    group="Artifacts",
    summary="merge artifacts of one program into one",
    configure=configure,
    examples=(
        ("argosy merge gpu.argosy cpu.argosy -o fleet.argosy", "all native variants, the weights once"),
        ("argosy merge a.argosy b.argosy --fallback ptx.argosy -o fleet.argosy", "and portable code beside them"),
        ("argosy merge fleet.argosy new.argosy -o fleet.argosy", "one more; the fleet keeps its fallbacks"),
    ),
)
def merge_artifacts(arguments: argparse.Namespace, console: Console) -> int:
    """Merge, and list what came out."""
    from argosy.artifact.artifact import PRODUCER, Artifact
    from argosy.artifact.merge import merge

    if len(arguments.files) + len(arguments.fallback) < 2:
        raise UsageError("a merge needs at least two artifacts")
    if not arguments.output:
        raise UsageError("-o FILE is missing", hint="argosy merge A B -o C")
    inputs, fallbacks = (
        [open_artifact(file).as_file() for file in files] for files in (arguments.files, arguments.fallback)
    )
    with progress(console, f"merging {len(inputs) + len(fallbacks)} artifacts"):
        merged = merge(inputs, arguments.output, fallbacks=fallbacks, producer=PRODUCER)
    artifact = Artifact.open(arguments.output)
    if arguments.json:
        told = artifact_json(artifact)
        for variant in told["variants"]:
            variant["sources"] = list(merged.sources[variant["key"]])
        told["left_out"] = [
            {"variant": left.variant.words, "key": left.variant.key, "source": left.source, "reason": left.reason}
            for left in merged.left_out
        ]
        console.json(told)
        return 0
    size = bytes_text(Path(arguments.output).stat().st_size)
    console.write(f"{console.paint(arguments.output, 'bold')}  {size}")
    for line in table(_rows(artifact, merged), header=("variant", "kind", "requires", "bytes", "from")):
        console.write(f"  {line}")
    for left in merged.left_out:
        console.write(f"  left out: {left.variant.words} of {left.source}: {left.reason}")
    return 0


def _rows(artifact: Artifact, merged: Merged) -> list[tuple[str, str, str, str, str]]:
    """A row for each variant, and for `ref`, which every merge holds."""
    rows = [
        (
            variant.words,
            "fallback" if variant.fallback else "native",
            requirements_text(variant),
            bytes_text(variant_bytes(artifact, variant)),
            ", ".join(merged.sources[variant.key]),
        )
        for variant in artifact.variants
    ]
    return [*rows, ("ref", "fallback", "this package", "the program itself", "")]
