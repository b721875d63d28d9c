"""Writes a part of an artifact as an artifact of its own: some of its variants, some of its weights.

A part holds the whole program, which is small beside code and weights, and names every weight that it uses; those that
it does not embed are supplied by other parts (`joined`) or by the caller.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import BinaryIO

import msgspec

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import Content, Hashed, array_bytes, write_artifact
from argosy.artifact.manifest import PROGRAM_ENTRY, SCHEMA, Manifest, VariantRecord, WeightRecord, weight_entry
from argosy.artifact.subset import check_exact, entry_of, used_weights, variant_contents

__all__ = ["write_part"]


def write_part(
    artifact: ArtifactFile,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    variants: Sequence[VariantRecord],
    weights: Collection[str],
) -> Manifest:
    """Write the program of an artifact with these variants of it and the weights of these hashes to `target`.

    Weights that program or plans use besides are named in it as omitted. Raises ArtifactError for a slim artifact or a
    newer schema, and where a weight is neither in the artifact nor beside it.
    """
    check_exact(artifact)
    contents: dict[str, Content] = {PROGRAM_ENTRY: entry_of(artifact, PROGRAM_ENTRY)}
    for variant in variants:
        contents |= variant_contents(artifact, variant)
    contents |= {weight_entry(digest): _weight(artifact, digest) for digest in weights}
    needed = used_weights(artifact, variants) | set(weights)
    records = {digest: _record(artifact, digest, embed=digest in weights) for digest in sorted(needed)}
    manifest = msgspec.structs.replace(artifact.manifest, schema=SCHEMA, variants=tuple(variants), weights=records)
    return write_artifact(target, manifest, contents)


def _weight(artifact: ArtifactFile, digest: str) -> Content:
    """The content of a weight: copied from the artifact, or from where it lies outside."""
    if artifact.manifest.weights[digest].storage == "embedded":
        return entry_of(artifact, weight_entry(digest))
    return Hashed(array_bytes(artifact.weight(digest)), digest)


def _record(artifact: ArtifactFile, digest: str, *, embed: bool) -> WeightRecord:
    record = artifact.manifest.weights[digest]
    return msgspec.structs.replace(record, storage="embedded" if embed else "omitted", path="", offset=0)
