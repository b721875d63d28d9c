"""The cache folder: bounded, oldest first; shared by processes; never half an entry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.toolchains.cache import DiskCache


def key(number: int) -> str:
    return f"{number:064x}"


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", limit=10_000)


def test_what_is_put_is_got(cache: DiskCache) -> None:
    assert cache.get(key(1)) is None
    cache.put(key(1), b"\n\0first", {"name": "a"})
    assert cache.get(key(1)) == b"\n\0first"
    assert [(entry.key, dict(entry.description)) for entry in cache.entries()] == [(key(1), {"name": "a"})]


def test_the_least_recently_used_go_first(cache: DiskCache) -> None:
    for number in range(8):
        cache.put(key(number), bytes(2000), {})
        os.utime(cache.folder / "00" / key(number), (number, number))
    assert cache.get(key(0)) is not None  # used just now
    removed = cache.prune()
    assert removed > 0
    assert {entry.key for entry in cache.entries()} == {key(0), key(5), key(6), key(7)}
    assert sum(entry.size for entry in cache.entries()) <= 10_000
    assert cache.prune(0) > 0
    assert cache.entries() == []


def test_a_folder_is_looked_through_once_in_some_minutes(cache: DiskCache) -> None:
    def fill() -> None:
        for number in range(8):
            cache.put(key(number), bytes(2000), {})

    def held() -> int:
        return sum(entry.size for entry in cache.entries())

    fill()
    cache.trim()
    assert held() <= 10_000
    fill()
    DiskCache(cache.folder, limit=10_000).trim()  # another process
    assert held() > 10_000, "just now it was looked through"
    mark = cache.folder / ".trimmed"
    os.utime(mark, (mark.stat().st_mtime - 3600,) * 2)
    cache.trim()
    assert held() <= 10_000
    fill()
    os.utime(mark, (mark.stat().st_mtime + 3600,) * 2)  # a clock that was set back
    cache.trim()
    assert held() <= 10_000


def test_left_overs_of_interrupted_writes_are_pruned_and_never_read(cache: DiskCache) -> None:
    cache.put(key(1), b"good", {})
    (cache.folder / "00" / f".{key(2)}.1-ab.part").write_bytes(b"half")
    assert cache.get(key(2)) is None
    cache.prune(0)
    assert not list((cache.folder / "00").iterdir())


def test_an_entry_under_another_name_is_refused(cache: DiskCache) -> None:
    cache.put(key(1), b"one", {})
    (cache.folder / "00" / key(1)).rename(cache.folder / "00" / key(2))
    assert cache.get(key(2)) is None


def test_a_read_only_folder_still_serves(cache: DiskCache) -> None:
    cache.put(key(1), b"one", {})
    (cache.folder / "00").chmod(0o500)
    try:
        assert cache.get(key(1)) == b"one"
        cache.put(key(2), b"two", {})  # root may write anyway
    finally:
        (cache.folder / "00").chmod(0o700)


def test_processes_share_a_folder(cache: DiskCache) -> None:
    """Four processes put, get and prune the same keys: whatever is got is whole."""
    program = (
        "import sys, pathlib, hashlib\n"
        "from argosy.toolchains.cache import DiskCache\n"
        "cache = DiskCache(pathlib.Path(sys.argv[1]), limit=50_000)\n"
        "for round in range(40):\n"
        "    for number in range(20):\n"
        "        content = bytes([number]) * 5000\n"
        "        found = cache.get(f'{number:064x}')\n"
        "        assert found is None or found == content\n"
        "        cache.put(f'{number:064x}', content, {})\n"
        "    cache.prune()\n"
    )
    command = [sys.executable, "-c", program, str(cache.folder)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in running:
        errors = process.communicate()[1]
        assert process.returncode == 0, errors
        assert "damaged" not in errors
