"""The options that every verb has."""

from __future__ import annotations

import argparse

from argosy.cli.log import LEVELS
from argosy.cli.parser import Parser

__all__ = ["add_common_options", "add_output_option", "add_why_option"]


def add_output_option(parser: Parser, what: str, *, default: str = "") -> None:
    """`-o FILE`: where `what` goes; `default` says where without it."""
    told = f" (default: {default})" if default else ""
    parser.add_argument("-o", "--output", metavar="FILE", help=f"write {what} to FILE{told}")


def add_why_option(parser: Parser, what: str) -> None:
    """`--why`: adds reasons."""
    parser.add_argument("--why", action="store_true", help=f"add {what}")


def add_common_options(parser: Parser) -> None:
    """JSON, logging, quiet, help."""
    group = parser.add_argument_group("common options")
    group.add_argument("--json", action="store_true", help="give the answer as one JSON document")
    group.add_argument(
        "--log-level",
        type=_level,
        default="warn",
        metavar="LEVEL",
        help=f"what to tell on stderr: {', '.join(LEVELS)} (default: warn)",
    )
    group.add_argument(
        "--log-file", action="append", default=[], metavar="FILE", help="append a detailed log to FILE; may be repeated"
    )
    group.add_argument("--quiet", action="store_true", help="no progress and no notes on stderr")


def _level(text: str) -> str:
    """A level by name, or by the number that MIGraphX gives it."""
    name = list(LEVELS)[int(text)] if text.isdigit() and int(text) < len(LEVELS) else text.lower()
    if name not in LEVELS:
        raise argparse.ArgumentTypeError(f"{text!r} is no level: {', '.join(LEVELS)}")
    return name
