"""Opens what a verb is given: a model, an artifact, or a program in text form, told apart by content."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from argosy.cli.console import Console
from argosy.cli.options.compile import asked_compile_options, compile_options, targets
from argosy.cli.options.model import dimensions
from argosy.cli.progress import progress
from argosy.errors import ModelError, UsageError

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.ir.dim import Symbol
    from argosy.ir.program import Program
    from argosy.ir.types import Type

__all__ = [
    "Interface",
    "Kind",
    "artifact_of",
    "interface_of",
    "interface_types",
    "kind_of",
    "open_artifact",
    "program_of",
    "refuse_compile_options",
]

Kind: TypeAlias = Literal["model", "artifact", "text"]

log = logging.getLogger("argosy.cli")

_ZIP: Final = b"PK\x03\x04"
_TEXT: Final = b"argosy "


def kind_of(path: str) -> Kind:
    """What the file at `path` is; raises UsageError where there is no file."""
    file = Path(path)
    if file.is_dir():
        raise UsageError("this is a folder", where=path, hint="name the model or artifact in it")
    if not file.is_file():
        raise UsageError("no such file", where=path)
    with file.open("rb") as opened:
        begin = opened.read(4096)
    if begin.startswith(_ZIP):
        return "artifact"
    lines = [line for line in begin.splitlines() if line.strip() and not line.startswith(b"#")]
    return "text" if lines and lines[0].startswith(_TEXT) else "model"


def open_artifact(path: str, *, weights: str | None = None) -> Artifact:
    """The artifact at `path`; raises ArtifactError for anything else that is there."""
    from argosy.artifact.artifact import Artifact

    if kind_of(path) == "model":
        log.debug("%s does not begin like an artifact", path)
    return Artifact.open(path, weights=weights)


def program_of(path: str, arguments: argparse.Namespace, console: Console, *, bound: bool = True) -> Program:
    """The program in a model, artifact or text file, with dims as the model options ask; as it is, if not `bound`."""
    from argosy.compiler import load_onnx

    dims = dimensions(arguments) if bound else None
    kind = kind_of(path)
    with progress(console, f"reading {path}"):
        if kind == "artifact":
            return load_onnx(open_artifact(path).program(), dims=dims)
        if kind == "text":
            from argosy.ir.program_files import read_program

            try:
                return load_onnx(read_program(Path(path)), dims=dims)
            except UnicodeDecodeError:
                raise ModelError("this is no text in UTF-8", where=path) from None
        skip = getattr(arguments, "skip_unknown", False)
        return load_onnx(path, dims=dims, skip_unknown=skip, strict=arguments.strict_onnx)


def artifact_of(path: str, arguments: argparse.Namespace, console: Console) -> Artifact:
    """The artifact at `path`, or the one that the model at `path` compiles to, as the compile options ask."""
    if kind_of(path) == "artifact":
        refuse_compile_options(path, arguments)
        artifact = open_artifact(path, weights=getattr(arguments, "weights", None))
        _check_dims(artifact, arguments)
        return artifact
    from argosy.compiler import compile_program

    chosen = targets(arguments)
    options = compile_options(arguments, chosen)
    program = program_of(path, arguments, console)
    with progress(console, f"compiling {path}"):
        return compile_program(program, chosen, options)


def refuse_compile_options(path: str, arguments: argparse.Namespace, *, but: Sequence[str] = ()) -> None:
    """An artifact is compiled already: asking for other code is a mistake, not a wish that is dropped in silence.

    The options in `but` mean something else.
    """
    asked = [option for option in asked_compile_options(arguments) if option not in but]
    if asked:
        raise UsageError(
            f"{asked[0]} says how to compile, but {path} is compiled already",
            hint="give the model instead, or leave the option out",
        )


def _check_dims(artifact: Artifact, arguments: argparse.Namespace) -> None:
    """Dims only choose the sizes of generated inputs here; names and contradictions are found all the same."""
    from argosy.ir.binding import wanted_values

    wanted_values(interface_types(artifact)[0], dimensions(arguments))


@dataclass(frozen=True, slots=True)
class Interface:
    """What goes in and comes out of a model: types by name, and the symbols in the dims of the inputs."""

    inputs: dict[str, Type]
    outputs: dict[str, Type]
    symbols: dict[str, Symbol]


def interface_of(path: str, arguments: argparse.Namespace, console: Console) -> Interface:
    """The interface of a model, program or artifact; a slim artifact's is in its manifest."""
    if kind_of(path) == "artifact":
        artifact = open_artifact(path)
        if artifact.is_slim:
            inputs, outputs = interface_types(artifact)
            return Interface(inputs, outputs, _symbols(inputs))
    program = program_of(path, arguments, console)
    return Interface(program.inputs, program.outputs, program.symbols)


def interface_types(artifact: Artifact) -> tuple[dict[str, Type], dict[str, Type]]:
    """The types of an artifact's inputs and outputs, from its manifest."""
    from argosy.artifact.decode import decode_symbols
    from argosy.ir.parser import parse_type

    manifest = artifact.manifest
    symbols = decode_symbols(manifest.symbols)
    inputs, outputs = (
        {info.name: parse_type(info.type, symbols) for info in infos} for infos in (manifest.inputs, manifest.outputs)
    )
    return inputs, outputs


def _symbols(inputs: dict[str, Type]) -> dict[str, Symbol]:
    from argosy.ir.types import type_symbols

    return {symbol.name: symbol for kind in inputs.values() for symbol in sorted(type_symbols(kind), key=str)}
