"""Writes a part of an artifact as an artifact of its own: some of its variants, some of its weights.

A part holds the whole program, which is small beside code and weights, and names every weight that it uses; those that
it does not embed are supplied by other parts (`joined`) or by the caller.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import BinaryIO

import msgspec

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import Content, EntryOf, Hashed, array_bytes, write_artifact
from argosy.artifact.manifest import PROGRAM_ENTRY, Manifest, WeightRecord, variant_folder, weight_entry
from argosy.artifact.plan import plan_refs
from argosy.artifact.program import literal_refs

__all__ = ["plan_weights", "program_weights", "write_part"]


def program_weights(file: ArtifactFile) -> frozenset[str]:
    """SHA-256 of every weight that the program uses. Raises ArtifactError for a slim artifact."""
    return frozenset(ref.sha256 for ref in literal_refs(file.read_program().modules))


def plan_weights(file: ArtifactFile, keys: Collection[str]) -> frozenset[str]:
    """SHA-256 of every weight that the plans of these variants use."""
    return frozenset(ref.sha256 for key in keys for ref in plan_refs(file.read_plan(key)))


def write_part(
    file: ArtifactFile,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    variants: Collection[str],
    weights: Collection[str],
) -> Manifest:
    """Write the program of `file` with the variants of these keys and the weights of these hashes to `target`.

    Weights that program or plans use besides are named in it as omitted. Raises ArtifactError for a slim artifact, and
    where a weight is neither in `file` nor beside it.
    """
    needed = program_weights(file) | plan_weights(file, variants) | set(weights)
    records = {digest: _record(file, digest, embed=digest in weights) for digest in sorted(needed)}
    names = [PROGRAM_ENTRY]
    names += [name for key in variants for name in file.manifest.entries if name.startswith(variant_folder(key))]
    contents: dict[str, Content] = {name: _entry_of(file, name) for name in names}
    contents |= {weight_entry(digest): _weight(file, digest) for digest in weights}
    chosen = tuple(variant for variant in file.manifest.variants if variant.key in variants)
    return write_artifact(target, msgspec.structs.replace(file.manifest, variants=chosen, weights=records), contents)


def _entry_of(file: ArtifactFile, name: str) -> EntryOf:
    return EntryOf(file.container, name, file.manifest.entries[name].sha256)


def _weight(file: ArtifactFile, digest: str) -> Content:
    """The content of a weight: copied from the file, or from where it lies outside."""
    if file.manifest.weights[digest].storage == "embedded":
        return _entry_of(file, weight_entry(digest))
    return Hashed(array_bytes(file.weight(digest)), digest)


def _record(file: ArtifactFile, digest: str, *, embed: bool) -> WeightRecord:
    record = file.manifest.weights[digest]
    return msgspec.structs.replace(record, storage="embedded" if embed else "omitted", path="", offset=0)
