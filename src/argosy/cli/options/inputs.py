"""Options that say what to feed: files, shapes to generate, fills, ranges, the seed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.parser import Parser
from argosy.errors import UsageError

if TYPE_CHECKING:
    from argosy.inputs import InputRequest

__all__ = ["add_input_options", "input_request"]

_FORMS = "the forms are X=FILE and @0 1 3 224 224"


def add_input_options(parser: Parser) -> None:
    """The input options. What is not given is generated."""
    group = parser.add_argument_group("input options")
    group.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="X=FILE",
        help="an input from a .npy, .npz or .pb file; `--input @0 1 3 224 224` generates input 0 with that shape",
    )
    group.add_argument("--inputs", metavar="DIR|NPZ", help="a folder with a file for each input, or one .npz file")
    group.add_argument("--fill0", action="append", default=[], metavar="X", help="fill an input with zeros")
    group.add_argument("--fill1", action="append", default=[], metavar="X", help="fill an input with ones")
    group.add_argument(
        "--input-range",
        action="append",
        default=[],
        metavar="X=A..B",
        help="range of a generated input (default: what the model needs of it, else floats -1..1, integers 0..1)",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the generated inputs (default: 0)")


def input_request(arguments: argparse.Namespace) -> InputRequest:
    """The options as one value; raises UsageError for a form that is not known."""
    from argosy.inputs import InputRequest

    files: list[tuple[str, str]] = []
    shapes: list[tuple[str, tuple[int, ...]]] = []
    for text in arguments.input:
        if text.startswith("@") and "=" not in text:
            name, *sizes = text.split()
            if not all(size.isdigit() for size in sizes):
                raise UsageError(f"--input is {text!r}", hint=_FORMS)
            shapes.append((name, tuple(map(int, sizes))))
            continue
        name, equals, file = text.partition("=")
        if not (equals and name and file):
            several = f"; --inputs {text} takes a folder or an .npz file with several" if Path(text).exists() else ""
            raise UsageError(f"--input is {text!r}", hint=f"{_FORMS}{several}")
        files.append((name, file))
    fills = [(name, 0) for name in arguments.fill0] + [(name, 1) for name in arguments.fill1]
    ranges = tuple(_range(text) for text in arguments.input_range)
    return InputRequest(
        files=tuple(files),
        shapes=tuple(shapes),
        source=arguments.inputs,
        fills=tuple(fills),
        ranges=ranges,
        seed=arguments.seed,
    )


def _range(text: str) -> tuple[str, float, float]:
    name, equals, value = text.rpartition("=")
    low, dots, high = value.partition("..")
    try:
        bounds = float(low), float(high)
    except ValueError:
        bounds = None
    if not (equals and name and dots) or bounds is None or bounds[0] > bounds[1]:
        raise UsageError(f"--input-range is {text!r}", hint="the form is X=-1..1")
    return name, *bounds
