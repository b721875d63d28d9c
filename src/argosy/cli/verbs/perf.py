"""`argosy perf`: how long a run takes, as a whole and instruction by instruction."""

from __future__ import annotations

import argparse
import json

from argosy.cli.console import Console
from argosy.cli.files import check_folders, emit
from argosy.cli.options.common import add_output_option, add_why_option
from argosy.cli.options.compile import add_compile_options
from argosy.cli.options.device import add_device_options, open_session
from argosy.cli.options.inputs import add_input_options, input_request
from argosy.cli.options.model import add_model_options, dimensions
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import artifact_of, kind_of
from argosy.cli.verb import verb
from argosy.errors import UsageError

__all__ = ["measure"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="an artifact, or a model (which is compiled first)")
    parser.add_argument(
        "-n", "--iterations", type=int, metavar="N", help="runs to measure (default: 100, or what ten seconds allow)"
    )
    parser.add_argument("--csv", action="store_true", help="give every instruction as a line of CSV")
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="P",
        help="run an artifact or a peer in turn, and give the ratio of the medians: onnxruntime or openvino (with an"
        " artifact onnxruntime=MODEL), or torch=FILE, what torch.export or torch.jit saved; may be repeated",
    )
    parser.add_argument(
        "--ranges",
        action="store_true",
        help="mark each instruction by the name of its node for profilers (NVTX, roctx); runs go step by step then",
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="write when each instruction ran, for ui.perfetto.dev and chrome://tracing"
    )
    add_output_option(parser, "the answer")
    add_why_option(parser, "why each variant is or is not taken")
    add_device_options(parser)
    add_input_options(parser)
    add_model_options(parser)
    add_compile_options(parser)


@verb(
    "perf",
    group="Models",
    summary="measure an artifact or a model, end to end and per instruction",
    configure=configure,
    examples=(
        ("argosy perf model.argosy", "times of runs, of ops and of instructions"),
        ("argosy perf model.onnx --compare onnxruntime", "beside ONNX Runtime, runs in turn"),
        ("argosy perf model.argosy --trace trace.json", "when each instruction ran, for ui.perfetto.dev"),
        ("argosy perf model.onnx --dim batch=8 -n 50 --json -o perf.json", "all figures, for programs"),
    ),
)
def measure(arguments: argparse.Namespace, console: Console) -> int:
    """Measure and show."""
    from argosy.profiling import perf

    if arguments.csv and arguments.json:
        raise UsageError("--csv contradicts --json")
    check_folders(arguments.output, arguments.trace)
    session = open_session(artifact_of(arguments.file, arguments, console), arguments)
    with progress(console, f"measuring {arguments.file} on {session.variant}"):
        report = perf(
            session,
            inputs=input_request(arguments),
            dims=dimensions(arguments),
            iterations=arguments.iterations,
            device=arguments.device,
            exact=arguments.exact,
            compare=[_rival(spec, arguments.file) for spec in arguments.compare],
            ranges=arguments.ranges,
        )
    if arguments.why:
        console.note(session.why)
    if arguments.trace:
        emit(json.dumps(report.to_trace(), ensure_ascii=False), arguments.trace, console)
    if arguments.json:
        text = json.dumps(report.to_json(), indent=2, ensure_ascii=False)
    else:
        text = report.to_csv().rstrip("\n") if arguments.csv else str(report)
    emit(text, arguments.output, console)
    return 0


def _rival(spec: str, file: str) -> str:
    """What to compare with; a peer that reads ONNX models and names none gets the one that is measured."""
    from argosy.profiling.peers import READ_ONNX

    return f"{spec}={file}" if spec in READ_ONNX and kind_of(file) == "model" else spec
