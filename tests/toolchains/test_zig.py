"""Compiling C: what comes out is code, the same everywhere; what goes wrong is told; what the cache holds is used."""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from argosy import host_cpu
from argosy.errors import CompileError, EnvironmentError_, MissingExtraError
from argosy.targets.cpu.arch import ARCHS, native
from argosy.targets.cpu.host import host_runtime
from argosy.toolchains import zig
from argosy.toolchains.cache import DiskCache
from argosy.toolchains.process import Limits
from argosy.toolchains.zig import CodeTarget, Source, compile_objects, link

TWICE = Source("twice", '__attribute__((visibility("default"))) int twice(int x) { return 2 * x; }\n')
USES = Source(
    "uses", '__attribute__((visibility("default"))) int uses(int x) { extern int hidden(int); return hidden(x); }'
)
HIDDEN = Source("hidden", "int hidden(int x) { return x + 1; }")
ENDLESS = Source(
    "endless", "\n".join(f"#define A{i} A{i - 1} A{i - 1} A{i - 1}" for i in range(1, 40)) + "\nint x[] = {A39};"
)


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def forbid_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("something was compiled")

    monkeypatch.setattr(zig, "run_tool", fail)


def load(content: bytes, folder: Path) -> ctypes.CDLL:
    (folder / "made.so").write_bytes(content)
    return ctypes.CDLL(str(folder / "made.so"))


def test_objects_link_to_a_library_that_needs_no_other(cache: DiskCache, tmp_path: Path) -> None:
    target = native().code
    content = link(compile_objects([TWICE, USES, HIDDEN], target, cache=cache), target)
    library = load(content, tmp_path)
    assert library.twice(21) == 42
    assert library.uses(1) == 2
    with pytest.raises(AttributeError):
        _ = library.hidden
    assert b"libc" not in content


def test_equal_sources_give_equal_bytes_anywhere(tmp_path: Path) -> None:
    """Two processes, in two folders, with two temporary folders, and no cache."""
    program = (
        "import sys, hashlib, pathlib\n"
        "from argosy.targets.cpu.arch import ARCHS\n"
        "from argosy.targets.cpu.host import host_runtime\n"
        "from argosy.toolchains.cache import DiskCache\n"
        "from argosy.toolchains.zig import Source, compile_objects, link\n"
        "for arch in ARCHS.values():\n"
        "    made = compile_objects([host_runtime()], arch.code, cache=DiskCache(pathlib.Path('cache')))\n"
        "    print(arch.name, hashlib.sha256(link(made, arch.code)).hexdigest())\n"
    )
    outputs = []
    for name in ("first", "second/with/a/longer/name"):
        folder = tmp_path / name
        (folder / "temporary").mkdir(parents=True)
        environment = {"TMPDIR": str(folder / "temporary"), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == len(ARCHS)


def test_the_cache_saves_compiling(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    target = native().code
    made = compile_objects([TWICE, HIDDEN, TWICE], target, cache=cache)
    assert made[0] == made[2] != made[1]
    assert {entry.description["name"] for entry in cache.entries()} == {"twice", "hidden"}
    forbid_compiling(monkeypatch)
    assert compile_objects([HIDDEN, TWICE], target, cache=cache) == [made[1], made[0]]


@pytest.mark.parametrize("other", ["text", "flags", "cpu", "version"])
def test_whatever_changes_the_object_changes_its_key(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    target = native().code
    compile_objects([TWICE], target, cache=cache)
    source = TWICE
    if other == "text":
        source = Source("twice", TWICE.text.replace("2", "3"))
    elif other == "flags":
        source = Source("twice", TWICE.text, ("-ffp-contract=fast",))
    elif other == "cpu":
        target = CodeTarget(target.triple, "baseline")
    else:
        monkeypatch.setattr(zig, "zig_version", lambda: "0.0.1")
    compile_objects([source], target, cache=cache)
    assert len(cache.entries()) == 2


def test_a_damaged_entry_is_compiled_again(cache: DiskCache, caplog: pytest.LogCaptureFixture) -> None:
    target = native().code
    (good,) = compile_objects([TWICE], target, cache=cache)
    (entry,) = cache.entries()
    path = cache.folder / entry.key[:2] / entry.key
    raw = path.read_bytes()
    key, other = entry.key.encode(), entry.key[::-1].encode()
    for damaged in (raw[:-1], raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:], b"", b"{}\n", raw.replace(key, other)):
        path.write_bytes(damaged)
        with caplog.at_level(logging.WARNING):
            assert compile_objects([TWICE], target, cache=cache) == [good]
        assert "damaged" in caplog.text
        caplog.clear()


def test_a_cache_that_cannot_be_written_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("no folder")
    store = DiskCache(tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING):
        made = compile_objects([TWICE, HIDDEN], native().code, cache=store)
    assert len(made) == 2
    assert caplog.text.count("without the cache") == 1


def test_an_error_shows_its_first_diagnostics_and_has_the_text_as_evidence(tmp_path: Path, cache: DiskCache) -> None:
    wrong = Source("softmax of node 3", "".join(f"int f{i}(void) {{ return missing{i}; }}\n" for i in range(20)))
    with pytest.raises(CompileError) as caught:
        compile_objects([TWICE, wrong], native().code, cache=cache)
    text = str(caught.value)
    assert text.startswith("softmax of node 3: the C compiler refused it: kernels.c:1:")
    assert text.count("error:") == 5
    ((name, content),) = caught.value.evidence().items()
    path = tmp_path / name
    path.write_bytes(content)
    command = path.read_text().splitlines()[0].removeprefix("// zig ").split()
    again = subprocess.run([zig.zig_program(), *command], cwd=path.parent, capture_output=True, text=True, check=False)
    assert again.returncode != 0
    assert "missing0" in again.stderr


def test_a_head_that_is_parsed_once_changes_no_object(tmp_path: Path) -> None:
    head = "".join(f"static inline int part{i}(int x) {{ return x * {i}; }}\n" for i in range(300))
    texts = [f'__attribute__((visibility("default"))) int whole{i}(int x) {{ return part{i}(x); }}\n' for i in range(5)]
    shared = [Source(str(i), text, head=head) for i, text in enumerate(texts)]
    plain = [Source(str(i), head + text) for i, text in enumerate(texts)]
    target = native().code
    first = compile_objects(shared, target, cache=DiskCache(tmp_path / "first"))
    assert first == compile_objects(plain, target, cache=DiskCache(tmp_path / "second"))
    assert load(link(first, target), tmp_path).whole4(10) == 40


def test_an_error_in_a_shared_head_is_told(cache: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zig, "cache_folder", lambda: tmp_path)
    head = "/* long */\n" * 500 + "int wrong(void) { return nothing; }\n"
    with pytest.raises(CompileError, match="kernels.c:501:.*'nothing'"):
        compile_objects([Source(str(i), f"int f{i};", head=head) for i in range(4)], native().code, cache=cache)


def test_undefined_functions_are_named(cache: DiskCache) -> None:
    target = native().code
    with pytest.raises(CompileError, match="undefined symbol: hidden"):
        link(compile_objects([USES], target, cache=cache), target)


@pytest.mark.parametrize(
    ("limits", "message"),
    [(Limits(seconds=0.5), "took too long"), (Limits(memory=400 << 20), "signal|memory|status")],
)
def test_a_compiler_that_runs_away_is_stopped(cache: DiskCache, limits: Limits, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compile_objects([ENDLESS], native().code, cache=cache, limits=limits)


def test_a_missing_compiler_names_the_extra(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'argosy\[cpu\]'"):
        compile_objects([TWICE], native().code, cache=cache)


def test_a_compiler_that_lost_its_program_is_missing_too(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    zig.zig_program.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match="ziglang"):
            compile_objects([TWICE], native().code, cache=cache)
    finally:
        zig.zig_program.cache_clear()


def test_no_room_for_temporary_files(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    with pytest.raises(EnvironmentError_, match="No space left(.|\n)*free some disk space"):
        compile_objects([TWICE], native().code, cache=cache)


def test_a_killed_compile_leaves_nothing_in_the_cache(cache: DiskCache) -> None:
    with pytest.raises(CompileError):
        compile_objects([TWICE, ENDLESS], native().code, cache=cache, limits=Limits(seconds=0.5))
    assert all(entry.description["name"] == "twice" for entry in cache.entries())


MAGIC = {"linux": b"\x7fELF", "macos": b"\xcf\xfa\xed\xfe", "windows": b"MZ"}


@pytest.mark.parametrize("name", ARCHS)
def test_every_level_gets_a_library_in_the_form_of_its_system(name: str, cache: DiskCache) -> None:
    arch = ARCHS[name]
    content = link(compile_objects([host_runtime()], arch.code, cache=cache), arch.code)
    assert content.startswith(MAGIC[arch.system])
    assert b"argosy_run" in content
    if arch.system == host_cpu.system() and arch.isa == host_cpu.isa():
        assert len(content) < 20_000
