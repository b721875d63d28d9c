"""Options that look into a failure: run the instructions one by one elsewhere, make the model that fails small."""

from __future__ import annotations

import argparse
from typing import Final

from argosy.cli.parser import Parser
from argosy.errors import UsageError

__all__ = ["CHECKS", "CHECK_SECONDS", "add_debugging_options", "refuse_without_reduce"]

CHECKS: Final = 200
CHECK_SECONDS: Final = 300.0


def add_debugging_options(parser: Parser) -> None:
    """`--save-parts` and `--parts`; `--reduce`, and what it takes."""
    group = parser.add_argument_group("debugging options")
    group.add_argument(
        "--save-parts",
        metavar="FOLDER",
        help="compile what --per-instruction runs, for every variant and with the inputs of case 0; runs nothing",
    )
    group.add_argument(
        "--parts", metavar="FOLDER", help="--per-instruction with the code and inputs in FOLDER, without a compiler"
    )
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
    group.add_argument("--checks", type=_count, metavar="N", help=f"models to try at most (default: {CHECKS})")
    group.add_argument(
        "--check-seconds",
        type=_seconds,
        metavar="S",
        help=f"a check that takes longer hangs (default: {CHECK_SECONDS:g})",
    )
    group.add_argument(
        "-o", "--output", metavar="FOLDER", help="where the small model goes (default: MODEL-reduced, here)"
    )


def refuse_without_reduce(arguments: argparse.Namespace) -> None:
    """Raise UsageError for an option of `--reduce` where that is not asked for."""
    for name in ("check", "checks", "check_seconds", "output"):
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is given, and not --reduce", hint=f"add --reduce, or leave {option} out")


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
