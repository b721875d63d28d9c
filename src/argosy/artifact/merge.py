"""Merges artifacts of one program into one that holds all their variants, and the program and weights once.

Artifacts merge where the model's hash, inputs, outputs, symbols, whole-file options and the weights of the program are
the same; otherwise the merge is refused and *all* differences are named. Native variants are all carried over; two of
one key are the same variant, and must then be equal in every byte. Portable ones are kept as `fallbacks` says.

The result depends on the set of inputs, not on their order: what may differ between equal programs (the model's
name, names of nodes inside the program, provenance) is taken from the smallest. Entries are copied in their
stored form, chunk by chunk, each checked against its hash on the way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeVar

import msgspec

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import Content, write_artifact
from argosy.artifact.differences import program_differences, variant_differences
from argosy.artifact.fallbacks import Fallbacks, Held, LeftOut, choose_fallbacks
from argosy.artifact.manifest import (
    PROGRAM_ENTRY,
    SCHEMA,
    SLIM,
    Manifest,
    Producer,
    VariantRecord,
    WeightRecord,
    artifact_hash,
    weight_entry,
)
from argosy.artifact.record import Codec, Record
from argosy.artifact.subset import check_exact, entry_of, used_weights, variant_contents
from argosy.errors import ArtifactError, UsageError

__all__ = ["Merged", "merge"]

_SAME_PROGRAM: Final = "merge artifacts that were compiled from the same model with the same dims"
_NAME_ONE: Final = "name the fallback to keep with --fallback FILE, in Python with fallbacks="
_STORAGE_RANK: Final = {"embedded": 0, "external": 1, "omitted": 2}
R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge wrote: the manifest, the files that hold each variant, by key, and what is left out."""

    manifest: Manifest
    sources: Mapping[str, tuple[str, ...]]
    left_out: tuple[LeftOut, ...]


def merge(
    inputs: Sequence[ArtifactFile],
    target: str | os.PathLike[str] | BinaryIO,
    *,
    fallbacks: Sequence[ArtifactFile] = (),
    producer: Producer | None = None,
) -> Merged:
    """Write the merge of `inputs` to `target` (atomically where it is a path).

    Each of `fallbacks` holds one portable variant, which goes before those that previous merges among the inputs pass
    on. `producer` names the program that merges; without it the smallest of the inputs' producers stays. Raises
    UsageError for no input or fewer than two artifacts, ArtifactError where they do not merge, with every difference.
    """
    artifacts = (*inputs, *fallbacks)
    if not inputs or len(artifacts) < 2:
        raise UsageError("a merge needs at least two artifacts, and one that is no fallback")
    for artifact in artifacts:
        _check_mergeable(artifact)
    chosen = choose_fallbacks(inputs, fallbacks)
    differences = [line for other in artifacts[1:] for line in program_differences(artifacts[0], other)]
    natives, clashes = _natives(inputs)
    if differences or clashes or chosen.clashes:
        _refuse(artifacts, differences, clashes, chosen)
    held = [*natives, *chosen.chosen]
    if chosen.left_out and not held:
        raise ArtifactError(
            "the merge would hold no variant: all are portable, and none is named as a fallback",
            where=", ".join(artifact.where for artifact in inputs),
            hint=_NAME_ONE,
        )
    contents: dict[str, Content] = {}
    for candidates in held:
        contents |= variant_contents(*candidates[0])
    program = min(artifacts, key=lambda artifact: artifact.manifest.entries[PROGRAM_ENTRY].sha256)
    contents[PROGRAM_ENTRY] = entry_of(program, PROGRAM_ENTRY)
    weights = _weights(artifacts, [candidates[0] for candidates in held])
    for digest, weight in weights.items():
        if weight.storage == "embedded":
            name = weight_entry(digest)
            contents[name] = entry_of(next(a for a in artifacts if name in a.manifest.entries), name)
    manifest = msgspec.structs.replace(
        artifacts[0].manifest,
        schema=SCHEMA,
        producer=producer or min((artifact.manifest.producer for artifact in artifacts), key=_text),
        model=min((artifact.manifest.model for artifact in artifacts), key=_text),
        features=tuple(sorted({name for artifact in artifacts for name in artifact.manifest.features})),
        variants=tuple(_record(candidates) for candidates in held),
        weights=weights,
    )
    sources = {each[0][1].key: tuple(dict.fromkeys(artifact.where for artifact, _ in each)) for each in held}
    return Merged(write_artifact(target, manifest, contents), sources, chosen.left_out)


def _text(record: R) -> bytes:
    """Canonical JSON of a record: an order among records that owes nothing to the order of the inputs."""
    return Codec(type(record)).to_json(record)


def _check_mergeable(artifact: ArtifactFile) -> None:
    if SLIM in artifact.manifest.features:
        raise ArtifactError("a slim artifact can't be merged", where=artifact.where, hint="compile it without --slim")
    check_exact(artifact)


def _refuse(
    artifacts: Sequence[ArtifactFile], differences: Sequence[str], clashes: Sequence[str], fallbacks: Fallbacks
) -> None:
    """Raise ArtifactError for what keeps artifacts from merging."""
    hints = (
        (differences, _SAME_PROGRAM),
        (clashes, "equal variants must have equal bytes: leave a file out, or its variant with argosy drop"),
        (fallbacks.clashes, _NAME_ONE),
    )
    lines = [f"  - {line}" for found, _ in hints for line in found]
    raise ArtifactError(
        "\n".join(("the artifacts do not merge:", *lines)),
        where=", ".join(artifact.where for artifact in artifacts),
        hint="\n".join(hint for found, hint in hints if found),
    )


def _natives(inputs: Sequence[ArtifactFile]) -> tuple[list[list[Held]], list[str]]:
    """The native variants, each by the files that hold it, and what clashes, a line each."""
    variants: dict[str, list[Held]] = {}
    clashes: list[str] = []
    for artifact in inputs:
        for variant in artifact.manifest.variants:
            if variant.portable:
                continue
            known = variants.setdefault(variant.key, [])
            known.append((artifact, variant))
            unequal = variant_differences(*known[0], artifact, variant)
            if unequal:
                both = f"{known[0][0].where} and {artifact.where}"
                clashes.append(f"the variant {variant.words!r} is in {both}, but differs in {', '.join(unequal)}")
    return list(variants.values()), clashes


def _record(held: Sequence[Held]) -> VariantRecord:
    """The record of a variant that several files may hold alike, with its provenance."""
    return min((_with_provenance(artifact, variant) for artifact, variant in held), key=_text)


def _with_provenance(artifact: ArtifactFile, variant: VariantRecord) -> VariantRecord:
    """The record, saying which artifact it was first merged from; a merge of merges keeps what they say."""
    manifest = artifact.manifest
    first = {
        "artifact": artifact_hash(manifest),
        "producer": f"{manifest.producer.name} {manifest.producer.version}",
    }
    return msgspec.structs.replace(
        variant, fallback=variant.portable, provenance=variant.provenance if "artifact" in variant.provenance else first
    )


def _weights(artifacts: Sequence[ArtifactFile], held: Sequence[Held]) -> dict[str, WeightRecord]:
    """The weights of the program and of these variants, embedded where one artifact has them so, then external."""
    wanted = {
        digest for artifact in artifacts for digest in used_weights(artifact, [v for a, v in held if a is artifact])
    }
    merged: dict[str, WeightRecord] = {}
    for digest in sorted(wanted):
        records = [a.manifest.weights[digest] for a in artifacts if digest in a.manifest.weights]
        merged[digest] = min(records, key=lambda record: (_STORAGE_RANK[record.storage], _text(record)))
    return merged
