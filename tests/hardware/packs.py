"""Packs: files of at most 48 MiB that carry artifacts and other bytes, by name, to a machine with a device.

What several artifacts share lies in a pack once: an artifact is cut at its entries, and equal entries (kernels, mostly)
are one *part*. What is left of it, headers and small entries, is its *frame*, a part as well. Content comes back bit
for bit: parts are kept as the artifact holds them, and the SHA-256 of the whole is compared.

```
magic · bytes of the index (u64) · index (MessagePack, deflated) · parts, each deflated where that makes it smaller
```
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from argosy.artifact.container import Container
from argosy.errors import ArtifactError

__all__ = ["LIMIT", "PackError", "PackWriter", "Packs"]

LIMIT: Final = 48 << 20
"""Bytes that a pack may have."""
_MAGIC: Final = b"argosy pack 1\n\0\0"
_LENGTH: Final = struct.Struct("<Q")
_LEAST: Final = 256
"""Bytes of an entry from which on it is a part: below, telling of it takes more than it saves."""
_WORDS: Final = 4096
"""Bytes of what is said of an item, where it is not known yet."""
_TOLD: Final = 64
"""Bytes that the index takes, at most, to tell of a part, or of a part's place in an item."""


class PackError(Exception):
    """A pack that is none or is damaged, or that lacks or can't take what is asked."""


class _Item(msgspec.Struct, frozen=True):
    """What lies under a name: the content's SHA-256, or the `reason` why there is no content.

    `parts` are offsets in the content, ascending, each with the number of the part that lies there; the part numbered
    `frame` fills the rest. `about` is what the one who packed says of it.
    """

    name: str
    about: dict[str, str]
    reason: str = ""
    sha256: str = ""
    frame: int = 0
    parts: tuple[tuple[int, int], ...] = ()


class _Part(msgspec.Struct, frozen=True, array_like=True):
    """Where a part lies, behind the index, how many bytes it has there, and how many it really has."""

    offset: int
    stored: int
    size: int


class _Index(msgspec.Struct, frozen=True):
    items: list[_Item]
    parts: list[_Part]


class _Draft:
    """A pack in the making."""

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self.size = len(_MAGIC) + _LENGTH.size
        self._numbers: dict[bytes, int] = {}
        self._parts: list[_Part] = []
        self._stored: list[bytes] = []
        self._end = 0

    def missing(self, contents: Sequence[bytes]) -> dict[bytes, bytes]:
        """What of these it lacks, by hash."""
        found = {hashlib.sha256(content).digest(): content for content in contents}
        return {digest: content for digest, content in found.items() if digest not in self._numbers}

    def number(self, content: bytes) -> int:
        """The number of a part, which is taken up where it is new."""
        digest = hashlib.sha256(content).digest()
        if digest not in self._numbers:
            stored = _packed(content)
            self._numbers[digest] = len(self._parts)
            self._parts.append(_Part(self._end, len(stored), len(content)))
            self._stored.append(stored)
            self._end += len(stored)
        return self._numbers[digest]

    def write(self, path: Path) -> None:
        """Write the file."""
        index = zlib.compress(msgspec.msgpack.encode(_Index(self.items, self._parts)), 9)
        path.write_bytes(b"".join([_MAGIC, _LENGTH.pack(len(index)), index, *self._stored]))


class PackWriter:
    """Writes packs `STEM-00.pack`, `STEM-01.pack` … into a folder, in place of those there. A context manager.

    The same content in the same order gives the same bytes.
    """

    def __init__(self, folder: Path, stem: str, *, limit: int = LIMIT) -> None:
        self._folder, self._stem, self._limit = folder, stem, limit
        self._draft = _Draft()
        self.written: list[Path] = []
        folder.mkdir(parents=True, exist_ok=True)
        for path in _paths(folder, stem):
            path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and self._draft.items:
            self._write()

    def add(self, name: str, content: bytes, about: Mapping[str, str] | None = None) -> None:
        """Put bytes under a name. Raises PackError where no pack can take so many."""
        frame, parts = _cut(content)
        item = _Item(name, dict(about or {}), sha256=hashlib.sha256(content).hexdigest())
        self._make_room(item, [frame, *(part for _, part in parts)])
        number = self._draft.number
        placed = tuple((place, number(part)) for place, part in parts)
        self._draft.items.append(msgspec.structs.replace(item, frame=number(frame), parts=placed))

    def together(self, contents: Sequence[bytes]) -> None:
        """Begin another pack where this one can't take all of these, which are added next."""
        parts = [part for frame, cut in map(_cut, contents) for part in (frame, *(raw for _, raw in cut))]
        new = sum(len(_packed(part)) + 2 * _TOLD for part in self._draft.missing(parts).values())
        if self._draft.size + new + _WORDS * len(contents) > self._limit and self._draft.items:
            self._write()

    def refuse(self, name: str, reason: str, about: Mapping[str, str] | None = None) -> None:
        """Say under a name why there is nothing."""
        item = _Item(name, dict(about or {}), reason)
        self._make_room(item, [])
        self._draft.items.append(item)

    def _make_room(self, item: _Item, contents: Sequence[bytes]) -> None:
        """Begin another pack where this one can't take the item; the size counts it from here on."""
        size = self._need(item, contents)
        if self._draft.size + size > self._limit and self._draft.items:
            self._write()
            size = self._need(item, contents)
        if self._draft.size + size > self._limit:
            raise PackError(f"{item.name}: it takes {size} bytes, and a pack has at most {self._limit}")
        self._draft.size += size

    def _need(self, item: _Item, contents: Sequence[bytes]) -> int:
        """Bytes by which an item makes the pack longer, at most."""
        new = sum(len(_packed(content)) + _TOLD for content in self._draft.missing(contents).values())
        return new + len(msgspec.msgpack.encode(item)) + _TOLD * len(contents)

    def _write(self) -> None:
        path = self._folder / f"{self._stem}-{len(self.written):02}.pack"
        self._draft.write(path)
        self.written.append(path)
        self._draft = _Draft()


class Packs:
    """What lies in the packs of a folder. They are read whole, so forked processes share them.

    Raises PackError where there are none, or one is damaged.
    """

    def __init__(self, folder: Path, stem: str) -> None:
        self._found: dict[str, tuple[_Item, _Index, memoryview]] = {}
        paths = _paths(folder, stem)
        if not paths:
            raise PackError(f"{folder}: there is no pack {stem}-00.pack; `python -m tests.hardware` makes packs")
        for path in paths:
            index, rest = _read(path)
            self._found.update({item.name: (item, index, rest) for item in index.items})

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order in which they were packed."""
        return tuple(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def about(self, name: str) -> Mapping[str, str]:
        """What the one who packed says of it."""
        return self._item(name).about

    def reason(self, name: str) -> str:
        """Why there is nothing under a name; empty where there is something."""
        return self._item(name).reason

    def content(self, name: str) -> bytes:
        """The bytes, just those that were packed. Raises PackError where they aren't, or there are none."""
        if reason := self.reason(name):
            raise PackError(f"{name}: {reason}")
        item, index, rest = self._found[name]
        try:
            made = _joined(item, index, rest)
        except zlib.error:
            made = b""
        if hashlib.sha256(made).hexdigest() != item.sha256:
            raise PackError(f"{name}: what comes out of the pack is not what went in: copy or make the pack again")
        return made

    def _item(self, name: str) -> _Item:
        if name not in self._found:
            raise PackError(f"{name}: it was not packed")
        return self._found[name][0]


def _paths(folder: Path, stem: str) -> list[Path]:
    return sorted(folder.glob(f"{stem}-[0-9][0-9].pack"))


def _cut(content: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """The frame of an artifact, and its larger entries with their places. Other bytes are all frame."""
    try:
        entries = list(Container(content).entries.values())
    except ArtifactError:
        return content, []
    frame = bytearray()
    parts: list[tuple[int, bytes]] = []
    end = 0
    for entry in entries:
        if entry.stored >= _LEAST:
            frame += content[end : entry.start]
            parts.append((entry.start, content[entry.start : entry.end]))
            end = entry.end
    return bytes(frame + content[end:]), parts


def _packed(content: bytes) -> bytes:
    """A part as it is stored: shorter than it is, or just as it is."""
    short = zlib.compress(content)
    return short if len(short) < len(content) else content


def _joined(item: _Item, index: _Index, rest: memoryview) -> bytes:
    """The frame with the parts in their places."""
    frame = _part(index, rest, item.frame)
    made = bytearray()
    used = 0
    for place, number in item.parts:
        between = place - len(made)
        made += frame[used : used + between]
        made += _part(index, rest, number)
        used += between
    return bytes(made + frame[used:])


def _part(index: _Index, rest: memoryview, number: int) -> bytes:
    part = index.parts[number]
    raw = rest[part.offset : part.offset + part.stored]
    return bytes(raw) if part.stored == part.size else zlib.decompress(raw)


def _read(path: Path) -> tuple[_Index, memoryview]:
    content = memoryview(path.read_bytes())
    start = len(_MAGIC) + _LENGTH.size
    if bytes(content[: len(_MAGIC)]) != _MAGIC or len(content) < start:
        raise PackError(f"{path}: this is no pack of this version")
    end = start + _LENGTH.unpack(content[len(_MAGIC) : start])[0]
    try:
        index = msgspec.msgpack.decode(zlib.decompress(content[start:end]), type=_Index)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise PackError(f"{path}: its index is damaged: {error}; copy or make the pack again") from error
    if end + sum(part.stored for part in index.parts) != len(content):
        raise PackError(f"{path}: it has {len(content)} bytes, its index tells of others: copy or make it again")
    return index, content[end:]
