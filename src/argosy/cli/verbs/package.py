"""`argosy package`: an artifact as Python wheels, one for each arch."""

from __future__ import annotations

import argparse
from pathlib import Path

from argosy.cli.console import Console, table
from argosy.cli.describe import bytes_text
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb
from argosy.errors import UsageError

__all__ = ["package_artifact"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="an artifact")
    parser.add_argument("--name", metavar="N", help="the package's name (needed); it is imported with _ for - and .")
    parser.add_argument("--version", metavar="V", help="the package's version (needed), such as 1.2 or 1.2.0rc1")
    parser.add_argument("-o", "--output", metavar="DIR", default="dist", help="write the wheels to DIR (default: dist)")


@verb(
    "package",
    group="Artifacts",
    summary="write an artifact as Python wheels: the model for every machine, and code for each arch",
    configure=configure,
    examples=(
        (
            "argosy package fleet.argosy --name resnet50 --version 1.2 -o dist",
            "resnet50 with the program and the weights, and resnet50-device-ARCH for each arch of the file",
        ),
    ),
)
def package_artifact(arguments: argparse.Namespace, console: Console) -> int:
    """Write the wheels, and list them."""
    for option in ("name", "version"):
        if getattr(arguments, option) is None:
            raise UsageError(f"--{option} is missing", hint="argosy package FILE --name resnet50 --version 1.2")
    from argosy.packaging.package import package

    artifact = open_artifact(arguments.file)
    with progress(console, f"packaging {arguments.file}"):
        wheels = package(artifact, name=arguments.name, version=arguments.version, folder=Path(arguments.output))
    if arguments.json:
        console.json(
            [
                {"file": str(wheel.path), "bytes": wheel.size, "role": wheel.note.role, "archs": list(wheel.note.archs)}
                for wheel in wheels
            ]
        )
        return 0
    words = {"host": "the model, for every machine", "weights": "a share of the weights"}
    rows = [
        (wheel.path, bytes_text(wheel.size), words.get(wheel.note.role, f"code for {', '.join(wheel.note.archs)}"))
        for wheel in wheels
    ]
    for line in table(rows, right=(1,)):
        console.write(line)
    console.note(f"argosy index build {arguments.output} makes a package index of them")
    return 0
