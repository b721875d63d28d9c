"""What the machine may refuse to a compile: each has its own error and exit code, and leaves nothing half-written."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import argosy
from argosy import host_cpu
from argosy.targets.cpu.arch import ARCHS, native
from argosy.toolchains import zig
from benchmarks.models import catalog
from benchmarks.models.family import serialize
from tests.cli import models
from tests.cli.conftest import Call

GOOD, BAD_COMPILE, BAD_ARTIFACT, NO_DEVICE, NO_ROOM = 0, 4, 5, 6, 7


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARGOSY_CACHE", str(folder))
    return folder


def pretend_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Put a shell script in the place of the compiler."""
    program = folder / "zig"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(zig, "zig_program", lambda: str(program))


def compiled(call: Call, model: Path, output: Path) -> None:
    """Compile for this CPU and check that the result is good."""
    assert call("compile", model, "--arch", "cpu", "-o", output, "--quiet").code == GOOD
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    found = argosy.Session(str(output), device="cpu").run({"x": x})["y"]
    np.testing.assert_allclose(found, models.classify(x), rtol=1e-5, atol=1e-7)


# Compilers that are missing, killed, or out of room


def test_a_missing_compiler_names_what_to_install(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    zig.zig_program.cache_clear()
    answer = call("compile", model, "--arch", "x86-64-v3", "-o", model.with_suffix(".argosy"))
    assert answer.code == NO_ROOM
    assert "pip install 'argosy[cpu]'" in answer.err
    assert not model.with_suffix(".argosy").exists()


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("kill -9 $$", BAD_COMPILE, "it was killed, by somebody or because memory ran out"),
        ("kill -11 $$", BAD_COMPILE, "it was killed by signal 11"),
        (
            "echo 'fatal error: error in backend: IO failure on output stream: No space left on device' >&2; exit 1",
            NO_ROOM,
            "No space left on device",
        ),
        ("echo 'ld.lld: error: failed to write output: Disk quota exceeded' >&2; exit 1", NO_ROOM, "TMPDIR"),
        ("exit 0", BAD_COMPILE, "refused it"),
    ],
)
def test_a_compiler_that_ends_badly(
    call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, code: int, message: str
) -> None:
    output = tmp_path / "model.argosy"
    with monkeypatch.context() as patch:
        pretend_compiler(patch, tmp_path, script)
        answer = call("compile", model, "--arch", "cpu", "-o", output)
        assert answer.code == code
        assert message in answer.err
    assert not output.exists()
    assert argosy_cache_entries(call) == 0
    compiled(call, model, output)


def argosy_cache_entries(call: Call) -> int:
    """Entries that `argosy cache list` tells."""
    answer = call("cache", "list", "--json")
    assert answer.code == GOOD
    return answer.out.count('"key"')


def test_a_file_that_only_the_linker_can_not_write(
    call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = zig.zig_program()
    output = tmp_path / "model.argosy"
    with monkeypatch.context() as patch:
        words = f'case "$1" in ld.lld) kill -9 $$;; *) exec {real} "$@";; esac'
        pretend_compiler(patch, tmp_path, words)
        answer = call("compile", model, "--arch", "cpu", "-o", output)
        assert answer.code == BAD_COMPILE
        assert "linking failed: it was killed" in answer.err
    assert not output.exists()
    compiled(call, model, output)


# A cache that can't be used


@pytest.mark.parametrize("place", ["file", "kernel"])
def test_a_cache_that_can_not_be_written_costs_one_warning(
    call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "file").write_text("no folder")
    # Nobody, not even root, makes folders in the kernel's own file system.
    folder = tmp_path / "file" / "cache" if place == "file" else Path("/proc/argosy")
    if place == "kernel" and not Path("/proc").is_dir():
        pytest.skip("this system has no /proc")
    monkeypatch.setenv("ARGOSY_CACHE", str(folder))
    answer = call("compile", model, "--arch", "cpu", "-o", tmp_path / "model.argosy")
    assert answer.code == GOOD
    assert answer.err.count("kernels are compiled without the cache") == 1


def run_cut_short(words: Sequence[object], cache: Path, *, before: str) -> int:
    """Run the command line in a process that kills itself just before it calls `before`; how it ended."""
    module, _, name = before.rpartition(".")
    program = (
        "import os, signal, sys, importlib\n"
        f"place = importlib.import_module({module!r})\n"
        f"setattr(place, {name!r}, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))\n"
        "from argosy.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    environment = {"ARGOSY_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], env=environment, capture_output=True, check=False
    ).returncode


@pytest.mark.parametrize("before", ["argosy.toolchains.zig.link", "os.fsync", "argosy.artifact.atomic._sync_folder"])
def test_a_compile_that_is_killed_leaves_the_old_file_or_all_of_the_new(
    call: Call, model: Path, artifact: Path, tmp_path: Path, empty_cache: Path, before: str
) -> None:
    output = tmp_path / "out" / "model.argosy"
    output.parent.mkdir()
    words = ("compile", model, "--arch", "cpu", "-o", output)
    if before != "os.fsync":
        assert run_cut_short(words, empty_cache, before=before) == -signal.SIGKILL
        assert output.exists() == before.endswith("_sync_folder"), "which comes last of all"
    else:
        output.write_bytes(artifact.read_bytes())
        assert run_cut_short(words, empty_cache, before=before) == -signal.SIGKILL
        assert output.read_bytes() == artifact.read_bytes()
    if output.exists():
        assert call("run", output, "--dim", "N=1").code == GOOD
    compiled(call, model, output)


def test_a_process_that_is_killed_while_it_fills_the_cache_spoils_nothing(
    call: Call, model: Path, tmp_path: Path, empty_cache: Path
) -> None:
    output = tmp_path / "model.argosy"
    words = ("compile", model, "--arch", "cpu", "-o", output)
    assert run_cut_short(words, empty_cache, before="os.replace") == -signal.SIGKILL
    assert list(empty_cache.rglob("*.part"))
    assert argosy_cache_entries(call) == 0
    compiled(call, model, output)
    assert call("cache", "prune", "--limit", "0").code == GOOD
    assert not list(empty_cache.rglob("*.part"))


# Another CPU


def test_an_artifact_for_another_cpu_says_what_it_is_for(call: Call, model: Path, tmp_path: Path) -> None:
    other = next(arch for arch in ARCHS.values() if arch.isa != native().isa and arch.system == host_cpu.system())
    output = tmp_path / "other.argosy"
    assert call("compile", model, "--arch", other.name, "-o", output, "--quiet").code == GOOD
    answer = call("run", output, "--device", "cpu")
    assert answer.code == NO_DEVICE
    assert f"its instruction set is {other.isa}, this CPU's {native().isa}" in answer.err
    assert call("run", output, "--input-range", "x=0..1", "--dim", "N=1").code == GOOD, "ref runs it"
    slim = tmp_path / "slim.argosy"
    assert call("compile", model, "--arch", other.name, "--slim", "-o", slim, "--quiet").code == GOOD
    assert call("run", slim, "--dim", "N=1").code == NO_DEVICE


# Equal bytes


def test_equal_bytes_in_any_folder_with_any_cache_and_any_jobs(tmp_path: Path) -> None:
    content = serialize(catalog.make("mobilenet_small"))[0]
    made = []
    for folder, cache, jobs in (("a", "one", 1), ("b/deeper", "two", 3), ("c", "one", 2)):
        place = tmp_path / folder
        (place / "temporary").mkdir(parents=True)
        (place / "model.onnx").write_bytes(content)
        environment = {
            "ARGOSY_CACHE": str(tmp_path / cache),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TMPDIR": str(place / "temporary"),
            "PYTHONHASHSEED": str(jobs),
        }
        words = ["compile", "model.onnx", "--arch", "x86-64-v3,neoverse-v1", "--jobs", str(jobs), "--dim", "batch=1,2"]
        done = subprocess.run(
            [sys.executable, "-m", "argosy", *words],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        made.append((place / "model.argosy").read_bytes())
    assert made[0] == made[1], "another folder, another cache, other jobs"
    assert made[0] == made[2], "a warm cache"


def test_processes_that_compile_at_once_share_a_cache(tmp_path: Path, model: Path, empty_cache: Path) -> None:
    environment = {"ARGOSY_CACHE": str(empty_cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    outputs = [tmp_path / f"{number}.argosy" for number in range(3)]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "argosy", "compile", str(model), "--arch", "cpu", "-o", str(output)],
            env=environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for output in outputs
    ]
    for process in running:
        errors = process.communicate()[1]
        assert process.returncode == 0, errors
        assert "damaged" not in errors
    assert len({output.read_bytes() for output in outputs}) == 1
    assert not list(empty_cache.rglob("*.part"))
