"""Reads an artifact's container: a strict parser of the ZIP64 form that `zipformat` defines.

The standard `zipfile` is lenient (prefixes, gaps, two headers that disagree, claims that it allocates for),
so two readers could see two different files. Here a file is either exactly what our writer makes of its
entries, or refused with an `ArtifactError` that says what is wrong with it. Nothing is allocated on the
strength of a number in the file: sizes are compared with the bytes at hand first, and inflating stops at the
declared size, which is bounded by the stored size.

The file is mapped, not read. A file that is cut short *while* it is mapped kills the process that touches
the missing page (SIGBUS), as with every mapped file: replace artifacts by renaming, as `atomic` does.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from argosy.artifact import foreign, zipformat
from argosy.artifact.zipformat import Entry
from argosy.errors import ArtifactError, EnvironmentError_, UsageError

__all__ = ["Container", "map_file"]

_REPACKED: Final = "use the file as argosy wrote it: repacking loses the alignment of the weights"

_RELEASE: Final = 16 << 20
"""Bytes of a mapping that are given back at a time."""


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file, read-only and mapped; the mapping ends with the last view of it.

    Raises UsageError where there is no such file, EnvironmentError_ where it can't be opened,
    ArtifactError where it is empty.
    """
    if not Path(path).is_file():
        missing = not Path(path).exists()
        raise UsageError("there is no such file" if missing else "this is not a regular file", where=str(path))
    try:
        with Path(path).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ArtifactError("the file is empty", where=str(path), hint="copy or compile it again")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise EnvironmentError_(f"can't open the file: {error}", where=str(path)) from error


class Container:
    """The entries of an artifact: names, places, and bytes that match their checksums.

    Immutable once built, so threads may share one. `where` names the file in errors.
    """

    __slots__ = ("_entries", "_mapping", "_view", "where")

    def __init__(self, data: bytes | memoryview, *, where: str = "artifact") -> None:
        self.where = where
        view = memoryview(data)
        self._view = (view if view.format == "B" and view.ndim == 1 else view.cast("B")).toreadonly()
        self._mapping: mmap.mmap | None = None
        self._entries: Mapping[str, Entry] = MappingProxyType(self._parse())

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Container:
        """The container in the file at `path`, mapped."""
        view = map_file(path)
        container = Container(view, where=str(path))
        if isinstance(view.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # Windows gives nothing back
            container._mapping = view.obj
        return container

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All entries by name, in the order of the file (the manifest last)."""
        return self._entries

    def stored_bytes(self, entry: Entry) -> memoryview:
        """The bytes of `entry` as they lie in the file: its content where it is stored, else deflated. Unchecked."""
        return self._view[entry.start : entry.end]

    def stored_chunks(self, entry: Entry, size: int) -> Iterator[memoryview]:
        """The same bytes in views of at most `size`, each of which is done with when the next one is asked for.

        What was passed is given back to the system, so that copying a file takes no memory for the whole of it.
        """
        page = mmap.PAGESIZE
        kept = -(-entry.start // page) * page
        for start in range(entry.start, entry.end, size):
            after = min(start + size, entry.end)
            yield self._view[start:after]
            whole = after // page * page
            if self._mapping is not None and (whole - kept >= _RELEASE or after == entry.end) and whole > kept:
                self._mapping.madvise(mmap.MADV_DONTNEED, kept, whole - kept)
                kept = whole

    def read(self, name: str, limit: int) -> bytes:
        """The content of the entry `name`, inflated, at most `limit` bytes, its checksum verified."""
        entry = self._entries.get(name)
        if entry is None:
            raise self._fault(f"the entry {name!r} is missing")
        if entry.size > limit:
            raise self._fault(f"the entry {name!r} claims {entry.size} bytes; at most {limit} are accepted")
        raw = self.stored_bytes(entry)
        content = bytes(raw) if entry.method == zipformat.STORED else self._inflate(entry, raw)
        if zlib.crc32(content) != entry.crc:
            raise self._fault(f"the entry {name!r} is damaged: its checksum does not match")
        return content

    def _inflate(self, entry: Entry, raw: memoryview) -> bytes:
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            # One byte more than declared shows a stream that goes on; max_length=0 would mean "no limit".
            content = stream.decompress(raw, entry.size + 1)
        except zlib.error as error:
            raise self._fault(f"the entry {entry.name!r} is damaged: {error}") from error
        if len(content) != entry.size or not stream.eof or stream.unused_data or stream.unconsumed_tail:
            raise self._fault(f"the entry {entry.name!r} is damaged: it does not inflate to its {entry.size} bytes")
        return content

    # ------------------------------------------------------------------------------------ parsing

    def _fault(self, what: str, hint: str = "copy or compile it again") -> ArtifactError:
        return ArtifactError(what, where=self.where, hint=hint)

    def _parse(self) -> dict[str, Entry]:
        view = self._view
        if not len(view):
            raise self._fault("the file is empty")
        if bytes(view[:4]) != zipformat.LOCAL_SIGNATURE:
            kind = foreign.kind_of(bytes(view[:64]))
            raise self._fault(f"this is not an artifact: {kind.what}", kind.hint)
        count, offset = self._end()
        entries: dict[str, Entry] = {}
        folded: set[str] = set()
        position, expected, previous = offset, 0, ""
        for _ in range(count):
            entry, position = self._central(position)
            if previous and zipformat.sort_key(entry.name) <= zipformat.sort_key(previous):
                same = entry.name == previous
                raise self._fault(f"{'duplicate' if same else 'out of order'} entry {entry.name!r}", _REPACKED)
            if entry.name.lower() in folded:
                raise self._fault(f"the entry {entry.name!r} differs from another only in case")
            if entry.offset != expected:
                how = (
                    "overlaps the one before it" if entry.offset < expected else "follows bytes that belong to no entry"
                )
                raise self._fault(f"the entry {entry.name!r} {how}", _REPACKED)
            self._check_entry(entry, offset)
            entries[entry.name] = entry
            folded.add(entry.name.lower())
            previous, expected = entry.name, entry.end
        if position != len(view) - zipformat.TAIL_SIZE:
            raise self._fault("the central directory is longer than its entries", _REPACKED)
        if expected != offset:
            raise self._fault("bytes that belong to no entry precede the central directory", _REPACKED)
        if zipformat.MANIFEST not in entries:
            raise self._fault(f"this is a ZIP file without {zipformat.MANIFEST}, not an artifact", _REPACKED)
        return entries

    def _end(self) -> tuple[int, int]:
        """Number of entries and offset of the central directory, from the three records at the end."""
        view = self._view
        if len(view) >= zipformat.TAIL_SIZE:
            tail = bytes(view[-zipformat.TAIL_SIZE :])
            fields = zipformat.ZIP64_END.unpack_from(tail)
            count, size, offset = fields[7], fields[8], fields[9]
            if offset + size == len(view) - len(tail) and tail == zipformat.end_records(count, offset, size):
                # A record takes 74 bytes and its name, so a count that can't fit is refused before anything is built.
                if not 0 < count <= min(zipformat.MAX_ENTRIES, size // zipformat.CENTRAL.size):
                    raise self._fault(f"the central directory claims {count} entries in {size} bytes")
                return count, offset
        raise self._end_fault()

    def _end_fault(self) -> ArtifactError:
        """Why the end records are not where and what they should be."""
        kind = foreign.zip_kind_of(bytes(self._view[: 30 + zipformat.MAX_NAME]))
        if kind is not None:
            return self._fault(f"this is not an artifact: {kind.what}", kind.hint)
        search = bytes(self._view[-(1 << 16) - 22 :])
        found = search.rfind(b"PK\x05\x06")
        if found < 0:
            return self._fault("the file is truncated: its end is missing")
        if len(search) - found > 22:
            return self._fault(f"{len(search) - found - 22} bytes follow the end of the archive")
        return self._fault("this ZIP file was not written by argosy, or its end records are altered", _REPACKED)

    def _central(self, position: int) -> tuple[Entry, int]:
        """The entry whose central record starts at `position`, and where the next record starts."""
        end = len(self._view) - zipformat.TAIL_SIZE
        length = int.from_bytes(self._view[position + 28 : position + 30], "little")
        after = position + zipformat.CENTRAL.size + length
        if after > end:
            raise self._fault("the central directory ends within a record", _REPACKED)
        record = bytes(self._view[position:after])
        raw = record[46 : 46 + length]
        name = raw.decode("latin-1")
        fault = zipformat.name_fault(name)
        if fault:
            raise self._fault(f"the entry name {name[: zipformat.MAX_NAME]!r} is not allowed: {fault}", _REPACKED)
        fields = zipformat.CENTRAL.unpack(record[:46] + record[46 + length :])
        entry = Entry(name, fields[4], fields[7], fields[-3], fields[-2], fields[-1])
        if record != zipformat.central_record(entry):
            what = _altered_field(fields)
            raise self._fault(f"the entry {name!r} was not written by argosy: {what}", _REPACKED)
        return entry, after

    def _check_entry(self, entry: Entry, limit: int) -> None:
        """Method, sizes, place and local header of an entry that must end by `limit`."""
        weight = entry.name.startswith(zipformat.WEIGHTS)
        if entry.method not in (zipformat.STORED, zipformat.DEFLATED):
            raise self._fault(f"the entry {entry.name!r} uses compression method {entry.method}; known are 0 and 8")
        if entry.method == zipformat.STORED and entry.size != entry.stored:
            raise self._fault(f"the entry {entry.name!r} is stored but claims two sizes")
        if weight and entry.method != zipformat.STORED:
            raise self._fault(f"the weight {entry.name!r} is compressed", _REPACKED)
        if entry.end > limit:
            raise self._fault(f"the entry {entry.name!r} claims {entry.stored} bytes, more than the file has")
        if not zipformat.ratio_allowed(entry.size, entry.stored):
            raise self._fault(f"the entry {entry.name!r} claims to inflate {entry.stored} bytes to {entry.size}")
        if self._view[entry.offset : entry.start] != zipformat.local_header(entry):
            raise self._fault(f"the local header of {entry.name!r} contradicts the central directory", _REPACKED)


def _altered_field(fields: tuple[int, ...]) -> str:
    """What in a central record is not as the writer makes it, in words."""
    flags, disk = fields[3], fields[13]
    if flags & 1:
        return "it is encrypted"
    if flags & 8:
        return "it has a data descriptor"
    if flags:
        return f"its flags are {flags:#x}"
    if disk:
        return "it lies on another disk of a multi-disk archive"
    return "a field of its record is not what argosy writes"
