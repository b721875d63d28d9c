"""`argosy compile`: a model to an artifact."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.console import Console, table
from argosy.cli.describe import (
    artifact_json,
    bytes_text,
    needs_text,
    numbers_text,
    support_tier,
    variant_needs,
    variant_rows,
)
from argosy.cli.fan_out import PATTERN, failed_json, fleet_json, fleet_rows, nodes, paths, tell_failed
from argosy.cli.files import check_folders
from argosy.cli.options.common import add_output_option
from argosy.cli.options.compile import add_compile_options, compile_options, targets
from argosy.cli.options.model import add_model_options
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import program_of
from argosy.cli.verb import verb
from argosy.errors import ArgosyError, UsageError

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.drivers.machine import Machine
    from argosy.options import CompileOptions
    from argosy.targets.base import Target

__all__ = ["compile_model"]

log = logging.getLogger("argosy.cli")


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="MODEL", help="an ONNX model")
    add_output_option(parser, "the artifact", default="MODEL with the ending .argosy")
    add_model_options(parser)
    add_compile_options(parser)
    group = parser.add_argument_group("fleet options")
    group.add_argument(
        "--fleet",
        nargs="+",
        action="extend",
        default=[],
        metavar="NODE.json",
        help="compile for the GPUs and CPUs of these machines: files that `argosy doctor --json` wrote there",
    )
    group.add_argument(
        "--separate",
        action="store_true",
        help=f"a file for each arch; -o is then a pattern (default: {PATTERN})",
    )
    group = parser.add_argument_group("artifact options")
    group.add_argument(
        "--weights",
        default="embed",
        metavar="embed|omit|FILE",
        help="weights in the artifact, left out, or in FILE beside it (default: embed)",
    )
    group.add_argument("--slim", action="store_true", help="store prepared weights and no program: smaller, no ref")
    group.add_argument("--strict", action="store_true", help="what an arch can't honour is an error, not a warning")
    group.add_argument("--jobs", type=int, metavar="N", help="processes that compile (default: one for each core)")
    group.add_argument("--debug", action="store_true", help="keep line tables in the code")


@verb(
    "compile",
    group="Models",
    summary="compile a model into one artifact",
    configure=configure,
    examples=(
        ("argosy compile model.onnx", "writes model.argosy, for this machine"),
        ("argosy compile model.onnx --arch ref --dim batch=8 -o model-8.argosy", "with one dim bound"),
        ("argosy compile model.onnx --dim batch=1,8", "every size, and faster code for two of them"),
        ("argosy compile model.onnx --fleet nodes/*.json", "for just the devices of these machines, in one file"),
        ("argosy compile model.onnx --arch datacenter --separate", "a file for each arch, under dist"),
    ),
)
def compile_model(arguments: argparse.Namespace, console: Console) -> int:
    """Compile, save, and say what was made."""
    from argosy.artifact.artifact import Artifact
    from argosy.compiler import compile_what_can_be

    output = arguments.output or str(Path(arguments.file).with_suffix(".argosy"))
    begin = time.perf_counter()
    machines = nodes(arguments.fleet)
    chosen = targets(arguments, machines.values())
    options = compile_options(arguments, chosen)
    _check_specialised(options, chosen)
    if arguments.separate:
        return _separately(arguments, machines, chosen, options, console)
    check_folders(output)
    program = program_of(arguments.file, arguments, console)
    with progress(console, f"compiling {arguments.file}"):
        compiled, failures = compile_what_can_be(program, chosen, options, weights=arguments.weights)
        compiled.save(output)
    seconds = time.perf_counter() - begin
    saved = Artifact.open(output)
    if arguments.json:
        told = artifact_json(saved)
        told["targets"] = [
            {
                "arch": target.arch,
                "tier": support_tier(target.arch),
                "numbers": [asdict(number) for number in target.numbers()],
            }
            for target in chosen
        ]
        for variant, each in zip(saved.variants, told["variants"], strict=True):
            each["needs"] = variant_needs(saved, variant)
        told["seconds"] = seconds
        told |= _fleet_told(machines, [saved], failures)
        console.json(told)
        return tell_failed(failures, console)
    _summarise(saved, output, [target for target in chosen if target not in failures], seconds, console)
    for line in fleet_rows(fleet_json(machines, [saved])) if machines else ():
        console.write(line)
    return tell_failed(failures, console)


def _separately(
    arguments: argparse.Namespace,
    machines: Mapping[str, Machine],
    chosen: Sequence[Target],
    options: CompileOptions,
    console: Console,
) -> int:
    """A file for each target, written as soon as it is ready; what can't be compiled keeps no other from it."""
    from argosy.artifact.artifact import Artifact
    from argosy.artifact.atomic import make_folder
    from argosy.compiler import compile_each

    begin, files = time.perf_counter(), paths(arguments.output, arguments.file, chosen)
    program = program_of(arguments.file, arguments, console)
    failures: dict[Target, ArgosyError] = {}
    with progress(console, f"compiling {arguments.file}"):
        for target, made in compile_each(program, chosen, options, weights=arguments.weights):
            if isinstance(made, ArgosyError):
                failures[target] = made
                continue
            make_folder(files[target].parent)
            made.save(files[target])
    written = {target: path for target, path in files.items() if target not in failures}
    saved = [Artifact.open(path) for path in written.values()]
    if arguments.json:
        told = {"files": {target.arch: str(path) for target, path in written.items()}}
        console.json({**told, "seconds": time.perf_counter() - begin, **_fleet_told(machines, saved, failures)})
        return tell_failed(failures, console)
    console.write(f"{len(written)} of {len(chosen)} archs, {time.perf_counter() - begin:.2f} s")
    for line in table([(target.arch, path, bytes_text(path.stat().st_size)) for target, path in written.items()]):
        console.write(f"  {line}")
    for line in fleet_rows(fleet_json(machines, saved)) if machines else ():
        console.write(line)
    return tell_failed(failures, console)


def _fleet_told(
    machines: Mapping[str, Machine], saved: Sequence[Artifact], failures: Mapping[Target, ArgosyError]
) -> dict[str, Any]:
    """What is told of a fleet, and of archs without code, where there are such."""
    found: dict[str, Any] = {"fleet": fleet_json(machines, saved)} if machines else {}
    return found | ({"failed": failed_json(failures)} if failures else {})


def _check_specialised(options: CompileOptions, chosen: Sequence[Target]) -> None:
    """Where no arch makes code, single sizes get none: say so, rather than leave the wish out in silence."""
    if not options.dims.specialised or any(target.needs_variant for target in chosen):
        return
    names = ", ".join(request.name for request in options.dims.specialised)
    said = f"no arch that was asked for makes code, so there is none for single sizes of {names}"
    if options.strict:
        raise UsageError(said, hint="leave these --dim out, or add an arch")
    log.warning(said)


def _summarise(artifact: Artifact, output: str, chosen: Sequence[Target], seconds: float, console: Console) -> None:
    paint = console.paint
    size = bytes_text(Path(output).stat().st_size)
    weights = sum(weight.bytes for weight in artifact.manifest.weights.values())
    console.write(f"{paint(output, 'bold')}  {size} (weights {bytes_text(weights)}), {seconds:.2f} s")
    for line in table(variant_rows(artifact)):
        console.write(f"  {line}")
    for variant in artifact.variants:
        console.write(f"  {variant.words} needs {needs_text(variant_needs(artifact, variant))}")
    for arch in dict.fromkeys(target.arch for target in chosen):
        console.write(f"  support of {arch}: {support_tier(arch)}")
    for target in chosen:
        if target.numbers():
            console.write(f"  compiled for {target.arch} with {numbers_text(target)}")
