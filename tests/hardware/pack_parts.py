"""`pack-parts FOLDER`: every instruction of some models, compiled here, to be compared on a device elsewhere.

Real models are carried with their weights. Those of the catalogue are made again where they run, weights and all.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import argosy
from argosy.artifact.artifact_writer import array_bytes
from argosy.verification import Parts, save_parts
from benchmarks.models import catalog, real
from tests.hardware.packs import PackWriter

__all__ = ["ARTIFACT", "PARTS", "add"]

PARTS: Final = "parts"
"""The stem of these packs, and the folder in the name of what belongs to a model: `MODEL/parts/FILE`."""
ARTIFACT: Final = "artifact"


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("pack-parts", help="compile models instruction by instruction", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the packs go")
    parser.add_argument("--arch", default="sm_90", help="the arch (default: sm_90)")
    parser.add_argument("--precision", default="fp32", help="fp32 (default), fp16 or bf16")
    parser.add_argument("--model", action="append", required=True, help="a real model or one of the catalogue")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    with PackWriter(options.folder, PARTS) as writer:
        for name in options.model:
            start = time.monotonic()
            size = _pack(writer, name, options.arch, options.precision)
            _say(f"{name}: {size / 1024:.0f} KiB, {time.monotonic() - start:.0f} s")
    for path in writer.written:
        _say(f"{path.name}: {path.stat().st_size / (1 << 20):.1f} MiB")
    return 0


def _pack(writer: PackWriter, name: str, arch: str, precision: str) -> int:
    """Put the artifact of a model and its parts into a pack; bytes before packing."""
    made_again = any(preset.name == name for _, preset in catalog.presets())
    model, inputs = _source(name, made_again=made_again)
    program = argosy.load_onnx(model)
    artifact = argosy.compile(program, targets=[arch], precision=precision, weights="omit" if made_again else "embed")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, PARTS)
        save_parts(program, artifact, inputs, folder)
        if made_again:
            own = Parts.open(folder).weights(program)
            for digest in artifact.weights.keys() - own.keys():
                (folder / "weights" / digest).write_bytes(array_bytes(artifact.weights[digest].stored))
        artifact.save(Path(place, ARTIFACT))
        files = {str(path.relative_to(place)): path for path in sorted(Path(place).rglob("*")) if path.is_file()}
        contents = {file: path.read_bytes() for file, path in files.items()}
    writer.together([*contents.values()])
    for file, content in contents.items():
        writer.add(f"{name}/{file}", content)
    return sum(map(len, contents.values()))


def _source(name: str, *, made_again: bool) -> tuple[Any, Mapping[str, Any]]:
    if made_again:
        return catalog.make(name), catalog.feeds(name)
    entry = real.model(name)
    return entry.path(), entry.feeds(entry.sizes[0])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
