"""`argosy cache`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.toolchains.zig import CodeTarget, Source, compile_objects, object_cache, zig_version
from tests.cli.conftest import Call

TARGET = CodeTarget("x86_64-linux-none", "baseline")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARGOSY_CACHE", str(tmp_path))
    return tmp_path


def fill() -> None:
    compile_objects([Source(f"kernel {i}", f"int f(void) {{ return {i}; }}") for i in range(3)], TARGET)


def test_an_empty_cache_is_listed(call: Call, folder: Path) -> None:
    assert call("cache", "list").out.strip() == f"0 entries, 0 B, in {folder / 'objects'}"
    assert json.loads(call("cache", "list", "--json").out)["entries"] == []


def test_entries_are_listed_and_explained(call: Call) -> None:
    fill()
    lines = call("cache", "list").out.splitlines()
    assert len(lines) == 5
    assert any("kernel 1" in line and "baseline, x86_64-linux-none" in line for line in lines)
    entry = json.loads(call("cache", "list", "--json").out)["entries"][0]
    assert call("cache", "why", entry["key"][:20]).out == call("cache", "why", entry["name"]).out
    told = json.loads(call("cache", "why", entry["name"], "--json").out)
    assert told["zig"] == zig_version()
    assert told["today"].startswith("used where")


def test_an_entry_of_another_compiler_is_told(call: Call) -> None:
    object_cache().put("ab" * 32, b"old", {"name": "old", "zig": "0.1.0"})
    assert "never used again: it was made by zig 0.1.0" in call("cache", "why", "abab").out


def test_pruning(call: Call) -> None:
    fill()
    told = json.loads(call("cache", "prune", "--json").out)
    assert told["removed"] == 0
    assert told["left"] > 0
    assert "left 0 B" in call("cache", "prune", "--limit", "0").out
    assert call("cache", "list").out.startswith("0 entries")


@pytest.mark.parametrize(
    "words", [("why",), ("why", "nothing"), ("list", "key"), ("prune", "--limit", "much"), ("prune", "--limit", "-1")]
)
def test_wrong_uses_are_refused(call: Call, words: tuple[str, ...]) -> None:
    assert call("cache", *words).code == 2
