"""`argosy ops`: the support table. The one in the docs is made from it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from argosy.cli.console import Console, table
from argosy.cli.files import emit
from argosy.cli.options.common import add_output_option
from argosy.cli.parser import Parser
from argosy.cli.verb import verb
from argosy.errors import UsageError
from argosy.registry import did_you_mean

if TYPE_CHECKING:
    from argosy.frontends.onnx.support import OpSupport

__all__ = ["list_ops"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("names", metavar="OP", nargs="*", help="only these ONNX ops")
    parser.add_argument("--target", metavar="T", help="only what this target runs")
    parser.add_argument("--markdown", action="store_true", help="as the page of the docs")
    add_output_option(parser, "the answer")


@verb(
    "ops",
    group="Models",
    summary="list the ONNX ops that Argosy supports, and the ops of its IR",
    configure=configure,
    examples=(
        ("argosy ops", "every op with the versions that have a handler"),
        ("argosy ops Conv Resize", "two of them"),
    ),
)
def list_ops(arguments: argparse.Namespace, console: Console) -> int:
    """A line for each op."""
    from argosy.frontends.onnx.support import ir_ops, op_support

    if arguments.target:
        _check_target(arguments.target)
    rows = op_support()
    inner = ir_ops()
    if arguments.names:
        rows, inner = tuple(_find(name, rows) for name in arguments.names), ()
    if arguments.json:
        emit(_json(rows, inner), arguments.output, console)
    elif arguments.markdown:
        from argosy.cli.support_page import support_page

        emit(support_page(rows, inner), arguments.output, console)
    else:
        lines = table(
            [(row.domain or "ai.onnx", row.name, row.versions, row.state) for row in rows],
            header=("domain", "op", "since", "support"),
        )
        if inner:
            done = sum(row.handled for row in rows)
            lines += ["", f"{done} of {len(rows)} ONNX ops; {len(inner)} ops of the IR: {', '.join(inner)}"]
        emit("\n".join(lines), arguments.output, console)
    return 0


def _check_target(name: str) -> None:
    """Every target runs every op: what has no code of its own is evaluated. Only the name can be wrong."""
    from argosy.targets.base import TARGETS, make_target

    if name not in TARGETS:
        make_target(name)


def _find(name: str, rows: tuple[OpSupport, ...]) -> OpSupport:
    found = [row for row in rows if name in (row.name, f"{row.domain}::{row.name}")]
    if not found:
        hint = did_you_mean(name, [row.name for row in rows]) or "argosy ops lists all of them"
        raise UsageError(f"ONNX has no op {name!r}", hint=hint)
    return found[0]


def _json(rows: Any, inner: Any) -> str:
    import dataclasses
    import json

    told = {"onnx": [dataclasses.asdict(row) for row in rows], "ir": list(inner)}
    return json.dumps(told, indent=2)
