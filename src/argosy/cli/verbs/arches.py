"""`argosy arches`: what can be compiled for, and how far each arch has been tried."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.console import Console, table
from argosy.cli.options.model import add_model_options
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import program_of
from argosy.cli.verb import verb
from argosy.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.ir.program import Program
    from argosy.targets.base import ArchInfo

__all__ = ["list_arches"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("expression", metavar="EXPR", nargs="?", help="what --arch takes: says which archs it means")
    parser.add_argument("--model", metavar="MODEL", help="also say which of the archs this model compiles for")
    add_model_options(parser)


@verb(
    "arches",
    group="Machines",
    summary="list the archs, what a name means, and how far each has been tried",
    configure=configure,
    examples=(
        ("argosy arches", "every arch of this version"),
        ("argosy arches native", "what `--arch native` means on this machine"),
    ),
)
def list_arches(arguments: argparse.Namespace, console: Console) -> int:
    """A line for each arch, or for each that the expression means."""
    from argosy.compiler import resolve_targets
    from argosy.targets.base import known_archs

    infos = known_archs()
    if arguments.expression:
        meant = {target.arch for target in resolve_targets([arguments.expression])}
        infos = [info for info in infos if info.name in meant]
    program = program_of(arguments.model, arguments, console) if arguments.model else None
    rows = []
    for info in infos:
        answer = {"name": info.name, "family": info.family, "words": info.words, "tier": info.tier}
        if program is not None:
            with progress(console, f"compiling for {info.name}"):
                answer["model"] = _compiles(program, info)
        rows.append(answer)
    if arguments.json:
        console.json(rows)
        return 0
    header = ["arch", "family", "what it is", "support", *(["this model"] if program else [])]
    for line in table([list(row.values()) for row in rows], header=header):
        console.write(line)
    return 0


def _compiles(program: Program, info: ArchInfo) -> str:
    """`compiles`, or why not."""
    from argosy.compiler import compile_program
    from argosy.options import CompileOptions
    from argosy.targets.base import find_arch

    try:
        compile_program(program, (find_arch(info.name),), CompileOptions())
    except ArgosyError as error:
        return f"does not compile: {error.what}"
    return "compiles"
