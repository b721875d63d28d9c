"""The exact form of an artifact's ZIP64 container, shared by the reader and the writer.

An artifact is an ordinary ZIP64 file, so that `unzip` and every other tool open it, but only one sequence
of bytes is valid for given entries: the records below leave no freedom. The reader renders what the writer
would have written and compares, so nothing can hide in a field that nobody looks at.

```
local header · data     each entry, names in ascending byte order, manifest.json last, no gaps
central directory       the same order
ZIP64 end record · locator · end record
```

- Names are ASCII (`[A-Za-z0-9._-]` and single slashes), unique even when case is ignored.
- `weights/…` are stored, their data at a multiple of 4096 (padded by an extra field of the local header), so
  that they can be mapped; all others are deflated, or stored where deflating would exceed `MAX_RATIO`.
- Every size and offset lies in a ZIP64 extra field, whatever its value: there is one path, always tested.
- Times are 1980-01-01 00:00, the earliest that ZIP can say; flags, comments and data descriptors are absent.
"""

from __future__ import annotations

import re
import struct
from typing import Final

import msgspec

__all__ = [
    "ALIGNMENT",
    "CENTRAL",
    "DEFLATED",
    "END",
    "LOCAL_SIGNATURE",
    "LOCATOR",
    "MANIFEST",
    "MAX_ENTRIES",
    "MAX_NAME",
    "MAX_RATIO",
    "RATIO_SLACK",
    "STORED",
    "TAIL_SIZE",
    "WEIGHTS",
    "ZIP64_END",
    "Entry",
    "central_record",
    "data_offset",
    "end_records",
    "local_header",
    "name_fault",
    "ratio_allowed",
    "sort_key",
]

MANIFEST: Final = "manifest.json"
WEIGHTS: Final = "weights/"
ALIGNMENT: Final = 4096
STORED: Final = 0
DEFLATED: Final = 8

MAX_ENTRIES: Final = 1 << 17
MAX_NAME: Final = 256
# Deflate reaches 1032:1; what we write (programs, plans, code, assembly) stays under 50:1. A small entry
# costs nothing whatever its ratio, hence the slack.
MAX_RATIO: Final = 100
RATIO_SLACK: Final = 1 << 20

_VERSION: Final = 45  # ZIP64
_MADE_BY: Final = 3 << 8 | _VERSION  # UNIX, so that the mode below counts
_MODE: Final = 0o100644 << 16
_DATE: Final = 1 << 5 | 1  # 1980-01-01
_SENTINEL: Final = 0xFFFFFFFF
_ZIP64_EXTRA: Final = 0x0001
_PADDING_EXTRA: Final = 0xD935  # the id that Android's zipalign uses: a u16 alignment, then zeros

LOCAL_SIGNATURE: Final = b"PK\x03\x04"
LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
CENTRAL: Final = struct.Struct("<4sHHHHHHIIIHHHHHIIHHQQQ")  # the record (name cut out), then its ZIP64 extra field
ZIP64_END: Final = struct.Struct("<4sQHHIIQQQQ")
LOCATOR: Final = struct.Struct("<4sIQI")
END: Final = struct.Struct("<4sHHHHIIH")
TAIL_SIZE: Final = ZIP64_END.size + LOCATOR.size + END.size

_LOCAL_ZIP64: Final = struct.Struct("<HHQQ")
_PADDING: Final = struct.Struct("<HHH")
_CENTRAL_FIXED: Final = 46
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*", re.ASCII)


class Entry(msgspec.Struct, frozen=True):
    """One entry as the central directory describes it. Offsets and sizes are in bytes.

    `offset` is where the local header starts, `size` the size of the content, `stored` its size in the file.
    """

    name: str
    method: int
    crc: int
    size: int
    stored: int
    offset: int

    @property
    def start(self) -> int:
        """Where the entry's data starts in the file."""
        return data_offset(self.name, self.offset)

    @property
    def end(self) -> int:
        """Where the entry's data ends in the file."""
        return self.start + self.stored


def name_fault(name: str) -> str:
    """Why `name` can't be an entry's name; empty where it can."""
    if not name or len(name) > MAX_NAME:
        return f"its length is {len(name)}, allowed are 1 to {MAX_NAME} characters"
    if _NAME.fullmatch(name) is None:
        return "a name has only the characters A-Z a-z 0-9 . _ - and single slashes between its parts"
    if any(part.strip(".") == "" for part in name.split("/")):
        return "a part of a name may not consist of dots"
    return ""


def sort_key(name: str) -> tuple[bool, str]:
    """The order of entries in the file: by name, the manifest last (it holds the offsets of the others)."""
    return name == MANIFEST, name


def ratio_allowed(size: int, stored: int) -> bool:
    """True where `stored` bytes may inflate to `size`: a larger claim is a bomb."""
    return size <= stored * MAX_RATIO + RATIO_SLACK


def data_offset(name: str, offset: int) -> int:
    """Where the data of the entry `name` starts when its local header starts at `offset`."""
    plain = offset + LOCAL.size + len(name) + _LOCAL_ZIP64.size
    if not name.startswith(WEIGHTS):
        return plain
    padded = plain + _PADDING.size
    return padded + -padded % ALIGNMENT


def local_header(entry: Entry) -> bytes:
    """The bytes from `entry.offset` to `entry.start`."""
    extra = _LOCAL_ZIP64.pack(_ZIP64_EXTRA, 16, entry.size, entry.stored)
    room = entry.start - entry.offset - LOCAL.size - len(entry.name) - len(extra)
    if room:
        extra += _PADDING.pack(_PADDING_EXTRA, room - 4, ALIGNMENT) + bytes(room - _PADDING.size)
    fixed = LOCAL.pack(
        LOCAL_SIGNATURE, _VERSION, 0, entry.method, 0, _DATE,
        entry.crc, _SENTINEL, _SENTINEL, len(entry.name), len(extra),
    )  # fmt: skip
    return fixed + entry.name.encode("ascii") + extra


def central_record(entry: Entry) -> bytes:
    """The record of `entry` in the central directory."""
    packed = CENTRAL.pack(
        b"PK\x01\x02", _MADE_BY, _VERSION, 0, entry.method, 0, _DATE, entry.crc, _SENTINEL, _SENTINEL,
        len(entry.name), CENTRAL.size - _CENTRAL_FIXED, 0, 0, 0, _MODE, _SENTINEL,
        _ZIP64_EXTRA, 24, entry.size, entry.stored, entry.offset,
    )  # fmt: skip
    return packed[:_CENTRAL_FIXED] + entry.name.encode("ascii") + packed[_CENTRAL_FIXED:]


def end_records(count: int, offset: int, size: int) -> bytes:
    """The three records that end the file; the central directory has `size` bytes at `offset`."""
    zip64 = ZIP64_END.pack(b"PK\x06\x06", ZIP64_END.size - 12, _MADE_BY, _VERSION, 0, 0, count, count, size, offset)
    locator = LOCATOR.pack(b"PK\x06\x07", 0, offset + size, 1)
    end = END.pack(b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, _SENTINEL, _SENTINEL, 0)
    return zip64 + locator + end
