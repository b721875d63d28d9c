"""Writes a wheel: the same bytes for the same content, on any machine, whatever its zlib.

Sources: the specifications "Binary distribution format", "Core metadata" (2.3) and "Recording installed projects" of
the Python packaging authority. Nothing is deflated: artifacts are already, and other zlibs would give other bytes.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from argosy import __version__
from argosy.artifact.atomic import atomic_file
from argosy.packaging.names import file_part

__all__ = ["ANY", "NOTE", "Wheel", "write_wheel"]

ANY: Final = "any"
"""The platform tag of what is no code for a CPU."""
NOTE: Final = "argosy.json"
"""The file in a wheel's `.dist-info` that says what the wheel is of."""

_CHUNK: Final = 1 << 20
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP file can say."""
_MODE: Final = 0o100644 << 16
_UNIX: Final = 3


@dataclass(frozen=True, slots=True)
class Wheel:
    """What a wheel holds. `project` is normalised, `files` are by path in it, as bytes or as a file to copy.

    `platforms` are platform tags, `requires` lines of `Requires-Dist`, `extras` names of extras, `note` the content of
    `argosy.json`.
    """

    project: str
    version: str
    summary: str
    description: str
    files: Mapping[str, bytes | Path]
    note: bytes
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    platforms: tuple[str, ...] = field(default=(ANY,))

    @property
    def stem(self) -> str:
        """Name and version as they begin the wheel's name."""
        return f"{file_part(self.project)}-{self.version}"

    @property
    def file_name(self) -> str:
        """The name of the wheel."""
        return f"{self.stem}-py3-none-{'.'.join(self.platforms)}.whl"


def write_wheel(wheel: Wheel, folder: Path) -> Path:
    """Write a wheel into a folder, atomically. Raises EnvironmentError_ where the disk refuses."""
    info = f"{wheel.stem}.dist-info"
    files: dict[str, bytes | Path] = {
        f"{info}/METADATA": _metadata(wheel),
        f"{info}/WHEEL": _wheel(wheel),
        f"{info}/{NOTE}": wheel.note,
    }
    path = folder / wheel.file_name
    rows: list[tuple[str, str, str]] = []
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        # The metadata come last, so that they can be replaced without moving what is large.
        for name, content in (*sorted(wheel.files.items()), *sorted(files.items())):
            rows.append((name, *_add(archive, name, content)))
        record = io.StringIO()
        csv.writer(record, lineterminator="\n").writerows([*rows, (f"{info}/RECORD", "", "")])
        _add(archive, f"{info}/RECORD", record.getvalue().encode())
    return path


def _add(archive: zipfile.ZipFile, name: str, content: bytes | Path) -> tuple[str, str]:
    """Write one file; returns its hash and its size as RECORD has them."""
    entry = zipfile.ZipInfo(name, _DATE)
    entry.external_attr, entry.create_system = _MODE, _UNIX
    entry.file_size = len(content) if isinstance(content, bytes) else content.stat().st_size
    state = hashlib.sha256()
    with archive.open(entry, "w") as file:
        for chunk in _chunks(content):
            state.update(chunk)
            file.write(chunk)
    digest = base64.urlsafe_b64encode(state.digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(entry.file_size)


def _chunks(content: bytes | Path) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        yield from _read(file)


def _read(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _metadata(wheel: Wheel) -> bytes:
    lines = [
        "Metadata-Version: 2.3",
        f"Name: {wheel.project}",
        f"Version: {wheel.version}",
        f"Summary: {wheel.summary}",
        *([f"Keywords: {','.join(wheel.keywords)}"] if wheel.keywords else []),
        "Requires-Python: >=3.11",
        *(f"Requires-Dist: {line}" for line in wheel.requires),
        *(f"Provides-Extra: {name}" for name in wheel.extras),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join([*lines, "", wheel.description]).encode()


def _wheel(wheel: Wheel) -> bytes:
    lines = [
        "Wheel-Version: 1.0",
        f"Generator: argosy {__version__}",
        # All wheels of a model lie in one folder, also where code and pure Python are kept apart.
        "Root-Is-Purelib: true",
        *(f"Tag: py3-none-{platform}" for platform in wheel.platforms),
    ]
    return "\n".join([*lines, ""]).encode()
