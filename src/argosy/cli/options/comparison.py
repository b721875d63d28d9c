"""Options that say what outputs are compared with, and how far they may be apart."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.parser import Parser

if TYPE_CHECKING:
    from argosy.verification import Tolerance

__all__ = ["add_comparison_options", "tolerance"]


def add_comparison_options(parser: Parser) -> argparse._ArgumentGroup:
    """The reference, the tolerances, the number of cases. Returns their group, for what a verb adds to it."""
    group = parser.add_argument_group("comparison options")
    group.add_argument(
        "--against",
        default="ref",
        metavar="REFERENCE",
        help="ref (default), ref64 (the same in float64), onnxruntime, or an .npz file with the expected outputs",
    )
    group.add_argument(
        "--atol", type=_number, metavar="X", help="allow |found - expected| <= atol + rtol |expected|, integers atol"
    )
    group.add_argument("--rtol", type=_number, metavar="X", help="the same; without any, the rule of the docs holds")
    group.add_argument("--rms", type=_number, metavar="X", help="allow an RMS error of X of the largest magnitude")
    group.add_argument("--ulp", type=_number, metavar="X", help="allow X units in the last place")
    group.add_argument(
        "--cases", type=int, metavar="N", help="sets of inputs (default: 1, or one for each size of a --dim)"
    )
    return group


def tolerance(arguments: argparse.Namespace) -> Tolerance | None:
    """The tolerances that are asked for; None where none is, so that the project's own rule holds."""
    from argosy.verification import Tolerance

    asked = Tolerance(arguments.atol, arguments.rtol, arguments.rms, arguments.ulp)
    return asked if asked.given else None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no tolerance: a number from 0 on")
    return value
