"""Artifacts with some of the variants of another: what `split` and `drop` write, and what a merge takes of its inputs.

Entries are copied in their stored form. The program stays, and the weights that it and the variants use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from string import Formatter
from typing import BinaryIO, Final

import msgspec

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import Content, EntryOf, write_artifact
from argosy.artifact.atomic import make_folder
from argosy.artifact.differences import variant_entries
from argosy.artifact.manifest import PROGRAM_ENTRY, SCHEMA, Manifest, VariantRecord, weight_entry
from argosy.artifact.plan import plan_refs
from argosy.artifact.program import literal_refs
from argosy.errors import ArtifactError, UsageError
from argosy.registry import did_you_mean

__all__ = [
    "check_exact",
    "drop",
    "entry_of",
    "find_variants",
    "split",
    "subset",
    "used_weights",
    "variant_contents",
]

_FIELDS: Final = ("arch", "family", "name")
"""What may stand in a pattern of file names."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def check_exact(artifact: ArtifactFile) -> None:
    """Raise ArtifactError for an artifact of a newer schema: what is written from it would lose what we do not read."""
    if not artifact.exact:
        raise ArtifactError(
            f"its schema version {artifact.manifest.schema} is newer than {SCHEMA}, so a part of it would be lost",
            where=artifact.where,
            hint="use the argosy version that wrote it",
        )


def entry_of(artifact: ArtifactFile, name: str) -> EntryOf:
    """An entry of an artifact, to be copied."""
    return EntryOf(artifact.container, name, artifact.manifest.entries[name].sha256)


def variant_contents(artifact: ArtifactFile, variant: VariantRecord) -> dict[str, Content]:
    """The entries of a variant, to be copied."""
    return {name: entry_of(artifact, name) for name in variant_entries(artifact.manifest, variant)}


def used_weights(artifact: ArtifactFile, variants: Sequence[VariantRecord]) -> set[str]:
    """SHA-256 of the weights that the program, where there is one, and the plans of these variants use."""
    used: set[str] = set()
    if PROGRAM_ENTRY in artifact.manifest.entries:
        used.update(ref.sha256 for ref in literal_refs(artifact.read_program().modules))
    for variant in variants:
        if artifact.manifest.weights.keys() <= used:
            break
        used.update(ref.sha256 for ref in plan_refs(artifact.read_plan(variant.key)))
    return used


def subset(artifact: ArtifactFile, variants: Sequence[VariantRecord]) -> tuple[Manifest, dict[str, Content]]:
    """The manifest and the contents of an artifact with `variants`, which are those of `artifact`, perhaps told anew.

    Raises ArtifactError for a damaged artifact, and for one of a newer schema.
    """
    check_exact(artifact)
    used = used_weights(artifact, variants)
    weights = {digest: record for digest, record in artifact.manifest.weights.items() if digest in used}
    embedded = [weight_entry(digest) for digest, record in weights.items() if record.storage == "embedded"]
    contents: dict[str, Content] = {name: entry_of(artifact, name) for name in embedded}
    if PROGRAM_ENTRY in artifact.manifest.entries:
        contents[PROGRAM_ENTRY] = entry_of(artifact, PROGRAM_ENTRY)
    for variant in variants:
        contents |= variant_contents(artifact, variant)
    changed = msgspec.structs.replace(artifact.manifest, schema=SCHEMA, variants=tuple(variants), weights=weights)
    return changed, contents


def find_variants(artifact: ArtifactFile, asked: str) -> tuple[VariantRecord, ...]:
    """The variants that a name means: those of an arch, the one of these words, or those whose key begins so.

    Raises UsageError where it means none.
    """
    variants = artifact.manifest.variants
    found = [v for v in variants if asked and (asked in (v.arch, v.words) or v.key.startswith(asked))]
    if found:
        return tuple(found)
    known = [name for variant in variants for name in (variant.arch, variant.key[:12])]
    hint = did_you_mean(asked, known) or (f"it has: {', '.join(known)}" if known else "it has none: ref runs it")
    raise UsageError(f"the artifact has no variant {asked!r}", where=artifact.where, hint=hint)


def drop(
    artifact: ArtifactFile, names: Sequence[str], target: str | os.PathLike[str] | BinaryIO
) -> tuple[VariantRecord, ...]:
    """Write the artifact without the variants that `names` mean to `target`; returns what was dropped.

    The program stays, and so `ref`. Raises UsageError for a name that means no variant, and where none would be left.
    """
    dropped = {variant.key: variant for name in names for variant in find_variants(artifact, name)}
    left = [variant for variant in artifact.manifest.variants if variant.key not in dropped]
    if not left:
        raise UsageError(
            "the last variant can't be dropped",
            where=artifact.where,
            hint="argosy compile --arch ref makes a file for ref",
        )
    write_artifact(target, *subset(artifact, left))
    return tuple(dropped.values())


def split(artifact: ArtifactFile, pattern: str) -> dict[Path, tuple[VariantRecord, ...]]:
    """Write an artifact for each arch, with all its variants; returns what is in each file.

    `pattern` is the path of each, with `{arch}` in it; `{family}` and `{name}`, that of the artifact's file without
    its ending, may be too. Folders are made. Nothing in the files is a fallback of a merge any more. Raises UsageError
    for a pattern that doesn't tell the archs apart, and for an artifact without variants.
    """
    _check_pattern(pattern)
    if not artifact.manifest.variants:
        raise UsageError("it holds no variant, so there is nothing to split", where=artifact.where)
    archs: dict[Path, tuple[VariantRecord, ...]] = {}
    for variant in artifact.manifest.variants:
        for text in (variant.arch, variant.family):
            if _PLAIN.fullmatch(text) is None:
                raise ArtifactError(f"{text!r} is no name for a file", where=artifact.where)
        path = Path(pattern.format(arch=variant.arch, family=variant.family, name=Path(artifact.where).stem))
        archs[path] = (*archs.get(path, ()), variant)
    for path, variants in archs.items():
        make_folder(path.parent)
        plain = [msgspec.structs.replace(variant, fallback=False) for variant in variants]
        write_artifact(path, *subset(artifact, plain))
    return archs


def _check_pattern(pattern: str) -> None:
    """Raise UsageError unless every arch gets a path of its own."""
    hint = "for example -o 'dist/{arch}.argosy'"
    try:
        fields = {field for _, field, _, _ in Formatter().parse(pattern)} - {None}
    except ValueError:
        fields = {""}
    if not fields <= set(_FIELDS):
        names = ", ".join(f"{{{name}}}" for name in _FIELDS)
        raise UsageError(f"{pattern!r} is no pattern: it may hold {names}", hint=hint)
    if "arch" not in fields:
        raise UsageError(f"{pattern!r} has no {{arch}}, so all archs would go to one file", hint=hint)
