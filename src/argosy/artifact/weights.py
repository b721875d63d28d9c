"""The weights of an open artifact: mapped, never copied, each checked against its SHA-256 at its first use."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from argosy.artifact.container import Container, map_file
from argosy.artifact.manifest import Manifest, WeightRecord, weight_entry
from argosy.artifact.zipformat import LOCAL_SIGNATURE
from argosy.errors import ArtifactError
from argosy.ir.dtype import Array
from argosy.ir.literal import Literal

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Supplied", "Weights"]

Supplied: TypeAlias = "str | os.PathLike[str] | Mapping[str, Array | bytes | memoryview]"
"""Weights from outside: a file (of external weights, or an artifact that has them), or content by SHA-256."""

_SUPPLY = "give them with --weights FILE, or Session(weights=...): a file or a mapping from SHA-256 to array"


class Weights:
    """Hands out the content of weights by SHA-256. Threads may share it: each weight is checked once.

    What is supplied from outside goes before what the artifact names, and must have the same hashes.
    """

    def __init__(
        self, container: Container, manifest: Manifest, *, folder: Path | None, supplied: Supplied | None
    ) -> None:
        self._container = container
        self._manifest = manifest
        self._folder = folder
        self._mapping: Mapping[str, Array | bytes | memoryview] = {}
        self._file: memoryview | None = None
        self._file_name = ""
        self._donor: Container | None = None
        if isinstance(supplied, Mapping):
            self._mapping = supplied
        elif supplied is not None:
            self._file_name = str(supplied)
            self._file = map_file(supplied)
            if bytes(self._file[:4]) == LOCAL_SIGNATURE:
                self._donor = Container(self._file, where=self._file_name)
        self._checked: dict[str, NDArray[np.uint8]] = {}
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}

    def get(self, digest: str) -> NDArray[np.uint8]:
        """The stored bytes of a weight, read-only. Raises ArtifactError where they are missing or damaged."""
        found = self._checked.get(digest)
        if found is not None:
            return found
        with self._lock:
            lock = self._locks.setdefault(digest, Lock())
        with lock:  # one thread hashes, others that want the same weight wait; other weights do not
            found = self._checked.get(digest)
            if found is None:
                found = self._checked[digest] = self._check(digest)
        return found

    def _check(self, digest: str) -> NDArray[np.uint8]:
        record = self._manifest.weights.get(digest)
        if record is None:
            raise ArtifactError(f"the artifact has no weight {digest}", where=self._container.where)
        data, origin = self._find(digest, record)
        words = f"the weight {digest} ({record.dtype}{list(record.dims)})"
        if data is None:
            raise ArtifactError(
                f"{words} is {record.storage} and not in {origin}", where=self._container.where, hint=_SUPPLY
            )
        if len(data) != record.bytes:
            raise ArtifactError(f"{words} has {len(data)} bytes instead of {record.bytes}", where=origin)
        if hashlib.sha256(data).hexdigest() != digest:
            raise ArtifactError(f"{words} is damaged: its content does not match its hash", where=origin)
        array = np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)
        array.flags.writeable = False
        return array

    def _find(self, digest: str, record: WeightRecord) -> tuple[memoryview | None, str]:
        """The unchecked bytes of a weight, None where they are missing, and where they come from (or were sought)."""
        if digest in self._mapping:
            return _plain_bytes(self._mapping[digest]), "the weights supplied"
        name = weight_entry(digest)
        if self._donor is not None and name in self._donor.entries:
            return self._donor.stored_bytes(self._donor.entries[name]), self._file_name
        if record.storage == "embedded":
            return self._container.stored_bytes(self._container.entries[name]), self._container.where
        if record.storage == "omitted":
            return None, self._file_name or "the weights supplied"
        file = self._external(record.path)
        if file is None:
            return None, f"{record.path!r} beside the artifact" if self._folder else "the weights supplied"
        return file[record.offset : record.offset + record.bytes], self._file_name

    def _external(self, name: str) -> memoryview | None:
        """The file of external weights: the one supplied, else the one called `name` beside the artifact."""
        with self._lock:
            if self._file is None and self._folder is not None and (self._folder / name).is_file():
                self._file_name = str(self._folder / name)
                self._file = map_file(self._folder / name)
            return None if self._donor is not None else self._file


def _plain_bytes(content: Array | bytes | memoryview) -> memoryview:
    """The bytes of `content` as they are stored (sub-byte types packed); copies only what is not contiguous."""
    if isinstance(content, np.ndarray):
        content = Literal.of(content).stored.view(np.uint8).data
    view = memoryview(content)
    return (view if view.format == "B" and view.ndim == 1 else view.cast("B")).toreadonly()
