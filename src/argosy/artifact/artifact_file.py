"""An artifact opened for reading: manifest, program, plans, code and weights, each checked when it is asked for."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from argosy.artifact.container import Container
from argosy.artifact.manifest import PROGRAM_ENTRY, SCHEMA, Manifest, VariantRecord, variant_folder
from argosy.artifact.manifest_check import MANIFEST_LIMIT, match_entries, read_manifest
from argosy.artifact.plan import PlanRecord, plan_refs
from argosy.artifact.plan_check import read_plan
from argosy.artifact.program import LiteralRef, ProgramRecord, literal_refs
from argosy.artifact.program_check import read_program
from argosy.artifact.record import refuse
from argosy.artifact.weights import Supplied, Weights
from argosy.artifact.zipformat import MANIFEST, WEIGHTS
from argosy.errors import ArtifactError
from argosy.ir.dtype import DTYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ArtifactFile"]

PROGRAM_LIMIT: Final = 256 << 20
PLAN_LIMIT: Final = 256 << 20
CODE_LIMIT: Final = 1 << 30


class ArtifactFile:
    """An open artifact. Immutable, and safe to share between threads.

    Opening reads the container and the manifest, nothing else; every other part is read and checked when asked for.
    Only ArtifactError comes out of bytes that are not a valid artifact.
    """

    def __init__(self, container: Container, *, folder: Path | None = None, weights: Supplied | None = None) -> None:
        self.container = container
        self.manifest: Manifest = read_manifest(container.read(MANIFEST, MANIFEST_LIMIT), where=container.where)
        match_entries(self.manifest, container)
        self._weights = Weights(container, self.manifest, folder=folder, supplied=weights)

    @staticmethod
    def open(
        source: str | os.PathLike[str] | bytes | memoryview, *, weights: Supplied | None = None, where: str = "artifact"
    ) -> ArtifactFile:
        """Open the artifact at a path (mapped), or in memory (`where` names it in errors).

        `weights` supplies weights that are not in the file: the path of a file of external weights or of an artifact
        that holds them, or a mapping from SHA-256 to arrays. External weights beside the artifact are found.
        """
        if isinstance(source, (bytes, memoryview)):
            return ArtifactFile(Container(source, where=where), weights=weights)
        return ArtifactFile(Container.open(source), folder=Path(source).parent, weights=weights)

    @property
    def where(self) -> str:
        """What errors call this artifact: its path."""
        return self.container.where

    @property
    def exact(self) -> bool:
        """True unless a newer minor of the schema wrote the file, whose unknown fields are skipped."""
        return self.manifest.schema.minor <= SCHEMA.minor

    def container_of(self, name: str) -> Container:
        """The file that the entry `name` is read from: this one."""
        return self.container

    def variant(self, key: str) -> VariantRecord:
        """The variant with that key."""
        for variant in self.manifest.variants:
            if variant.key == key:
                return variant
        raise ArtifactError(f"it has no variant {key!r}", where=self.where)

    def read_entry(self, name: str, limit: int = CODE_LIMIT) -> bytes:
        """The content of an entry (code, assembly text), checked against its SHA-256 and copied out of the mapping."""
        record = self.manifest.entries.get(name)
        if record is None:
            raise ArtifactError(f"it has no entry {name!r}", where=self.where)
        content = self.container.read(name, limit)
        if hashlib.sha256(content).hexdigest() != record.sha256:
            raise refuse(self.where, f"the entry {name!r} is damaged: its content does not match its hash")
        return content

    def read_program(self) -> ProgramRecord:
        """The program as imported, valid and with all its weights in the manifest."""
        if PROGRAM_ENTRY not in self.manifest.entries:
            raise ArtifactError(
                "it is slim: it holds no program",
                where=self.where,
                hint="use the artifact without --slim, or the model",
            )
        where = f"{self.where}: {PROGRAM_ENTRY}"
        program = read_program(self.read_entry(PROGRAM_ENTRY, PROGRAM_LIMIT), where=where, exact=self.exact)
        self._check_refs(literal_refs(program.modules), where)
        return program

    def read_plan(self, key: str) -> PlanRecord:
        """The plan of the variant `key`, valid and with all its weights and code in the manifest."""
        folder = variant_folder(self.variant(key).key)
        where = f"{self.where}: {folder}plan.msgpack"
        plan = read_plan(self.read_entry(f"{folder}plan.msgpack", PLAN_LIMIT), where=where, exact=self.exact)
        self._check_refs(plan_refs(plan), where)
        for code in plan.code:
            for path in (code.path, code.assembly):
                if path and folder + path not in self.manifest.entries:
                    raise refuse(where, f"the entry {folder + path!r} is missing")
        return plan

    def _check_refs(self, refs: Iterable[LiteralRef], where: str) -> None:
        for ref in refs:
            weight = self.manifest.weights.get(ref.sha256)
            if weight is None:
                raise refuse(where, f"it uses the weight {ref.sha256}, which the manifest does not name")
            dtype = DTYPES[ref.dtype]
            if dtype.kind != "string" and dtype.byte_size(math.prod(ref.dims)) != weight.bytes:
                raise refuse(where, f"the weight {ref.sha256} has not the bytes of {ref.dtype}{list(ref.dims)}")

    def weight(self, sha256: str) -> NDArray[np.uint8]:
        """The stored bytes of a weight: read-only, mapped, checked at the first use."""
        return self._weights.get(sha256)

    def verify(self) -> None:
        """Check every byte of the file, and every weight that is embedded, now."""
        for name in self.manifest.entries:
            if not name.startswith(WEIGHTS):
                self.read_entry(name)
        if PROGRAM_ENTRY in self.manifest.entries:
            self.read_program()
        for variant in self.manifest.variants:
            self.read_plan(variant.key)
        for digest, weight in self.manifest.weights.items():
            if weight.storage == "embedded":
                self.weight(digest)
