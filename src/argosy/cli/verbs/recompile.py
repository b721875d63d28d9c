"""`argosy recompile`: new code for an artifact, from the program inside it."""

from __future__ import annotations

import argparse
from pathlib import Path

from argosy.cli.console import Console, table
from argosy.cli.describe import artifact_json, bytes_text, variant_rows
from argosy.cli.options.common import add_output_option
from argosy.cli.options.compile import add_arch_option, add_mode_option, targets
from argosy.cli.options.gpu import add_gpu_options, asked_gpu_options
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb
from argosy.errors import UsageError

__all__ = ["recompile_artifact"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="an artifact that holds its program")
    add_output_option(parser, "the artifact with the new code")
    group = parser.add_argument_group("compile options")
    add_arch_option(group, "those in the artifact")
    add_gpu_options(group)
    add_mode_option(group)
    group.add_argument("--strict", action="store_true", help="what an arch can't honour is an error, not a warning")
    group.add_argument("--jobs", type=int, metavar="N", help="processes that compile (default: one for each core)")
    group.add_argument("--debug", action="store_true", help="keep line tables in the code")
    group.add_argument("--weights", metavar="FILE", help="where the weights are that the artifact leaves out")


@verb(
    "recompile",
    group="Artifacts",
    summary="compile the program inside an artifact again",
    configure=configure,
    examples=(
        ("argosy recompile old.argosy -o new.argosy", "all variants, by this version and its toolchains"),
        ("argosy recompile fleet.argosy --arch cpu -o fleet.argosy", "code for this CPU, the other variants stay"),
    ),
)
def recompile_artifact(arguments: argparse.Namespace, console: Console) -> int:
    """Compile, save, and list what came out."""
    from argosy.recompiling import recompile

    if not arguments.output:
        raise UsageError("-o FILE is missing", hint="argosy recompile FILE -o OUT")
    if asked_gpu_options(arguments) and not (arguments.arch or arguments.gpu_arch):
        raise UsageError("numbers of a GPU are given, and no arch", hint="name it with --arch or --gpu-arch")
    opened = open_artifact(arguments.file, weights=arguments.weights)
    with progress(console, f"recompiling {arguments.file}"):
        artifact = recompile(
            opened,
            arguments.output,
            targets=targets(arguments) if arguments.arch or arguments.gpu_arch else (),
            mode=arguments.compile_mode,
            strict=arguments.strict,
            debug=arguments.debug,
            jobs=arguments.jobs,
        )
    if arguments.json:
        console.json(artifact_json(artifact))
        return 0
    size = bytes_text(Path(arguments.output).stat().st_size)
    console.write(f"{console.paint(arguments.output, 'bold')}  {size}")
    for line in table(variant_rows(artifact)):
        console.write(f"  {line}")
    return 0
