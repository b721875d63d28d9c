"""`argosy verify --reduce`: a small model in a folder, in place of a report."""

from __future__ import annotations

import argparse
from pathlib import Path

from argosy.cli.console import Console
from argosy.cli.options.comparison import tolerance
from argosy.cli.options.compile import compile_options, targets
from argosy.cli.options.debugging import CHECK_SECONDS, CHECKS
from argosy.cli.options.inputs import input_request
from argosy.cli.options.model import dimensions
from argosy.cli.progress import progress
from argosy.cli.sources import kind_of
from argosy.errors import UsageError

__all__ = ["reduce_failure"]


def reduce_failure(arguments: argparse.Namespace, cases: int, console: Console) -> int:
    """Reduce the model and write the folder; 1 where it fails, 0 where there is nothing to reduce."""
    from argosy.debugging.reduction import reduce_model
    from argosy.debugging.reduction.reduced import check_folder

    if arguments.artifact or arguments.artifact_option or kind_of(arguments.file) != "model":
        raise UsageError(
            "--reduce needs the ONNX model alone, as it compiles parts of it",
            hint="give the model, and say by --arch and the other compile options how to compile",
        )
    for other in ("bisect", "per_instruction", "save_parts", "parts"):
        if getattr(arguments, other):
            raise UsageError(f"--reduce and --{other.replace('_', '-')} are both given", hint="ask one at a time")
    if arguments.strict_onnx:
        raise UsageError(
            "--strict-onnx is given, and --reduce takes models as they are", hint="leave --strict-onnx out"
        )
    folder = arguments.output or f"{Path(arguments.file).stem}-reduced"
    check_folder(folder)
    chosen = targets(arguments)
    with progress(console, f"reducing {arguments.file}"):
        reduced = reduce_model(
            arguments.file,
            targets=chosen,
            device=arguments.device,
            exact=arguments.exact,
            against=arguments.against,
            dims=dimensions(arguments),
            inputs=input_request(arguments),
            cases=cases,
            tolerance=tolerance(arguments),
            options=compile_options(arguments, chosen),
            check=arguments.check,
            checks=arguments.checks or CHECKS,
            seconds=arguments.check_seconds or CHECK_SECONDS,
        )
    if reduced is not None:
        reduced.save(folder)
    if arguments.json:
        console.json({"passed": reduced is None, **({"folder": folder, **reduced.to_json()} if reduced else {})})
    elif reduced is None:
        console.write("nothing fails, so there is nothing to reduce")
    else:
        console.write(f"{reduced}\n{folder} holds model.onnx, inputs.npz, reproduce.py and report.json")
    return 0 if reduced is None else 1
