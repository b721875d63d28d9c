"""Writes an artifact from a manifest and the contents of its entries, and the file of external weights."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec
import numpy as np

from argosy.artifact.atomic import atomic_file
from argosy.artifact.container import Container
from argosy.artifact.container_writer import ContainerWriter, Written, chunks_of
from argosy.artifact.manifest import MANIFEST_CODEC, PROGRAM_ENTRY, EntryRecord, Manifest, variant_order
from argosy.artifact.manifest_check import check_manifest
from argosy.artifact.plan_check import read_plan
from argosy.artifact.program_check import read_program
from argosy.artifact.zipformat import ALIGNMENT, MANIFEST, WEIGHTS, sort_key
from argosy.errors import InternalError
from argosy.ir.dtype import Array

__all__ = ["Content", "EntryOf", "Hashed", "array_bytes", "write_artifact", "write_weights"]

log = logging.getLogger("argosy.artifact")


@dataclass(frozen=True, slots=True)
class EntryOf:
    """The entry `name` of another artifact, whose content must have the digest `sha256`."""

    container: Container
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Hashed:
    """Bytes whose SHA-256 is known, because a literal keeps its own: hundreds of megabytes are hashed once."""

    content: memoryview
    sha256: str


Content: TypeAlias = bytes | memoryview | EntryOf | Hashed
"""Where the content of an entry comes from; only an entry other than a weight is ever copied in memory."""


def array_bytes(array: Array) -> memoryview:
    """The bytes of a C-contiguous array (of any dtype but object), without copying them."""
    if not array.flags.c_contiguous or array.dtype.hasobject:
        raise InternalError(f"an array of {array.dtype} with strides {array.strides} has no plain bytes")
    return array.reshape(-1).view(np.uint8).data


def write_artifact(
    target: str | os.PathLike[str] | BinaryIO, manifest: Manifest, contents: Mapping[str, Content]
) -> Manifest:
    """Write an artifact to a path (atomically) or to an empty, seekable file; returns the manifest as written.

    `contents` has every entry but the manifest. The entries of `manifest` are filled in here and its variants
    sorted, so the bytes do not depend on the order in which either is given. Raises EnvironmentError_ where the
    file can't be written, ArtifactError where the manifest and the contents do not fit. External weights that are not
    beside the file are warned of.
    """
    if not isinstance(target, (str, os.PathLike)):
        return _write(target, "artifact", manifest, contents)
    with atomic_file(target) as file:
        written = _write(file, str(target), manifest, contents)
    for name in sorted({record.path for record in written.weights.values()} - {""}):
        if not (Path(target).parent / name).is_file():
            log.warning("%s: its weights are in %r, which is not beside it: copy it there", target, name)
    return written


def _write(file: BinaryIO, where: str, manifest: Manifest, contents: Mapping[str, Content]) -> Manifest:
    writer = ContainerWriter(file)
    entries: dict[str, EntryRecord] = {}
    for name in sorted(contents, key=sort_key):
        written = _write_entry(writer, name, contents[name])
        if name.startswith(WEIGHTS) and name != f"{WEIGHTS}{written.sha256}":
            raise InternalError(f"the content of {name!r} has the hash {written.sha256}")
        entry = written.entry
        entries[name] = EntryRecord(written.sha256, entry.start, entry.size, entry.stored)
    variants = tuple(sorted(manifest.variants, key=variant_order))
    complete = msgspec.structs.replace(manifest, entries=entries, variants=variants)
    check_manifest(complete, f"{where}: {MANIFEST}")
    writer.add(MANIFEST, MANIFEST_CODEC.to_json(complete))
    writer.finish()
    return complete


def _write_entry(writer: ContainerWriter, name: str, content: Content) -> Written:
    """Write one entry. A program or plan that readers would refuse is refused here, before it is in a file."""
    if isinstance(content, EntryOf):
        if content.name != name:
            raise InternalError(f"the entry {content.name!r} can't be copied under the name {name!r}")
        return writer.copy(content.container, name, content.sha256)
    if isinstance(content, Hashed):
        return writer.add_stored(name, chunks_of(content.content), content.sha256)
    if name == PROGRAM_ENTRY:
        read_program(bytes(content), where=name)
    elif name.endswith("/plan.msgpack"):
        read_plan(bytes(content), where=name)
    return writer.add(name, content)


def write_weights(path: str | os.PathLike[str], weights: Mapping[str, bytes | memoryview]) -> dict[str, int]:
    """Write the file of external weights, atomically; returns the offset of each weight by its SHA-256.

    The contents lie one after another in the order of their hashes, each at a multiple of 4096.
    """
    offsets: dict[str, int] = {}
    with atomic_file(path) as file:
        end = 0
        for digest in sorted(weights):
            file.write(bytes(-end % ALIGNMENT))
            offsets[digest] = end = end + -end % ALIGNMENT
            for chunk in chunks_of(weights[digest]):
                file.write(chunk)
                end += len(chunk)
    return offsets
