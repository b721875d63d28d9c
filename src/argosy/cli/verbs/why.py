"""`argosy why`: what became of a node of a model, on each arch."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from argosy.cli.console import Console, Painter, table
from argosy.cli.files import check_folders, emit
from argosy.cli.options.common import add_output_option
from argosy.cli.options.compile import add_compile_options, compile_options, targets
from argosy.cli.options.model import add_model_options, dimensions
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import kind_of, open_artifact, program_of, refuse_compile_options
from argosy.cli.verb import verb

if TYPE_CHECKING:
    from argosy.explaining import ArchReport, Change, Explanation, NodeReport, Way
    from argosy.explaining.codes import Code
    from argosy.ir.program import Program

__all__ = ["tell_why"]

_ROOM: Final = 98
"""Characters of a line of the table; --node and --json tell the rest."""


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "file", metavar="MODEL", help="a model, a program, or an artifact: each variant, or those of --arch and --dim"
    )
    parser.add_argument(
        "--node",
        action="append",
        default=[],
        metavar="N",
        help="a node by name, output, number, or an op that it alone has; may be repeated (default: a line for each)",
    )
    parser.add_argument(
        "--toolchains", action="store_true", help="compile the kernels too, so that what a toolchain refuses is known"
    )
    add_output_option(parser, "the answer")
    add_model_options(parser)
    add_compile_options(parser)


@verb(
    "why",
    group="Models",
    summary="tell what became of a node: passes, rules, fusions, kernels",
    configure=configure,
    examples=(
        ("argosy why model.onnx", "what each node became on this machine, a line each"),
        ("argosy why model.onnx --node /layer1/conv1/Conv", "one node, pass by pass, and how it is run"),
        ("argosy why model.onnx --node Softmax --arch mi300x,cpu --fp16", "on several archs, with options"),
        (
            "argosy why model.onnx --node Softmax --dim batch=1,8",
            "in the code for any size, and in that for 1 and for 8",
        ),
        ("argosy why model.argosy --node Softmax --arch mi300x --dim batch=8", "in the code that runs of 8 take"),
    ),
)
def tell_why(arguments: argparse.Namespace, console: Console) -> int:
    """Ask, and show."""
    import json

    from argosy.explaining import explain

    check_folders(arguments.output)
    kind = kind_of(arguments.file)
    program, codes = _in_artifact(arguments) if kind == "artifact" else _to_compile(arguments, console)
    model = arguments.file if kind == "model" else program
    with progress(console, f"looking at {arguments.file}"):
        found = explain(model, program, arguments.node, codes, toolchains=arguments.toolchains)
    if arguments.json:
        emit(json.dumps(found.to_json(), indent=2, ensure_ascii=False), arguments.output, console)
        return 0
    paint = console.paint if arguments.output is None else Painter(on=False)
    lines = (line for node in found.nodes for line in _node(node, paint)) if arguments.node else _all(found, paint)
    emit("\n".join(lines), arguments.output, console)
    return 0


def _to_compile(arguments: argparse.Namespace, console: Console) -> tuple[Program, Sequence[Code]]:
    """The program of a model, and the code that compiling it makes."""
    from argosy.explaining.codes import codes_of_model

    chosen = targets(arguments)
    options = compile_options(arguments, chosen)
    program = program_of(arguments.file, arguments, console)
    return program, codes_of_model(program, chosen, options)


def _in_artifact(arguments: argparse.Namespace) -> tuple[Program, Sequence[Code]]:
    """The program of an artifact, and the code in it that `--arch` and `--dim` name."""
    from argosy.explaining.codes import codes_of_artifact

    refuse_compile_options(arguments.file, arguments, but=("--arch",))
    artifact = open_artifact(arguments.file)
    return artifact.program(), codes_of_artifact(artifact, arguments.arch, dimensions(arguments))


def _all(found: Explanation, paint: Painter) -> Iterator[str]:
    """A line for each node that has instructions, under each arch; how many others there are."""
    from argosy.explaining.words import short_name

    for place, arch in enumerate(found.nodes[0].archs if found.nodes else ()):
        yield paint(f"on {arch.words}" + (f" ({arch.note})" if arch.note else ""), "bold")
        rows = [(short_name(node.name), node.op, node.archs[place].summary) for node in found.nodes if node.imported]
        for line in table(rows, header=("node", "op", "became")):
            yield f"  {line if len(line) <= _ROOM else f'{line[: _ROOM - 1]}…'}"
    without = Counter(node.op or "unknown" for node in found.nodes if not node.imported)
    if without:
        told = ", ".join(f"{count} {op}" for op, count in without.most_common())
        yield f"without an instruction, as what they give is there already or nothing needs it: {told}"


def _node(node: NodeReport, paint: Painter) -> Iterator[str]:
    op = f" ({node.op})" if node.op else ""
    yield paint(f"{node.name}{op} → {', '.join(node.outputs) or 'nothing'}", "bold")
    if node.imported:
        yield "  imported as"
        yield from (f"    {line}" for line in node.imported)
    for arch in node.archs:
        yield from (f"  {line}" if line else "" for line in _arch(arch, paint))


def _arch(arch: ArchReport, paint: Painter) -> Iterator[str]:
    yield f"{paint(f'on {arch.words}', 'bold')}: {arch.summary}"
    for change in arch.changes:
        yield from (f"  {line}" for line in _change(change, paint))
    for way in arch.ways:
        yield from (f"  {line}" for line in _way(way))
    if arch.note:
        yield f"  {paint(arch.note, 'faint')}"


def _change(change: Change, paint: Painter) -> Iterator[str]:
    yield f"pass {change.number}, {change.name} ({change.phase})"
    moved = [line for line in change.before if any(now.startswith(f"{line}, in ") for now in change.after)]
    yield from (f"  {paint(f'- {line}', 'red')}" for line in change.before if line not in moved)
    yield from (f"  {paint(f'+ {line}', 'green')}" for line in change.after)
    if change.fate:
        yield f"  {change.fate}"
    yield from (f"  rule {rule}" for rule in change.fired)
    yield from (f"  declined {line}" for line in change.declined)


def _way(way: Way) -> Iterator[str]:
    yield f"done as {way.op}, of {', '.join(way.nodes)}"
    config = f" ({way.config})" if way.config else ""
    how = "numpy on the host" if way.host else f"{way.solution}{config}"
    rows = [("by", f"{how}{', once at load' if way.at_load else ''}")]
    for title, lines in (
        ("because" if way.host else "not by", way.declined),
        ("kernel", [name for name in way.kernels if not any(name in step for step in way.steps)]),
        ("step", way.steps),
        ("writes", way.buffers),
    ):
        rows += [(title, line) for line in lines]
    yield from (f"  {line}" for line in table(rows))
