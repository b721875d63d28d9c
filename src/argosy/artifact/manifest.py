"""The manifest: what an artifact says about itself, and where everything in it lies.

`manifest.json` is canonical JSON and the last entry of the file, so that it can name the offset, the size and
the SHA-256 of every other one.

**Versions.** The schema has a major and a minor number and names the *features* that a reader must know. Under major
0, a minor may break: only the minors from `OLDEST_MINOR` to ours are read. From major 1 on, every minor of our
major is read: fields that a newer minor added are skipped, but an unknown feature is refused by its name. So a
new kind of entry, or a new part of a variant's key, takes a feature. A manifest of our minor or an older one may hold
no unknown field. A merge refuses a newer minor, because it would lose what it skips.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal, TypeAlias

import msgspec

from argosy.artifact.program import SymbolRecord
from argosy.artifact.record import Codec, Record

__all__ = [
    "FEATURES",
    "MANIFEST_CODEC",
    "OLDEST_MINOR",
    "PROGRAM_ENTRY",
    "SCHEMA",
    "SLIM",
    "EntryRecord",
    "Manifest",
    "ModelInfo",
    "Option",
    "Producer",
    "Requirements",
    "SchemaVersion",
    "ValueInfo",
    "VariantRecord",
    "WeightRecord",
    "artifact_hash",
    "fallback_slot",
    "variant_folder",
    "variant_key",
    "variant_order",
    "weight_entry",
]

PROGRAM_ENTRY: Final = "program.msgpack"
SLIM: Final = "slim"
"""The feature of an artifact that holds prepared weights only, and no program."""
FEATURES: Final = frozenset({SLIM})
"""Every feature that this version reads."""

Option: TypeAlias = bool | int | str


class SchemaVersion(Record, frozen=True):
    """Version of everything that is written into an artifact."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


SCHEMA: Final = SchemaVersion(0, 3)
OLDEST_MINOR: Final = 1


class Producer(Record, frozen=True):
    """The program that wrote the file."""

    name: str
    version: str


class ModelInfo(Record, frozen=True):
    """The model: its name, and `model_hash` (SHA-256 over the canonical IR text and the hashes of the weights)."""

    name: str
    hash: str


class ValueInfo(Record, frozen=True):
    """An input or output: its name, its type in text form, and for a tensor of known rank its dims."""

    name: str
    type: str
    dims: tuple[int | str, ...] | None = None


class Requirements(Record, frozen=True):
    """What a machine must have beyond the arch: features by name, a driver version, bytes of device memory."""

    features: tuple[str, ...] = ()
    minimum_driver: str = ""
    memory: int = 0


class VariantRecord(Record, frozen=True):
    """Code for one kind of machine. `words` tells it to people; see `variant_key` for what identifies it.

    `products` are `name=value` of the hardware that the code was made for: a product, and numbers like `num_cu`.
    `numeric` holds the precision and every option that changes numbers, `dims` the specialised dims by symbol,
    `system` operating system and ABI where the code depends on them. A *portable* variant also runs on machines of
    other archs than its own; `fallback` marks one that a merge keeps. `options` and `provenance` are told only: the
    hash (`artifact`) and the producer of the artifact that the variant was first merged from.
    """

    key: str
    family: str
    arch: str
    words: str
    products: tuple[str, ...] = ()
    system: str = ""
    numeric: dict[str, Option] = msgspec.field(default_factory=dict)
    dims: dict[str, int] = msgspec.field(default_factory=dict)
    toolchain: dict[str, str] = msgspec.field(default_factory=dict)
    portable: bool = False
    fallback: bool = False
    requirements: Requirements = Requirements()
    options: dict[str, Option] = msgspec.field(default_factory=dict)
    provenance: dict[str, str] = msgspec.field(default_factory=dict)


class EntryRecord(Record, frozen=True):
    """An entry: SHA-256 and size of its content, where its data starts in the file and how many bytes they are."""

    sha256: str
    offset: int
    size: int
    stored: int


class WeightRecord(Record, frozen=True):
    """A weight: element type and dims (of its first use), bytes, and where its content is.

    embedded: an entry of this file · omitted: supplied when a session is made · external: in the file `path`
    (a plain name: the file lies beside the artifact, or is named when a session is made) at `offset`.
    """

    dtype: str
    dims: tuple[int, ...]
    bytes: int
    storage: Literal["embedded", "omitted", "external"]
    path: str = ""
    offset: int = 0


class Manifest(Record, frozen=True):
    """The manifest. `entries` are by name without the manifest itself, `weights` by SHA-256."""

    schema: SchemaVersion
    producer: Producer
    model: ModelInfo
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    features: tuple[str, ...] = ()
    symbols: tuple[SymbolRecord, ...] = ()
    variants: tuple[VariantRecord, ...] = ()
    weights: dict[str, WeightRecord] = msgspec.field(default_factory=dict)
    entries: dict[str, EntryRecord] = msgspec.field(default_factory=dict)
    options: dict[str, Option] = msgspec.field(default_factory=dict)


MANIFEST_CODEC: Final = Codec(Manifest)
_GENERICS: Final = "amd"
"""The family that has several portable archs, each for machines of its own."""
_CANONICAL: Final = msgspec.json.Encoder(order="sorted")


def variant_key(variant: VariantRecord) -> str:
    """SHA-256 over what makes a variant what it is; two variants of one key are duplicates.

    It covers family, arch, product numbers, OS and ABI, numeric options, specialised dims and toolchain.
    """
    identity = {
        "arch": variant.arch,
        "dims": variant.dims,
        "family": variant.family,
        "numeric": variant.numeric,
        "products": variant.products,
        "system": variant.system,
        "toolchain": variant.toolchain,
    }
    return hashlib.sha256(_CANONICAL.encode(identity)).hexdigest()


def fallback_slot(variant: VariantRecord) -> tuple[str, ...]:
    """What a portable variant is one of: an artifact has at most one fallback for each.

    AMD's generic archs run on different GPUs, so each is a slot; the portable code of every other family stands for
    all of it, on one operating system.
    """
    return (variant.family, variant.system, variant.arch if variant.family == _GENERICS else "")


def variant_order(variant: VariantRecord) -> tuple[str, str, str]:
    """The order of variants in a manifest: family, arch, key."""
    return variant.family, variant.arch, variant.key


def variant_folder(key: str) -> str:
    """The folder of a variant's entries, with the slash."""
    return f"variants/{key}/"


def weight_entry(sha256: str) -> str:
    """The entry of an embedded weight."""
    return f"weights/{sha256}"


def artifact_hash(manifest: Manifest) -> str:
    """SHA-256 over everything in the artifact but its layout: equal for files whose content is equal.

    Deflated sizes, and so offsets, may differ between two zlib implementations; contents do not.
    """
    contents = {name: EntryRecord(entry.sha256, 0, entry.size, 0) for name, entry in manifest.entries.items()}
    return hashlib.sha256(MANIFEST_CODEC.to_json(msgspec.structs.replace(manifest, entries=contents))).hexdigest()
