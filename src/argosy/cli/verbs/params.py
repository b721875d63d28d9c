"""`argosy params`: the inputs and outputs of a model or artifact."""

from __future__ import annotations

import argparse

from argosy.cli.console import Console, table
from argosy.cli.options.model import add_model_options
from argosy.cli.parser import Parser
from argosy.cli.sources import interface_of
from argosy.cli.verb import verb

__all__ = ["show_parameters"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="a model or an artifact")
    add_model_options(parser, skip_unknown=True)


@verb(
    "params",
    group="Models",
    summary="show the inputs, outputs and symbolic dims of a model",
    configure=configure,
    examples=(("argosy params model.onnx", "names, types, and the dims that --dim takes"),),
)
def show_parameters(arguments: argparse.Namespace, console: Console) -> int:
    """Names and types, and the symbols with their bounds."""
    interface = interface_of(arguments.file, arguments, console)
    if arguments.json:
        console.json(
            {
                "inputs": [{"name": name, "type": str(kind)} for name, kind in interface.inputs.items()],
                "outputs": [{"name": name, "type": str(kind)} for name, kind in interface.outputs.items()],
                "symbols": {name: [symbol.lower, symbol.upper] for name, symbol in interface.symbols.items()},
            }
        )
        return 0
    paint = console.paint
    for title, values in (("inputs", interface.inputs), ("outputs", interface.outputs)):
        console.write(paint(title, "bold"))
        console.write("\n".join(f"  {line}" for line in table(list(values.items()))) or "  none")
    if interface.symbols:
        console.write(paint("dims", "bold"))
        for name, symbol in interface.symbols.items():
            upper = "any" if symbol.upper is None else symbol.upper
            console.write(f"  {name}: {symbol.lower}..{upper}")
    return 0
