"""Merges artifacts of one program into one that holds all their variants, and the program and weights once.

Artifacts merge where the model's hash, inputs, outputs, symbols, whole-file options and the weights of the program are
the same; otherwise the merge is refused and *all* differences are named. Two variants of one key are the
same variant, and must then be equal in every byte.

The result depends on the set of inputs, not on their order: what may differ between equal programs (the model's
name, names of nodes inside the program, provenance) is taken from the smallest. Entries are copied in their
stored form, chunk by chunk, each checked against its hash on the way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Final, TypeVar

import msgspec

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import Content, EntryOf, write_artifact
from argosy.artifact.manifest import (
    PROGRAM_ENTRY,
    SCHEMA,
    SLIM,
    EntryRecord,
    Manifest,
    Producer,
    VariantRecord,
    WeightRecord,
    variant_folder,
    weight_entry,
)
from argosy.artifact.program import LiteralRef, values_in
from argosy.artifact.record import Codec, Record
from argosy.errors import ArtifactError, UsageError

__all__ = ["merge"]

_SAME_PROGRAM: Final = "merge artifacts that were compiled from the same model with the same dims"
MAX_LINES: Final = 20
"""Differing weights that are named one by one; a model that was trained again differs in all of them."""
_STORAGE_RANK: Final = {"embedded": 0, "external": 1, "omitted": 2}
R = TypeVar("R", bound=Record)


def merge(
    artifacts: Sequence[ArtifactFile], target: str | os.PathLike[str] | BinaryIO, *, producer: Producer | None = None
) -> Manifest:
    """Write the merge of `artifacts` to `target` (atomically where it is a path); returns its manifest.

    `producer` names the program that merges; without it the smallest of the inputs' producers stays.
    Raises UsageError for fewer than two artifacts, ArtifactError where they do not merge, with every difference.
    """
    if len(artifacts) < 2:
        raise UsageError("a merge needs at least two artifacts")
    for artifact in artifacts:
        _check_mergeable(artifact)
    differences = [line for other in artifacts[1:] for line in _differences(artifacts[0], other)]
    variants, sources, clashes = _merge_variants(artifacts)
    if differences or clashes:
        raise _refusal("the artifacts do not merge", [*differences, *clashes], artifacts)
    contents: dict[str, Content] = {}
    for variant in variants:
        artifact = sources[variant.key]
        contents |= {name: _entry_of(artifact, name) for name in _variant_entries(artifact.manifest, variant)}
    program = min(artifacts, key=lambda artifact: artifact.manifest.entries[PROGRAM_ENTRY].sha256)
    contents[PROGRAM_ENTRY] = _entry_of(program, PROGRAM_ENTRY)
    weights = _merge_weights(artifacts)
    for digest, weight in weights.items():
        if weight.storage == "embedded":
            name = weight_entry(digest)
            contents[name] = _entry_of(next(a for a in artifacts if name in a.manifest.entries), name)
    first = artifacts[0].manifest
    return write_artifact(
        target,
        msgspec.structs.replace(
            first,
            schema=SCHEMA,
            producer=producer or min((artifact.manifest.producer for artifact in artifacts), key=_text),
            model=min((artifact.manifest.model for artifact in artifacts), key=_text),
            features=tuple(sorted({name for artifact in artifacts for name in artifact.manifest.features})),
            variants=tuple(variants),
            weights=weights,
        ),
        contents,
    )


def _entry_of(artifact: ArtifactFile, name: str) -> EntryOf:
    return EntryOf(artifact.container, name, artifact.manifest.entries[name].sha256)


def _text(record: R) -> bytes:
    """Canonical JSON of a record: an order among records that owes nothing to the order of the inputs."""
    return Codec(type(record)).to_json(record)


def _refusal(what: str, lines: Sequence[str], artifacts: Sequence[ArtifactFile]) -> ArtifactError:
    where = ", ".join(artifact.where for artifact in artifacts)
    return ArtifactError("\n".join((f"{what}:", *(f"  - {line}" for line in lines))), where=where, hint=_SAME_PROGRAM)


def _check_mergeable(artifact: ArtifactFile) -> None:
    if SLIM in artifact.manifest.features:
        raise ArtifactError("a slim artifact can't be merged", where=artifact.where, hint="compile it without --slim")
    if not artifact.exact:
        raise ArtifactError(
            f"its schema version {artifact.manifest.schema} is newer than {SCHEMA}, so a merge would lose a part of it",
            where=artifact.where,
            hint="merge with the argosy version that wrote it",
        )


def _differences(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    """What keeps two artifacts from being of one program, a line each, naming both sides."""
    a, b = left.manifest, right.manifest
    lines: list[str] = []
    if a.model.hash != b.model.hash:
        lines.append(
            f"the programs differ: {left.where} holds {a.model.name!r} ({a.model.hash[:16]}), "
            f"{right.where} holds {b.model.name!r} ({b.model.hash[:16]})"
        )
    for what, ours, theirs in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        mine, other = ({value.name: value for value in values} for values in (ours, theirs))
        for name in sorted(mine.keys() | other.keys()):
            x, y = mine.get(name), other.get(name)
            if x is None or y is None:
                lines.append(f"the {what} {name!r} is only in {(left if y is None else right).where}")
            elif x != y:
                lines.append(f"the {what} {name!r} is {x.type} in {left.where} and {y.type} in {right.where}")
        if set(mine.values()) == set(other.values()) and ours != theirs:
            lines.append(f"the {what}s are in another order in {right.where} than in {left.where}")
    bounds = [{symbol.name: (symbol.lower, symbol.upper) for symbol in m.symbols} for m in (a, b)]
    lines += _unequal("symbol", bounds[0], bounds[1], left, right)
    lines += _unequal("option", a.options, b.options, left, right)
    lines += _weight_differences(left, right)
    return lines


def _unequal(
    what: str, a: Mapping[str, object], b: Mapping[str, object], left: ArtifactFile, right: ArtifactFile
) -> list[str]:
    return [
        f"the {what} {name!r} is {a.get(name)} in {left.where} and {b.get(name)} in {right.where}"
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]


def _weight_differences(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    """Weights of the programs that differ. Hashes are compared: what is equal in hash is equal in content."""
    mine, theirs = _program_weights(left), _program_weights(right)
    digests = set(mine.values()), set(theirs.values())
    if digests[0] == digests[1]:
        return []
    changed = [
        f"the weight {name} differs between {left.where} and {right.where}"
        for name in sorted(mine.keys() & theirs.keys())
        if mine[name] != theirs[name]
    ]
    lonely = [
        f"the weight {name} is only in {artifact.where}"
        for artifact, weights, others, known in ((left, mine, theirs, digests[1]), (right, theirs, mine, digests[0]))
        for name, digest in sorted(weights.items())
        if name not in others and digest not in known
    ]
    lines = changed + lonely
    return lines[:MAX_LINES] + ([f"and {len(lines) - MAX_LINES} more weights"] if len(lines) > MAX_LINES else [])


def _program_weights(artifact: ArtifactFile) -> dict[str, str]:
    """SHA-256 of each weight that the program uses, by its name in the model, or by its hash where it has none."""
    found: dict[str, str] = {}
    for module in artifact.read_program().modules:
        for instruction in module.instructions:
            for attribute in instruction.attributes.values():
                for value in values_in(attribute):
                    if isinstance(value, LiteralRef):
                        name = next(filter(None, instruction.names), "")
                        found.setdefault(repr(name) if name else value.sha256[:16], value.sha256)
    return found


def _merge_weights(artifacts: Sequence[ArtifactFile]) -> dict[str, WeightRecord]:
    """The weights of all: embedded where one artifact embeds them, else external, else omitted."""
    merged: dict[str, WeightRecord] = {}
    for digest in sorted({digest for artifact in artifacts for digest in artifact.manifest.weights}):
        records = [a.manifest.weights[digest] for a in artifacts if digest in a.manifest.weights]
        merged[digest] = min(records, key=lambda record: (_STORAGE_RANK[record.storage], _text(record)))
    return merged


def _variant_entries(manifest: Manifest, variant: VariantRecord) -> dict[str, EntryRecord]:
    folder = variant_folder(variant.key)
    return {name: entry for name, entry in manifest.entries.items() if name.startswith(folder)}


def _merge_variants(
    artifacts: Sequence[ArtifactFile],
) -> tuple[list[VariantRecord], dict[str, ArtifactFile], list[str]]:
    """The variants of all artifacts, the artifact that each key comes from, and what clashes, a line each."""
    variants: dict[str, VariantRecord] = {}
    sources: dict[str, ArtifactFile] = {}
    clashes: list[str] = []
    for artifact in artifacts:
        for variant in artifact.manifest.variants:
            known = variants.get(variant.key)
            if known is None:
                variants[variant.key], sources[variant.key] = variant, artifact
                continue
            unequal = _variant_differences(sources[variant.key], known, artifact, variant)
            if unequal:
                both = f"{sources[variant.key].where} and {artifact.where}"
                clashes.append(f"the variant {variant.words!r} is in {both}, but differs in {', '.join(unequal)}")
            variants[variant.key] = min(known, variant, key=_text)
    return list(variants.values()), sources, clashes


def _variant_differences(
    left: ArtifactFile, known: VariantRecord, right: ArtifactFile, variant: VariantRecord
) -> list[str]:
    """Fields and entries in which two variants of one key differ; where they came from does not count."""
    fields = [
        name
        for name in VariantRecord.__struct_fields__
        if name != "provenance" and getattr(known, name) != getattr(variant, name)
    ]
    contents = [
        {name: entry.sha256 for name, entry in _variant_entries(artifact.manifest, variant).items()}
        for artifact in (left, right)
    ]
    folder = len(variant_folder(variant.key))
    names = sorted(contents[0].keys() | contents[1].keys())
    return fields + [name[folder:] for name in names if contents[0].get(name) != contents[1].get(name)]
