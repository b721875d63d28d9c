"""Which manifests are valid, by themselves and against the container that holds them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from argosy.artifact.container import Container
from argosy.artifact.manifest import (
    FEATURES,
    MANIFEST_CODEC,
    OLDEST_MINOR,
    PROGRAM_ENTRY,
    SCHEMA,
    SLIM,
    EntryRecord,
    Manifest,
    SchemaVersion,
    ValueInfo,
    VariantRecord,
    WeightRecord,
    fallback_slot,
    variant_folder,
    variant_key,
    variant_order,
    weight_entry,
)
from argosy.artifact.program_check import check_symbols
from argosy.artifact.record import Record, check_dims, check_dtype, check_hash, check_mapping, check_text, refuse
from argosy.artifact.zipformat import ALIGNMENT, MANIFEST, name_fault
from argosy.errors import ArtifactError
from argosy.ir.dtype import DTYPES

__all__ = ["MANIFEST_LIMIT", "check_manifest", "match_entries", "read_manifest"]

MANIFEST_LIMIT: Final = 64 << 20
MAX_VARIANTS: Final = 4096
_IN_VARIANT: Final = re.compile(r"plan\.msgpack|(?:code|asm)/[^/]+", re.ASCII)
_UPGRADE: Final = "read it with the argosy version that wrote it, or a newer one"


class _Head(Record, frozen=True):
    """The part of a manifest that every version writes alike."""

    schema: SchemaVersion
    features: tuple[str, ...] = ()


def read_manifest(raw: bytes, *, where: str) -> Manifest:
    """The valid manifest in `raw`; raises ArtifactError naming the spot where it is not valid.

    `where` is the artifact. Version and features are looked at first, because they decide about the rest.
    """
    spot = f"{where}: {MANIFEST}"
    try:
        head = msgspec.json.decode(raw, type=_Head)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise refuse(spot, f"it is damaged: {error}") from error
    newer = _check_version(head.schema, where)
    unknown = sorted(set(head.features) - FEATURES)
    if unknown:
        names = ", ".join(repr(name[:80]) for name in unknown[:10])
        raise ArtifactError(f"it uses features that this version does not know: {names}", where=where, hint=_UPGRADE)
    manifest = MANIFEST_CODEC.from_json(raw, where=spot, exact=not newer)
    check_manifest(manifest, spot)
    return manifest


def _check_version(found: SchemaVersion, where: str) -> bool:
    """Refuse schema versions that this version can't read; True where the file's minor is newer than ours."""
    newer = found.minor > SCHEMA.minor
    readable = found.major == SCHEMA.major and found.minor >= OLDEST_MINOR and (SCHEMA.major > 0 or not newer)
    if not readable:
        hint = _UPGRADE if (found.major, found.minor) > (SCHEMA.major, SCHEMA.minor) else "compile the model again"
        raise ArtifactError(f"its schema version is {found}, this version reads {SCHEMA}", where=where, hint=hint)
    return newer


def check_manifest(manifest: Manifest, where: str) -> None:
    """Raise ArtifactError, naming the spot, unless the manifest is valid by itself."""
    check_text(manifest.producer.name, where, "the producer")
    check_text(manifest.producer.version, where, "the producer's version")
    check_text(manifest.model.name, where, "the model's name", empty=True)
    check_hash(manifest.model.hash, f"{where}: model hash")
    if list(manifest.features) != sorted(set(manifest.features)):
        raise refuse(where, "its features are not sorted, or one is named twice")
    _check_values(manifest.inputs, "input", where)
    _check_values(manifest.outputs, "output", where)
    check_symbols(manifest.symbols, where)
    check_mapping(manifest.options, f"{where}: options")
    for digest, weight in manifest.weights.items():
        _check_weight(digest, weight, f"{where}: weight {digest[:64]!r}")
    for name, entry in manifest.entries.items():
        _check_entry(name, entry, f"{where}: entry {name[:80]!r}")
    if len(manifest.variants) > MAX_VARIANTS:
        raise refuse(where, f"{len(manifest.variants)} variants; at most {MAX_VARIANTS} are accepted")
    for number, variant in enumerate(manifest.variants):
        _check_variant(variant, manifest, f"{where}: variant {number}")
    _check_fallbacks(manifest.variants, where)
    orders = [variant_order(variant) for variant in manifest.variants]
    if orders != sorted(set(orders)):
        raise refuse(where, "its variants are not sorted, or two have the same key")
    _check_named(manifest, where)


def _check_values(values: Sequence[ValueInfo], what: str, where: str) -> None:
    seen: set[str] = set()
    for number, value in enumerate(values):
        spot = f"{where}: {what} {number}"
        check_text(value.name, spot, "its name")
        check_text(value.type, spot, "its type")
        check_dims(value.dims or (), spot)
        if value.name in seen:
            raise refuse(spot, f"another {what} is called {value.name[:80]!r}")
        seen.add(value.name)


def _check_weight(digest: str, weight: WeightRecord, spot: str) -> None:
    check_hash(digest, spot)
    check_dtype(weight.dtype, spot)
    check_dims(weight.dims, spot)
    dtype = DTYPES[weight.dtype]
    if not 0 <= weight.bytes < 1 << 62:
        raise refuse(spot, f"it has {weight.bytes} bytes")
    if dtype.kind != "string" and weight.bytes != dtype.byte_size(math.prod(weight.dims)):
        raise refuse(spot, f"it has {weight.bytes} bytes, which is not what its type and dims take")
    if weight.storage == "external":
        if "/" in weight.path or name_fault(weight.path):
            raise refuse(spot, f"{weight.path[:80]!r} is not a plain file name")
        if not 0 <= weight.offset < 1 << 62 or weight.offset % ALIGNMENT:
            raise refuse(spot, f"its offset is {weight.offset}, not a multiple of {ALIGNMENT}")
    elif weight.path or weight.offset:
        raise refuse(spot, f"it is {weight.storage} but names a file or an offset")


def _check_entry(name: str, entry: EntryRecord, spot: str) -> None:
    fault = name_fault(name)
    if fault:
        raise refuse(spot, f"its name is not allowed: {fault}")
    check_hash(entry.sha256, spot)
    if min(entry.offset, entry.size, entry.stored) < 0:
        raise refuse(spot, "a negative size or offset")


def _check_variant(variant: VariantRecord, manifest: Manifest, spot: str) -> None:
    check_hash(variant.key, spot)
    for text, what in ((variant.family, "family"), (variant.arch, "arch"), (variant.words, "description")):
        check_text(text, spot, f"its {what}")
    check_text(variant.system, spot, "its system", empty=True)
    for text in (*variant.products, *variant.requirements.features):
        check_text(text, spot, "a product or feature")
    check_text(variant.requirements.minimum_driver, spot, "its minimum driver", empty=True)
    for values in (variant.numeric, variant.toolchain, variant.options, variant.provenance, variant.dims):
        check_mapping(values, spot)
    if any(not 0 <= value < 1 << 63 for value in (*variant.dims.values(), variant.requirements.memory)):
        raise refuse(spot, "a dim or size is out of range")
    if variant.key != variant_key(variant):
        raise refuse(spot, "its key does not match what it covers")
    if f"{variant_folder(variant.key)}plan.msgpack" not in manifest.entries:
        raise refuse(spot, "it has no plan")


def _check_fallbacks(variants: Sequence[VariantRecord], where: str) -> None:
    known: dict[tuple[str, ...], VariantRecord] = {}
    for variant in variants:
        if not variant.fallback:
            continue
        if not variant.portable:
            raise refuse(where, f"the fallback {variant.words[:80]!r} is not portable")
        other = known.setdefault(fallback_slot(variant), variant)
        if other is not variant:
            raise refuse(where, f"{other.words[:80]!r} and {variant.words[:80]!r} are fallbacks for the same machines")


def _check_named(manifest: Manifest, where: str) -> None:
    """Every entry has a place in the artifact, and everything that must be there is."""
    slim = SLIM in manifest.features
    if (PROGRAM_ENTRY in manifest.entries) == slim:
        raise refuse(where, "a slim artifact holds a program" if slim else f"the entry {PROGRAM_ENTRY!r} is missing")
    embedded = {weight_entry(digest): digest for digest, w in manifest.weights.items() if w.storage == "embedded"}
    for name, digest in embedded.items():
        entry = manifest.entries.get(name)
        if entry is None:
            raise refuse(where, f"the weight {digest} is embedded, but its entry is missing")
        if entry.sha256 != digest or entry.size != manifest.weights[digest].bytes:
            raise refuse(where, f"the weight {digest} and its entry differ in hash or size")
    folders = {variant_folder(variant.key) for variant in manifest.variants}
    for name in manifest.entries:
        folder = name[: name.find("/", len("variants/")) + 1]
        known = name == PROGRAM_ENTRY or name in embedded
        if not known and not (folder in folders and _IN_VARIANT.fullmatch(name[len(folder) :])):
            raise refuse(where, f"the entry {name!r} belongs to no variant and is no weight")


def match_entries(manifest: Manifest, container: Container) -> None:
    """Refuse a manifest and a container that do not name the same entries with the same places and sizes."""
    where = container.where
    for name in container.entries:
        if name != MANIFEST and name not in manifest.entries:
            raise refuse(where, f"the file holds the entry {name!r}, which the manifest does not name")
    for name, record in manifest.entries.items():
        entry = container.entries.get(name)
        if entry is None:
            raise refuse(where, f"the manifest names the entry {name!r}, which the file does not hold")
        if (record.offset, record.size, record.stored) != (entry.start, entry.size, entry.stored):
            raise refuse(where, f"the manifest and the file differ on where the entry {name!r} lies")
