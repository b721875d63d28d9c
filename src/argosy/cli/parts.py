"""`argosy verify --save-parts` and `--parts`: instructions one by one where there is no compiler."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.console import Console
from argosy.cli.options.inputs import input_request
from argosy.cli.options.model import dimensions
from argosy.cli.progress import progress
from argosy.errors import UsageError

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.ir.program import Program
    from argosy.options import Dimensions

__all__ = ["check_parts_options", "save_parts"]


def check_parts_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that don't go together with those of parts."""
    from argosy.inputs import InputRequest
    from argosy.options import Dimensions

    if arguments.save_parts is not None:
        for name in ("parts", "bisect"):
            if getattr(arguments, name):
                raise UsageError(f"--save-parts and --{name} are both given", hint="ask one at a time")
    if arguments.parts is None:
        return
    if not arguments.per_instruction:
        raise UsageError("--parts is given, and not --per-instruction", hint="add --per-instruction")
    if arguments.bisect:
        raise UsageError("--parts and --bisect are both given", hint="bisecting compiles: leave one of both out")
    asked = input_request(arguments) != InputRequest() or dimensions(arguments) != Dimensions()
    if asked or arguments.cases not in (None, 1):
        raise UsageError(
            "inputs are asked for, and --parts has its own", hint="give the options of inputs with --save-parts"
        )


def save_parts(
    program: Program, artifact: Artifact, arguments: argparse.Namespace, dims: Dimensions, console: Console
) -> int:
    """Compile the parts and write the folder; 0 when it is there."""
    from argosy import verification
    from argosy.inputs import make_inputs
    from argosy.runtime.session import Session

    types = Session(artifact, native_code=False).inputs
    made = make_inputs(types, input_request(arguments), dims, program=lambda: program)
    with made.explaining(), progress(console, f"compiling parts of {arguments.file}"):
        saved = verification.save_parts(program, artifact, made.values, arguments.save_parts)
    if arguments.json:
        console.json({"folder": arguments.save_parts, "variants": [each.to_json() for each in saved]})
        return 0
    for each in saved:
        console.write(str(each))
    console.write(
        f"{arguments.save_parts} is for argosy verify ARTIFACT --per-instruction --parts {arguments.save_parts}"
    )
    return 0
