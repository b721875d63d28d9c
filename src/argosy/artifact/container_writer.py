"""Writes an artifact's container in the ZIP64 form that `zipformat` defines: streaming, reproducible.

A weight goes from its view to the file in chunks and is never copied whole; the SHA-256 of every entry is
computed on the way. The bytes depend on the entries alone: no clock, no path, no user. (Deflated bytes
are zlib's: another implementation, such as zlib-ng, may pack the same content otherwise.)
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from msgspec.structs import replace

from argosy.artifact import zipformat
from argosy.artifact.container import Container
from argosy.artifact.zipformat import Entry
from argosy.errors import ArtifactError, InternalError

__all__ = ["CHUNK", "ContainerWriter", "Written", "chunks_of"]

CHUNK = 1 << 18
"""Bytes that are hashed, summed and written at a time: they stay in the processor's cache meanwhile."""
_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Written:
    """An entry that was written, and the SHA-256 of its content in hex digits."""

    entry: Entry
    sha256: str


def chunks_of(data: bytes | memoryview) -> Iterator[memoryview]:
    """Views of `data`, at most CHUNK bytes each."""
    view = memoryview(data)
    view = view if view.format == "B" and view.ndim == 1 else view.cast("B")
    for start in range(0, len(view), CHUNK):
        yield view[start : start + CHUNK]


class ContainerWriter:
    """Writes entries, in ascending order of their names with the manifest last, then `finish`.

    `file` must be empty, writable and seekable. OSErrors pass through: `atomic_file` says what they mean.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._entries: list[Entry] = []
        self._folded: set[str] = set()
        self._position = 0

    def add(self, name: str, content: bytes | memoryview) -> Written:
        """Write an entry from memory: deflated, or stored where it packs so well that it would look like a bomb."""
        if name.startswith(zipformat.WEIGHTS):
            return self.add_stored(name, chunks_of(content))
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        # Entries other than weights are held in memory anyway, and deflating makes them smaller.
        packed = [packer.compress(chunk) for chunk in chunks_of(content)]
        packed.append(packer.flush())
        size, stored = memoryview(content).nbytes, sum(map(len, packed))
        if not zipformat.ratio_allowed(size, stored):
            return self.add_stored(name, chunks_of(content))
        entry = self._begin(name, zipformat.DEFLATED)
        self._file.writelines(packed)
        digest, crc = _digest(chunks_of(content))
        return self._end(replace(entry, crc=crc, size=size, stored=stored), digest)

    def add_stored(self, name: str, chunks: Iterable[bytes | memoryview], sha256: str = "") -> Written:
        """Write an entry as it comes, chunk by chunk, uncompressed. It is not hashed where its `sha256` is given."""
        entry = self._begin(name, zipformat.STORED)
        state, crc, size = hashlib.sha256(), 0, 0
        for chunk in chunks:
            if not sha256:
                state.update(chunk)
            crc = zlib.crc32(chunk, crc)
            size += len(chunk)
            self._file.write(chunk)
        return self._end(replace(entry, crc=crc, size=size, stored=size), sha256 or state.hexdigest())

    def copy(self, container: Container, name: str, sha256: str) -> Written:
        """Write the entry `name` of another artifact, its stored bytes as they are, after checking its content.

        Raises ArtifactError where the content does not have the digest `sha256`.
        """
        source = container.entries[name]
        if source.method == zipformat.STORED:
            written = self.add_stored(name, container.stored_chunks(source, CHUNK))
        else:
            digest, crc = _digest(chunks_of(container.read(name, source.size)))
            entry = self._begin(name, source.method)
            for chunk in container.stored_chunks(source, CHUNK):
                self._file.write(chunk)
            written = self._end(replace(entry, crc=crc, size=source.size, stored=source.stored), digest)
        if written.sha256 != sha256:
            raise ArtifactError(
                f"the entry {name!r} is damaged: its content does not match its hash",
                where=container.where,
                hint="copy or compile it again",
            )
        return written

    def finish(self) -> None:
        """Write the central directory and the end records."""
        directory = b"".join(map(zipformat.central_record, self._entries))
        self._file.write(directory)
        self._file.write(zipformat.end_records(len(self._entries), self._position, len(directory)))

    def _begin(self, name: str, method: int) -> Entry:
        fault = zipformat.name_fault(name)
        if not fault and name.lower() in self._folded:
            fault = "another entry has the same name"
        if not fault and self._entries and zipformat.sort_key(name) < zipformat.sort_key(self._entries[-1].name):
            fault = f"it must come before {self._entries[-1].name!r}"
        if not fault and len(self._entries) >= zipformat.MAX_ENTRIES:
            fault = f"an artifact has at most {zipformat.MAX_ENTRIES} entries"
        if fault:
            raise InternalError(f"the entry {name!r} can't be written: {fault}")
        entry = Entry(name, method, 0, 0, 0, self._position)
        self._file.write(bytes(entry.start - entry.offset))  # the header's place; its content is known at the end
        return entry

    def _end(self, entry: Entry, sha256: str) -> Written:
        self._file.seek(entry.offset)
        self._file.write(zipformat.local_header(entry))
        self._file.seek(entry.end)
        self._entries.append(entry)
        self._folded.add(entry.name.lower())
        self._position = entry.end
        return Written(entry, sha256)


def _digest(chunks: Iterable[memoryview]) -> tuple[str, int]:
    """SHA-256 in hex digits and CRC-32 of the content in `chunks`."""
    state, crc = hashlib.sha256(), 0
    for chunk in chunks:
        state.update(chunk)
        crc = zlib.crc32(chunk, crc)
    return state.hexdigest(), crc
