"""Options that say how to compile: archs, precision, accuracy. `run`, `perf` and `verify` take them too."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from argosy.cli.options.gpu import add_gpu_options, asked_gpu_options, with_gpu_options
from argosy.cli.options.model import dimensions
from argosy.cli.parser import Parser
from argosy.errors import UsageError
from argosy.options import ACCURACIES, MODES, STAGES, CompileOptions

if TYPE_CHECKING:
    from argosy.drivers.machine import Machine
    from argosy.targets.base import Target

__all__ = ["add_arch_option", "add_compile_options", "add_mode_option", "asked_compile_options", "compile_options",
           "targets"]  # fmt: skip

log = logging.getLogger("argosy.cli")


def add_compile_options(parser: Parser, default: str = "native, this machine") -> None:
    """Archs and everything that changes the code; `default` says what is done without an arch."""
    group = parser.add_argument_group("compile options")
    add_arch_option(group, default)
    add_gpu_options(group)
    precision = group.add_mutually_exclusive_group()
    precision.add_argument("--fp16", action="store_const", const="fp16", dest="precision", help="compute in fp16")
    precision.add_argument("--bf16", action="store_const", const="bf16", dest="precision", help="compute in bf16")
    group.add_argument("--allow-tf32", action="store_true", help="let matrix units round fp32 operands to tf32")
    group.add_argument("--fast-math", action="store_true", help="approximate functions, flush denormals")
    group.add_argument(
        "--accuracy",
        choices=ACCURACIES,
        default="standard",
        help="which approximations are allowed (default: standard)",
    )
    add_mode_option(group)
    group.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PART",
        help="leave a part of the compiler out: pass:NAME, rule:NAME, solution:NAME or stage:NAME "
        f"({', '.join(STAGES)}); may be repeated",
    )


def add_arch_option(group: argparse._ArgumentGroup, default: str) -> None:
    """`--arch`; `default` says what is compiled for without it."""
    group.add_argument(
        "--arch",
        action="append",
        default=[],
        metavar="A,B",
        help=f"what to compile for, as `argosy arches` lists it (default: {default}); may be repeated",
    )


def add_mode_option(group: argparse._ArgumentGroup) -> None:
    """`--compile-mode`."""
    group.add_argument(
        "--compile-mode", choices=MODES, default="balanced", help="time of compiling against speed of code"
    )


def asked_compile_options(arguments: argparse.Namespace) -> list[str]:
    """The options of these that the command line has."""
    flags = ("arch", "precision", "allow_tf32", "fast_math", "without")
    asked = [name for name in flags if getattr(arguments, name, None)]
    asked += asked_gpu_options(arguments)
    asked += ["accuracy"] * (getattr(arguments, "accuracy", "standard") != "standard")
    asked += ["compile_mode"] * (getattr(arguments, "compile_mode", "balanced") != "balanced")
    return [f"--{arguments.precision if name == 'precision' else name.replace('_', '-')}" for name in asked]


def targets(arguments: argparse.Namespace, machines: Iterable[Machine] = ()) -> tuple[Target, ...]:
    """The targets that `--arch` and `--gpu-arch` name, and those of machines; raises UsageError for an unknown one."""
    from argosy.compiler import machine_targets, resolve_targets

    gpus = resolve_targets(arguments.gpu_arch) if arguments.gpu_arch else ()
    for target in gpus:
        if target.name != "gpu":
            raise UsageError(f"--gpu-arch names {target.arch}, which is no GPU", hint=f"--arch {target.arch}")
    fleet = [target for machine in machines for target in machine_targets(machine)]
    named = resolve_targets([*arguments.arch, *gpus, *fleet] or ("native",))
    return with_gpu_options(named, arguments)


def compile_options(arguments: argparse.Namespace, chosen: tuple[Target, ...]) -> CompileOptions:
    """The options as one value.

    What no chosen target can honour is a warning, with `--strict` an error.
    """
    options = CompileOptions(
        precision=arguments.precision or "fp32",
        dims=dimensions(arguments),
        strict=getattr(arguments, "strict", False),
        accuracy=arguments.accuracy,
        allow_tf32=arguments.allow_tf32,
        fast_math=arguments.fast_math,
        mode=arguments.compile_mode,
        slim=getattr(arguments, "slim", False),
        debug=getattr(arguments, "debug", False),
        jobs=getattr(arguments, "jobs", None),
        without=tuple(arguments.without),
    )
    if options.mode == "max":
        log.warning("--compile-mode max: nothing is measured in this version, on no device; cost models choose")
    for said, hint in _not_honoured(options, chosen):
        if options.strict:
            raise UsageError(said, hint=hint)
        log.warning(said)
    return options


def _not_honoured(options: CompileOptions, chosen: tuple[Target, ...]) -> Iterator[tuple[str, str]]:
    """What is asked for that changes no code of the chosen targets, and what to do about it."""
    asked = [
        f"--{name}"
        for name, on in (
            (options.precision, options.precision != "fp32"),
            ("allow-tf32", options.allow_tf32),
            ("fast-math", options.fast_math),
        )
        if on
    ]
    if asked and not any(target.needs_variant for target in chosen):
        said = f"{', '.join(asked)}: ref computes in the precision of the model, and no other arch is asked for"
        yield said, "leave the option out, or add an --arch"
        return
    if options.allow_tf32 and not any(target.has_tf32 for target in chosen):
        names = ", ".join(target.arch for target in chosen)
        yield f"--allow-tf32: no matrix unit of {names} takes tf32, products stay in float32", "leave the option out"
    if options.fast_math:
        said = "--fast-math changes no code in this version: no function is coarser than those of --accuracy relaxed"
        yield said, "use --accuracy relaxed"
