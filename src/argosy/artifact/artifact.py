"""The artifact as people hold it: opened from a file, or just compiled and not yet saved."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from argosy import __version__
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.decode import decode_program
from argosy.artifact.manifest import (
    PROGRAM_ENTRY,
    Manifest,
    Producer,
    VariantRecord,
    WeightRecord,
    variant_folder,
    weight_entry,
)
from argosy.artifact.plan import PLAN, PlanRecord
from argosy.artifact.program import PROGRAM, LiteralRef, ProgramRecord
from argosy.artifact.weights import Supplied
from argosy.errors import ArtifactError, UsageError
from argosy.ir.dtype import dtype
from argosy.ir.literal import Literal
from argosy.ir.program import Program

if TYPE_CHECKING:
    from argosy.artifact.artifact_writer import Content
    from argosy.artifact.diff import Difference
    from argosy.artifact.joined import JoinedFiles

__all__ = ["PRODUCER", "Artifact", "CompiledVariant"]

log = logging.getLogger("argosy.artifact")

PRODUCER: Final = Producer("argosy", __version__)
Source: TypeAlias = str | os.PathLike[str] | bytes | memoryview


class CompiledVariant(msgspec.Struct, frozen=True):
    """A variant that was just compiled: its record, its plan, and its other entries by path within its folder."""

    record: VariantRecord
    plan: PlanRecord
    entries: dict[str, bytes] = {}


class Artifact:
    """A compiled model: one program, its weights once, and code for several kinds of machine.

    Get one from `argosy.compile` or `Artifact.open`; run it with `argosy.Session`. Immutable and safe to
    share between threads.
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        file: ArtifactFile | JoinedFiles | None = None,
        program: ProgramRecord | None = None,
        compiled: Sequence[CompiledVariant] = (),
        weights: Mapping[str, Literal] | None = None,
        storage: str = "embed",
    ) -> None:
        self.manifest = manifest
        self._file = file
        self._program = program
        self._compiled = {variant.record.key: variant for variant in compiled}
        self._weights = weights or {}
        self._storage = storage

    @staticmethod
    def open(source: Source, *, weights: Supplied | None = None, parts: Sequence[Source] = ()) -> Artifact:
        """Open an artifact: a path (mapped) or bytes.

        `weights` supplies weights that are not in it: a path, or a mapping from SHA-256 to array. `parts` are
        artifacts of the same program whose variants and weights come along, read where they lie. Raises
        ArtifactError for anything that is no valid artifact, and for parts of another program.
        """
        file = ArtifactFile.open(source, weights=weights)
        if not parts:
            return Artifact(file.manifest, file=file)
        from argosy.artifact.joined import JoinedFiles  # noqa: PLC0415 - most artifacts are one file

        joined = JoinedFiles([file, *map(ArtifactFile.open, parts)])
        return Artifact(joined.manifest, file=joined)

    @property
    def where(self) -> str:
        """What errors call this artifact."""
        return self._file.where if self._file else "artifact"

    @property
    def variants(self) -> tuple[VariantRecord, ...]:
        """What the artifact holds code for. `ref`, which needs no code, is not among them."""
        return self.manifest.variants

    @property
    def model_hash(self) -> str:
        """SHA-256 over the program and its weights: equal for the artifacts of one model."""
        return self.manifest.model.hash

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights, each once, saved or not."""
        if self._file is None:
            return sum(literal.nbytes for literal in self._weights.values())
        return sum(weight.bytes for weight in self.manifest.weights.values())

    @property
    def weights(self) -> Mapping[str, Literal]:
        """The weights of what was just compiled, by SHA-256; an artifact that was opened has them in its file."""
        return self._weights

    @property
    def is_slim(self) -> bool:
        """True where the artifact holds no program, so that `ref` can't run it."""
        return self._program is None and (self._file is None or PROGRAM_ENTRY not in self.manifest.entries)

    def program(self) -> Program:
        """The program as imported. Raises ArtifactError for a slim artifact."""
        if self._program is not None:
            return decode_program(self._program, self.literal, self.where)
        if self._file is None:
            raise ArtifactError("it is slim: it holds no program", where=self.where)
        return decode_program(self._file.read_program(), self.literal, self.where)

    def plan(self, key: str) -> PlanRecord:
        """The plan of the variant `key`."""
        if key in self._compiled:
            return self._compiled[key].plan
        if self._file is None:
            raise ArtifactError(f"it has no variant {key!r}", where=self.where)
        return self._file.read_plan(key)

    def entry(self, key: str, path: str) -> bytes:
        """An entry of the variant `key`: code or assembly text."""
        if key in self._compiled:
            return self._compiled[key].entries[path]
        if self._file is None:
            raise ArtifactError(f"it has no entry {path!r}", where=self.where)
        return self._file.read_entry(variant_folder(key) + path)

    def literal(self, ref: LiteralRef) -> Literal:
        """The weight that a reference names: mapped, and checked at its first use."""
        found = self._weights.get(ref.sha256)
        if found is not None:
            if found.shape == ref.dims and found.dtype.name == ref.dtype:
                return found
            # Equal bytes may serve under another type.
            return Literal.packed(dtype(ref.dtype), ref.dims, found.stored.view(np.uint8))
        if self._file is None:
            raise ArtifactError(f"it has no weight {ref.sha256}", where=self.where)
        raw = self._file.weight(ref.sha256)
        return Literal.packed(dtype(ref.dtype), ref.dims, raw)

    def save(self, path: str | os.PathLike[str], *, weights: str | None = None) -> None:
        """Write the artifact, atomically.

        `weights`: `embed` keeps them in the file; `omit` stores hashes only; anything else is the name of a
        file to write them to, beside the artifact; by default, what `compile` was told. Raises
        EnvironmentError_ where the disk refuses.
        """
        manifest, contents = self._contents(Path(path), weights or self._storage)
        from argosy.artifact.artifact_writer import write_artifact  # noqa: PLC0415 - a machine that only runs writes nothing

        write_artifact(path, manifest, contents)

    def to_bytes(self) -> bytes:
        """The file as bytes, weights embedded."""
        buffer = io.BytesIO()
        manifest, contents = self._contents(None, "embed")
        from argosy.artifact.artifact_writer import write_artifact  # noqa: PLC0415 - as in save

        write_artifact(buffer, manifest, contents)
        return buffer.getvalue()

    def merge(self, *others: Artifact, path: str | os.PathLike[str], fallbacks: Sequence[Artifact] = ()) -> Artifact:
        """Write one artifact with the variants of this and the others to `path`, and open it.

        Native variants are all kept; of portable ones, those of `fallbacks`, which hold one each, and those that
        earlier merges kept. All must hold the same program and weights; raises ArtifactError naming every difference.
        """
        from argosy.artifact.merge import merge  # noqa: PLC0415 - as in save

        files = [artifact.as_file() for artifact in (self, *others)]
        merged = merge(files, path, fallbacks=[artifact.as_file() for artifact in fallbacks], producer=PRODUCER)
        for left in merged.left_out:
            log.warning("%s of %s is left out: %s", left.variant.words, left.source, left.reason)
        return Artifact.open(path)

    def split(self, pattern: str) -> tuple[Artifact, ...]:
        """Write an artifact for each arch, to `pattern` with `{arch}` in it, and open them; see `split` there."""
        from argosy.artifact.subset import split  # noqa: PLC0415 - as in save

        return tuple(Artifact.open(path) for path in split(self.as_file(), pattern))

    def drop(self, *variants: str, path: str | os.PathLike[str]) -> Artifact:
        """Write the artifact without these variants, each named as `find_variants` says, to `path`, and open it."""
        from argosy.artifact.subset import drop  # noqa: PLC0415 - as in save

        drop(self.as_file(), variants, path)
        return Artifact.open(path)

    def diff(self, other: Artifact) -> Difference:
        """In what this and another artifact differ: programs, options, weights, variants; false where in nothing."""
        from argosy.artifact.diff import diff  # noqa: PLC0415 - running needs it never

        return diff(self.as_file(), other.as_file())

    def as_file(self) -> ArtifactFile:
        """The artifact as one open file; what was not saved as one is written to memory."""
        return self._file if isinstance(self._file, ArtifactFile) else ArtifactFile.open(self.to_bytes())

    def _contents(self, path: Path | None, weights: str) -> tuple[Manifest, dict[str, Content]]:
        from argosy.artifact.artifact_writer import EntryOf, Hashed, array_bytes  # noqa: PLC0415 - as in save

        contents: dict[str, Content] = {}
        if self._file is not None:
            for name, record in self._file.manifest.entries.items():
                contents[name] = EntryOf(self._file.container_of(name), name, record.sha256)
            if weights != self._storage:
                raise UsageError("weights can be left out only when a model is compiled")
            return self._file.manifest, contents
        if self._program is not None:
            contents[PROGRAM_ENTRY] = PROGRAM.to_msgpack(self._program)
        for key, variant in self._compiled.items():
            folder = variant_folder(key)
            contents[f"{folder}plan.msgpack"] = PLAN.to_msgpack(variant.plan)
            for name, entry in variant.entries.items():
                contents[folder + name] = entry
        records = self._weight_records(path, weights)
        if weights == "embed":
            for digest, literal in self._weights.items():
                contents[weight_entry(digest)] = Hashed(array_bytes(literal.stored), literal.digest)
        return msgspec.structs.replace(self.manifest, weights=records), contents

    def _weight_records(self, path: Path | None, weights: str) -> dict[str, WeightRecord]:
        if weights in ("embed", "omit"):
            storage = "embedded" if weights == "embed" else "omitted"
            return {
                digest: WeightRecord(literal.dtype.name, literal.shape, literal.nbytes, storage)  # type: ignore[arg-type]
                for digest, literal in self._weights.items()
            }
        name = Path(weights).name
        if path is None or name != weights:
            raise UsageError(
                f"the weights can't go to {weights!r}", hint="give a plain file name: it is written beside the artifact"
            )
        from argosy.artifact.artifact_writer import array_bytes, write_weights  # noqa: PLC0415 - as in save

        raw = {digest: array_bytes(literal.stored) for digest, literal in self._weights.items()}
        offsets = write_weights(path.parent / name, raw)
        return {
            digest: WeightRecord(literal.dtype.name, literal.shape, literal.nbytes, "external", name, offsets[digest])
            for digest, literal in self._weights.items()
        }
