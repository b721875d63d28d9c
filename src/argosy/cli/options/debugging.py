"""Options that look into a failure: make the model that fails small."""

from __future__ import annotations

import argparse

from argosy.cli.parser import Parser

__all__ = ["add_debugging_options"]


def add_debugging_options(parser: Parser) -> None:
    """`--reduce`, and what it takes."""
    group = parser.add_argument_group("debugging options")
    group.add_argument(
        "--reduce",
        action="store_true",
        help="where the model fails (wrong numbers, an error, a crash, no end), find a small model that fails so too",
    )
    group.add_argument(
        "--check",
        metavar="CMD",
        help="with --reduce: a model is of interest where CMD exits with 0; {model} and {inputs} in it are the files",
    )
    group.add_argument("--checks", type=_count, default=200, metavar="N", help="models to try at most (default: 200)")
    group.add_argument(
        "--check-seconds",
        type=_seconds,
        default=300.0,
        metavar="S",
        help="a check that takes longer hangs (default: 300)",
    )
    group.add_argument(
        "-o", "--output", metavar="FOLDER", help="where the small model goes (default: MODEL-reduced, here)"
    )


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of checks")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds")
    return seconds
