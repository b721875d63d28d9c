"""Wheels and indexes of small artifacts, for the tests of this folder."""

from __future__ import annotations

import email
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

import msgspec

from argosy.artifact.artifact import Artifact
from argosy.artifact.manifest import PROGRAM_ENTRY, SLIM
from argosy.packaging.build import build_index
from argosy.packaging.index import Index
from argosy.packaging.package import Packaged, package
from tests.artifact import samples

ARCHS = {
    "gfx942": {"family": "amd"},
    "sm_90": {"family": "nvidia"},
    "x86-64-v3": {"family": "cpu-x86-64", "system": "linux"},
}


def fleet(**changed: Any) -> Artifact:
    """An artifact with a variant for each of ARCHS."""
    return Artifact.open(samples.artifact(*(samples.variant(arch, **more) for arch, more in ARCHS.items()), **changed))


def slim() -> Artifact:
    """A slim artifact: it holds no program."""
    manifest, contents = samples.parts(samples.variant())
    del contents[PROGRAM_ENTRY]
    return Artifact.open(samples.written(msgspec.structs.replace(manifest, features=(SLIM,)), contents))


def wheels(folder: Path, artifact: Artifact | None = None, **changed: Any) -> dict[str, Packaged]:
    """The wheels of a fleet by project."""
    options: dict[str, Any] = {"name": "net", "version": "1.2", "folder": folder} | changed
    return {metadata(one.path)["Name"]: one for one in package(artifact or fleet(), **options)}


def index(folder: Path, **options: Any) -> Index:
    """The index of a fleet, built beside its wheels."""
    wheels(folder)
    return build_index(folder, folder, **options)


def files(path: Path) -> dict[str, bytes]:
    """The files in a wheel."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(path: Path) -> Message:
    """The metadata of a wheel."""
    return email.message_from_bytes(next(raw for name, raw in files(path).items() if name.endswith("/METADATA")))
