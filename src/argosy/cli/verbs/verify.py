"""`argosy verify`: this machine's code against an independent answer. Exit status 1 where they do not agree."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.console import Console
from argosy.cli.options.common import add_why_option
from argosy.cli.options.comparison import add_comparison_options, tolerance
from argosy.cli.options.compile import add_compile_options, compile_options, targets
from argosy.cli.options.debugging import add_debugging_options, refuse_without_reduce
from argosy.cli.options.device import add_device_options
from argosy.cli.options.inputs import add_input_options, input_request
from argosy.cli.options.model import add_model_options, dimensions
from argosy.cli.parser import Parser
from argosy.cli.parts import check_parts_options, save_parts
from argosy.cli.progress import progress
from argosy.cli.reduction import reduce_failure
from argosy.cli.sources import kind_of, open_artifact, program_of, refuse_compile_options
from argosy.cli.verb import verb
from argosy.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.debugging import Bisection
    from argosy.ir.program import Program
    from argosy.options import Dimensions

__all__ = ["verify_model"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="MODEL", help="a model, or an artifact, which holds its program")
    parser.add_argument("artifact", metavar="ARTIFACT", nargs="?", help="verify this instead of compiling MODEL")
    parser.add_argument("--artifact", dest="artifact_option", help=argparse.SUPPRESS)
    add_why_option(parser, "why the variant was taken")
    group = add_comparison_options(parser)
    group.add_argument("--per-instruction", action="store_true", help="also compare the nodes in between")
    group.add_argument(
        "--bisect",
        action="store_true",
        help="where outputs differ, find the first wrong node, and the pass, rule, stage or solution to blame",
    )
    add_debugging_options(parser)
    add_device_options(parser)
    add_input_options(parser)
    add_model_options(parser)
    add_compile_options(parser)


@verb(
    "verify",
    group="Models",
    summary="compare this machine's code with ref, ONNX Runtime or a file",
    configure=configure,
    examples=(
        ("argosy verify model.onnx --against onnxruntime", "compiles, runs both, compares all outputs"),
        ("argosy verify model.onnx model.argosy --dim batch=1,8 --cases 2", "an artifact, at two batch sizes"),
        ("argosy verify model.onnx --per-instruction --json", "where the first difference is"),
        ("argosy verify model.argosy --save-parts parts", "the same, for a device without a compiler …"),
        ("argosy verify model.argosy --per-instruction --parts parts", "… and there"),
        ("argosy verify model.onnx --bisect", "which node is wrong first, and what is to blame"),
        ("argosy verify model.onnx --reduce -o small", "a small model that fails as this one does, with a script"),
    ),
)
def verify_model(arguments: argparse.Namespace, console: Console) -> int:
    """Verify and report; 1 where an output does not agree."""
    from argosy.compiler import compile_program
    from argosy.runtime.selection import judge
    from argosy.verification import make_reference, verify

    dims = dimensions(arguments)
    cases = arguments.cases
    if cases is None:
        cases = max((len(request.values) for request in dims.dims), default=1) or 1
    if arguments.reduce:
        return reduce_failure(arguments, cases, console)
    refuse_without_reduce(arguments)
    check_parts_options(arguments)
    held = arguments.artifact or arguments.artifact_option
    if held is None and kind_of(arguments.file) == "artifact":
        held = arguments.file
    # Parts are run where no dim is asked for: of an artifact, which was compiled before, dims only choose the inputs.
    program = program_of(arguments.file, arguments, console, bound=held is None or arguments.save_parts is None)
    if held is not None:
        refuse_compile_options(held, arguments)
        artifact = open_artifact(held, weights=arguments.weights)
    else:
        chosen = targets(arguments)
        with progress(console, f"compiling {arguments.file}"):
            artifact = compile_program(program, chosen, compile_options(arguments, chosen))
    if arguments.save_parts is not None:
        return save_parts(program, artifact, arguments, dims, console)
    reference = make_reference(arguments.against, arguments.file, program)
    try:
        with progress(console, f"verifying {arguments.file}"):
            report = verify(
                program,
                artifact,
                device=arguments.device,
                exact=arguments.exact,
                against=reference,
                dims=dims,
                inputs=None if arguments.parts else input_request(arguments),
                cases=cases,
                tolerance=tolerance(arguments),
                per_instruction=arguments.per_instruction,
                parts=arguments.parts,
            )
    except ArgosyError as error:
        if not arguments.bisect:
            raise
        return _bisect_error(error, program, artifact, arguments, dims, console)
    if arguments.why:
        console.note(str(judge(artifact.variants, device=arguments.device, slim=artifact.is_slim)))
    found = None
    if arguments.bisect:
        with progress(console, "looking for what is wrong"):
            failed = next((case for case in report.cases if not case.passed), report.cases[0])
            found = _bisected(program, artifact, failed.number, arguments, dims)
    if arguments.json:
        console.json(report.to_json() | ({"bisection": found.to_json()} if found is not None else {}))
    else:
        for line in f"{report}\n{found or ''}".splitlines():
            console.write(_paint(line, console))
    return 0 if report.passed else 1


def _bisected(
    program: Program, artifact: Artifact, case: int, arguments: argparse.Namespace, dims: Dimensions
) -> Bisection:
    """What is wrong with the inputs of a case, or that all is right."""
    from argosy.debugging import bisect
    from argosy.inputs import make_inputs
    from argosy.runtime.session import Session

    types = Session(artifact, device=arguments.device, exact=arguments.exact).inputs
    made = make_inputs(types, input_request(arguments), dims, case=case, program=lambda: program)
    return bisect(
        program,
        artifact,
        made.values,
        device=arguments.device,
        exact=arguments.exact,
        against="ref64" if arguments.against == "ref64" else "ref",
        tolerance=tolerance(arguments),
        model=arguments.file if arguments.against == "onnxruntime" else None,
        number=case,
    )


def _bisect_error(
    error: ArgosyError,
    program: Program,
    artifact: Artifact,
    arguments: argparse.Namespace,
    dims: Dimensions,
    console: Console,
) -> int:
    """What makes a run end with an error; the error itself where it is no fault of the code with the first inputs."""
    try:
        with progress(console, "looking for what is wrong"):
            found = _bisected(program, artifact, 0, arguments, dims)
    except ArgosyError:
        raise error from None  # ref can't run it either
    if found.agrees:
        raise error
    if arguments.json:
        console.json({"passed": False, "error": str(error), "bisection": found.to_json()})
    else:
        for line in f"a run ends with an error: {error}\nFAILED\n{found}".splitlines():
            console.write(_paint(line, console))
    return 1


def _paint(line: str, console: Console) -> str:
    if line == "passed":
        return console.paint(line, "green", "bold")
    if line == "FAILED" or "DOES NOT AGREE" in line or line.strip().startswith("mismatch"):
        return console.paint(line, "red")
    return line
