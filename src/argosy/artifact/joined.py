"""Several artifact files of one program, opened together: each holds some of the variants, or some of the weights.

Nothing is copied or written: every part of the whole is read from the file that holds it. This is how the wheels of a
model come together where they are installed (`argosy.packaging`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.container import Container
from argosy.artifact.manifest import SLIM, Manifest, VariantRecord, variant_folder, variant_order
from argosy.artifact.plan import PlanRecord
from argosy.artifact.program import ProgramRecord
from argosy.errors import ArtifactError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["JoinedFiles"]

_SAME: Final = "open files together that were made from one artifact"


class JoinedFiles:
    """Open artifacts of one program as one. Immutable, and safe to share between threads.

    The first is the one that errors name, and whose program is read. Raises ArtifactError, naming the files, where two
    are not of one program, or hold different code under one key.
    """

    def __init__(self, files: Sequence[ArtifactFile]) -> None:
        self._files = tuple(files)
        first = self._files[0]
        for file in self._files:
            _check_same(first, file)
        variants: dict[str, VariantRecord] = {}
        self._sources: dict[str, ArtifactFile] = {}
        for file in self._files:
            for variant in file.manifest.variants:
                known = self._sources.setdefault(variant.key, file)
                if known is not file and _contents(known, variant) != _contents(file, variant):
                    raise ArtifactError(
                        f"{known.where} and {file.where} hold different code for {variant.words!r}", hint=_SAME
                    )
                variants.setdefault(variant.key, variant)
        self._weights = {
            digest: file
            for file in reversed(self._files)
            for digest, record in file.manifest.weights.items()
            if record.storage == "embedded"
        }
        weights = {digest: weight for file in self._files for digest, weight in file.manifest.weights.items()}
        weights |= {digest: file.manifest.weights[digest] for digest, file in self._weights.items()}
        self._entries = {name: file for file in reversed(self._files) for name in file.manifest.entries}
        self.manifest: Manifest = msgspec.structs.replace(
            first.manifest,
            variants=tuple(sorted(variants.values(), key=variant_order)),
            weights=weights,
            entries={name: file.manifest.entries[name] for name, file in self._entries.items()},
        )

    @property
    def where(self) -> str:
        """What errors call the whole: the path of the first file."""
        return self._files[0].where

    def container_of(self, name: str) -> Container:
        """The file that the entry `name` is read from."""
        return self._entries[name].container

    def read_program(self) -> ProgramRecord:
        """The program as imported, as the first file has it."""
        return self._files[0].read_program()

    def read_plan(self, key: str) -> PlanRecord:
        """The plan of the variant `key`, valid and with all its weights and code in the manifest of its file."""
        return self._source(key).read_plan(key)

    def read_entry(self, name: str) -> bytes:
        """The content of an entry, checked against its SHA-256 and copied out of the mapping."""
        return self._entries.get(name, self._files[0]).read_entry(name)

    def weight(self, sha256: str) -> NDArray[np.uint8]:
        """The stored bytes of a weight: read-only, mapped, checked at the first use."""
        return self._weights.get(sha256, self._files[0]).weight(sha256)

    def _source(self, key: str) -> ArtifactFile:
        return self._sources.get(key, self._files[0])


def _check_same(first: ArtifactFile, other: ArtifactFile) -> None:
    """Refuse a file that is not of the program of the first: equal hashes cover the program and its weights."""
    a, b = first.manifest, other.manifest
    if SLIM in b.features:
        raise ArtifactError("a slim artifact can't be opened with others", where=other.where, hint=_SAME)
    if a.model.hash != b.model.hash:
        raise ArtifactError(
            f"it is of another program than {first.where}: {b.model.name!r} ({b.model.hash[:16]}), "
            f"not {a.model.name!r} ({a.model.hash[:16]})",
            where=other.where,
            hint=_SAME,
        )
    if (a.inputs, a.outputs, a.symbols, a.options) != (b.inputs, b.outputs, b.symbols, b.options):
        raise ArtifactError(
            f"its inputs, outputs, dims or options are not those of {first.where}", where=other.where, hint=_SAME
        )


def _contents(file: ArtifactFile, variant: VariantRecord) -> dict[str, str]:
    """The hashes of a variant's entries by name."""
    folder = variant_folder(variant.key)
    return {name: entry.sha256 for name, entry in file.manifest.entries.items() if name.startswith(folder)}
