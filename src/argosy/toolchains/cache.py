"""Compiled objects on disk, by the content that they were compiled from.

An entry is a file: a line of JSON that says what it is, then the bytes. The line holds their SHA-256, so that
a damaged entry is noticed and dropped. Entries are written beside their place and renamed, so processes may share
the folder; the least recently used go some minutes after the folder has grown over its limit. A folder that can't be
read or written costs time only: a warning is logged once, and everything is compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["CacheEntry", "DiskCache"]

log = logging.getLogger("argosy.cache")

DEFAULT_LIMIT: Final = 1 << 30
"""Bytes that a cache folder may hold."""
_LINE_LIMIT: Final = 1 << 16
_MARK: Final = ".trimmed"
"""A file whose time of change is when the folder was trimmed last."""
_PAUSE: Final = 300.0
"""Seconds in which the folder may grow over its limit."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An entry as listed: its key, its bytes on disk, when it was last used (seconds since 1970), what it says."""

    key: str
    size: int
    used: float
    description: Mapping[str, str]


class DiskCache:
    """A folder of entries, safe to share between threads and processes."""

    def __init__(self, folder: Path, *, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self._limit = limit
        self._warned = False

    def get(self, key: str) -> bytes | None:
        """The bytes under `key` (hex digits), or None. A damaged entry is removed."""
        path = self._path(key)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(f"can't read {path}: {error.strerror or error}")
            return None
        line, _, payload = raw.partition(b"\n")
        header = _header(line)
        if header.get("key") != key or header.get("sha256") != hashlib.sha256(payload).hexdigest():
            log.warning("the cache entry %s is damaged; it is compiled again", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):  # a read-only folder keeps no times of use
            os.utime(path)
        return payload

    def put(self, key: str, payload: bytes, description: Mapping[str, str]) -> None:
        """Keep `payload` under `key`; where the disk refuses, a warning is logged and nothing is kept."""
        header = {"key": key, "sha256": hashlib.sha256(payload).hexdigest(), **description}
        path = self._path(key)
        temporary = path.with_name(f".{key}.{os.getpid()}-{secrets.token_hex(4)}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(json.dumps(header, sort_keys=True).encode() + b"\n" + payload)
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            self._warn(f"can't write {path}: {error.strerror or error}")

    def entries(self) -> list[CacheEntry]:
        """What the folder holds, most recently used first."""
        found = []
        for path, status in self._files():
            if path.name.startswith("."):
                continue  # a write that is going on, or was interrupted
            try:
                with path.open("rb") as file:
                    header = _header(file.readline(_LINE_LIMIT))
            except OSError:
                continue  # another process removed it
            description = {name: text for name, text in header.items() if name not in ("key", "sha256")}
            found.append(CacheEntry(path.name, status.st_size, status.st_mtime, description))
        return sorted(found, key=lambda entry: -entry.used)

    def trim(self) -> None:
        """Prune, unless some process has done so in the last minutes: to look at a large folder takes a while."""
        mark = self.folder / _MARK
        with contextlib.suppress(OSError):
            if 0 <= time.time() - mark.stat().st_mtime < _PAUSE:
                return
        with contextlib.suppress(OSError):
            mark.touch()
        self.prune()

    def prune(self, limit: int | None = None) -> int:
        """Remove the least recently used entries until at most `limit` bytes are left; the bytes that went."""
        bound = self._limit if limit is None else limit
        files = sorted(self._files(), key=lambda item: -item[1].st_mtime)
        kept = removed = 0
        for path, status in files:
            if kept + status.st_size <= bound:
                kept += status.st_size
                continue
            with contextlib.suppress(OSError):
                path.unlink()
                removed += status.st_size
        return removed

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Every file of the folder with its status, those of interrupted writes too."""
        try:
            folders = [entry for entry in os.scandir(self.folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        for folder in folders:
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("%s; kernels are compiled without the cache", message)


def _header(line: bytes) -> dict[str, str]:
    """The first line of an entry; empty where it is none."""
    try:
        header = json.loads(line)
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}
