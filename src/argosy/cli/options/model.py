"""Options of every verb that reads a model: dims, and how strict to be."""

from __future__ import annotations

import argparse

from argosy.cli.parser import Parser
from argosy.errors import UsageError
from argosy.options import Dimensions, DimRequest

__all__ = ["add_model_options", "dimensions"]


def add_model_options(parser: Parser, *, skip_unknown: bool = False) -> None:
    """The model options. `skip_unknown` where a program that can't run is of use."""
    group = parser.add_argument_group("model options")
    group.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="N=SIZES",
        help="a symbolic dim: N=4 binds it, N=1,8,32 adds code for these sizes, N=1..512 bounds it; may be repeated",
    )
    group.add_argument(
        "--input-shape",
        action="append",
        default=[],
        metavar="X=1,3,224,224",
        help="the shape of an input; may be repeated",
    )
    group.add_argument("--batch", type=_size, metavar="N", help="bind the first dim of every input, where symbolic")
    if skip_unknown:
        group.add_argument("--skip-unknown", action="store_true", help="read unsupported nodes as placeholders")
    group.add_argument("--strict-onnx", action="store_true", help="refuse what is else accepted with a warning")


def dimensions(arguments: argparse.Namespace) -> Dimensions:
    """What the options ask of the dims; raises UsageError where they contradict each other."""
    requests = tuple(DimRequest.of(*_pair(text, "--dim", "N=4, N=1,8,32 or N=1..512")) for text in arguments.dim)
    shapes = []
    for text in arguments.input_shape:
        name, sizes = _pair(text, "--input-shape", "X=1,3,224,224")
        shapes.append((name, _shape(sizes, text)))
    for noun, names in (("dim", [r.name for r in requests if r.binds]), ("shape of", [name for name, _ in shapes])):
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"the {noun} {name!r} is given twice")
    return Dimensions(requests, tuple(shapes), arguments.batch)


def _pair(text: str, option: str, forms: str) -> tuple[str, str]:
    """The two sides of NAME=VALUE; names may hold `=` too, so the last one counts."""
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise UsageError(f"{option} is {text!r}", hint=f"the form is {forms}")
    return name, value


def _shape(text: str, whole: str) -> tuple[int, ...]:
    parts = [part for part in text.replace("x", ",").split(",") if part != "scalar"]
    if not all(part.strip().isdigit() for part in parts):
        raise UsageError(f"--input-shape is {whole!r}", hint="the form is X=1,3,224,224 (sizes only), or X=scalar")
    return tuple(int(part) for part in parts)


def _size(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size")
    return int(text)
