"""`argosy arches`: what can be compiled for, and how far each arch has been tried."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from argosy.cli.console import Console, table
from argosy.cli.describe import needs_text, numbers_text, variant_needs
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
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="also say what this model needs on each of the archs, or why it does not compile",
    )
    add_model_options(parser)


@verb(
    "arches",
    group="Machines",
    summary="list the archs, what a name means, and how far each has been tried",
    configure=configure,
    examples=(
        ("argosy arches", "every arch of this version"),
        ("argosy arches native", "what `--arch native` means on this machine"),
        ("argosy arches rdna3", "the archs of a family, and the numbers that each is compiled for"),
    ),
)
def list_arches(arguments: argparse.Namespace, console: Console) -> int:
    """A line for each arch, or for each that the expression means."""
    from argosy.compiler import resolve_targets
    from argosy.targets.base import NOT_BUILT, known_archs

    infos = {info.name: info for info in known_archs()}
    meant = resolve_targets([arguments.expression]) if arguments.expression else ()
    names = [target.arch for target in meant] or list(infos)
    program = program_of(arguments.model, arguments, console) if arguments.model else None
    rows = []
    for name in names:
        answer = asdict(infos[name])
        if program is not None:
            with progress(console, f"compiling for {name}"):
                answer["model"] = _compiles(program, infos[name])
        rows.append(answer)
    for row, target in zip(rows, meant, strict=False):
        row["numbers"] = [asdict(number) for number in target.numbers()]
    if arguments.json:
        console.json(rows)
        return 0
    columns = ["name", "family", "words", "tier", *(["model"] if program else [])]
    header = ["arch", "family", "what it is", "support", *(["this model"] if program else []), "other names"]
    built = [row for row in rows if row["tier"] != NOT_BUILT]
    for line in table([[*map(row.get, columns), ", ".join(row["names"])] for row in built], header=header):
        console.write(line)
    for line in _refused([infos[name] for name in names if infos[name].tier == NOT_BUILT]):
        console.write(line)
    for target in meant:
        if target.numbers():
            console.write(f"compiled for {target.arch} with {numbers_text(target)}")
    return 0


def _refused(infos: Sequence[ArchInfo]) -> Iterator[str]:
    """A line for each reason: the archs that are known and that nothing is compiled for."""
    reasons: dict[str, list[str]] = {}
    for info in infos:
        reasons.setdefault(info.words, []).append(info.name)
    for reason, names in reasons.items():
        yield f"not compiled for: {', '.join(names)}: {reason}"


def _compiles(program: Program, info: ArchInfo) -> str:
    """What the code for a program needs there, or why there is none."""
    from argosy.compiler import compile_program
    from argosy.options import CompileOptions
    from argosy.targets.base import find_arch

    try:
        artifact = compile_program(program, (find_arch(info.name),), CompileOptions())
    except ArgosyError as error:
        return f"does not compile: {error.what}"
    needs = [needs_text(variant_needs(artifact, variant)) for variant in artifact.variants]
    return "; ".join(["compiles", *(f"needs {each}" for each in needs)])
