"""`argosy run`: inputs to outputs, once."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from argosy.cli.console import Console, table
from argosy.cli.files import check_folders, check_npz
from argosy.cli.options.common import add_output_option, add_why_option
from argosy.cli.options.compile import add_compile_options
from argosy.cli.options.device import add_device_options, open_session
from argosy.cli.options.inputs import add_input_options, input_request
from argosy.cli.options.model import add_model_options, dimensions
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import artifact_of
from argosy.cli.values import describe_value, short_value
from argosy.cli.verb import verb

if TYPE_CHECKING:
    from argosy.inputs import Inputs
    from argosy.runtime.session import Session

__all__ = ["run_model"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="an artifact, or a model (which is compiled first)")
    add_output_option(parser, "the outputs as .npz")
    add_why_option(parser, "why each variant is or is not taken")
    add_device_options(parser)
    add_input_options(parser)
    add_model_options(parser)
    add_compile_options(parser)


@verb(
    "run",
    group="Models",
    summary="run an artifact or a model on inputs",
    configure=configure,
    examples=(
        ("argosy run model.argosy --input x=x.npy -o outputs.npz", "runs the best variant, keeps the outputs"),
        ("argosy run model.onnx --dim batch=2 --why", "compiles first, generates inputs, says why this variant"),
    ),
)
def run_model(arguments: argparse.Namespace, console: Console) -> int:
    """Run once; show names, types and short values of the outputs."""
    from argosy.inputs import make_inputs, write_npz

    check_npz(arguments.output)
    check_folders(arguments.output)
    artifact = artifact_of(arguments.file, arguments, console)
    session = open_session(artifact, arguments)
    held = None if artifact.is_slim else artifact.program
    inputs = make_inputs(session.inputs, input_request(arguments), dimensions(arguments), program=held)
    begin = time.perf_counter()
    with progress(console, f"running {arguments.file} on {session.variant}"), inputs.explaining():
        outputs = session.run(inputs.values)
    seconds = time.perf_counter() - begin
    if arguments.output:
        write_npz(arguments.output, outputs)
    if arguments.json:
        console.json(_json(session, inputs, outputs, seconds))
        return 0
    _show(session, inputs, outputs, seconds, arguments, console)
    return 0


def _show(
    session: Session,
    inputs: Inputs,
    outputs: Mapping[str, Any],
    seconds: float,
    arguments: argparse.Namespace,
    console: Console,
) -> None:
    paint = console.paint
    why = session.why.splitlines()
    taken = next((line for line in why if line.startswith("→")), session.variant)
    console.write(f"{paint('variant', 'bold')} {taken.removeprefix('→ ')}")
    if arguments.why:
        console.write("\n".join(f"  {line}" for line in why))
    console.write(paint("inputs", "bold"))
    rows = [(name, describe_value(value), inputs.origins[name]) for name, value in inputs.values.items()]
    console.write("\n".join(f"  {line}" for line in table(rows)) or "  none")
    console.write(paint("outputs", "bold"))
    rows = [(name, describe_value(value), short_value(value)) for name, value in outputs.items()]
    console.write("\n".join(f"  {line}" for line in table(rows)))
    console.write(f"{paint('time', 'bold')} {seconds * 1e3:.2f} ms, first run included")
    if arguments.output:
        console.note(f"wrote {arguments.output}")


def _json(session: Session, inputs: Inputs, outputs: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    return {
        "variant": session.variant,
        "why": session.why.splitlines(),
        "inputs": [
            {"name": name, "value": describe_value(value), "origin": inputs.origins[name]}
            for name, value in inputs.values.items()
        ],
        "outputs": [
            {"name": name, "value": describe_value(value), "elements": short_value(value)}
            for name, value in outputs.items()
        ],
        "seconds": seconds,
    }
