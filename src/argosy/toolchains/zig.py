"""C to native code for any CPU and system, by the clang and lld inside the `ziglang` package.

Objects are made by `zig cc -c` and linked by the bare linker: `zig cc -shared` would first build a C library for
every new target. The code is freestanding, so nothing of a C library is needed. File names in a compile are
fixed and sources carry no paths or times, so equal sources give equal bytes in any folder.

A compile costs about 30 ms beyond its text: one kernel per source is fine, and caches best. A long beginning
that many sources share is parsed once. Headers of intrinsics cost 200 ms: generated code uses the compiler's builtins.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Final

from argosy.errors import CompileError, EnvironmentError_, MissingExtraError
from argosy.host_cpu import usable_cores
from argosy.options import cache_folder
from argosy.toolchains.cache import DiskCache
from argosy.toolchains.process import DEFAULT_LIMITS, Finished, Limits, run_tool

__all__ = ["CodeTarget", "Source", "compile_objects", "link", "object_cache", "zig_program", "zig_version"]

log = logging.getLogger("argosy.toolchains")

_FLAGS: Final = (
    "-std=gnu23", "-O3", "-g0", "-ffreestanding", "-fvisibility=hidden",
    "-ffp-contract=off", "-fno-math-errno", "-fno-sanitize=all", "-fno-stack-protector", "-fomit-frame-pointer",
    "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-fno-ident", "-Wno-everything",
)  # fmt: skip
"""Of every compile; a target's and a source's own flags follow and win."""

_EMULATIONS: Final = {"x86_64": "elf_x86_64", "aarch64": "aarch64linux"}
_SOURCE: Final = "kernels.c"
_HEAD: Final = "head.h"
_OBJECT: Final = "kernels.o"
_LINKED: Final = "kernels.so"
_LONG_HEAD: Final = 4096
_SHARED: Final = 3
"""Sources that must share a head, and its length, for it to be worth parsing once."""
_DIAGNOSTICS: Final = 5
_MORE_DISK: Final = "free some disk space, or name another folder in TMPDIR"
_DISK_FAULTS: Final = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)))
"""What clang and lld say where the disk refuses."""


@dataclass(frozen=True, slots=True)
class CodeTarget:
    """What code is made for, in the compiler's words: a triple (`x86_64-linux-none`), a CPU, further flags."""

    triple: str
    cpu: str
    flags: tuple[str, ...] = ()

    @property
    def isa(self) -> str:
        """Instruction set: the first word of the triple."""
        return self.triple.split("-")[0]

    @property
    def system(self) -> str:
        """Operating system: the second word of the triple."""
        return self.triple.split("-")[1]


@dataclass(frozen=True, slots=True)
class Source:
    """A C file: a name for people, its text, and flags of its own.

    `head` comes before the text; where many sources have the same long one, it is parsed once for all of them.
    """

    name: str
    text: str
    flags: tuple[str, ...] = ()
    head: str = ""


def zig_version() -> str:
    """The version of the compiler: part of every cache key and of a variant's. MissingExtraError without one."""
    try:
        return metadata.version("ziglang")
    except metadata.PackageNotFoundError:
        raise MissingExtraError("ziglang", "cpu", "compiling for CPUs") from None


@lru_cache(maxsize=1)
def zig_program() -> str:
    """Path of the compiler's program. Raises MissingExtraError where it is not installed."""
    found = importlib.util.find_spec("ziglang")
    for folder in (found.submodule_search_locations or ()) if found else ():
        for name in ("zig", "zig.exe"):
            if (Path(folder) / name).is_file():
                return str(Path(folder) / name)
    raise MissingExtraError("ziglang", "cpu", "compiling for CPUs")


def object_cache() -> DiskCache:
    """The cache of compiled objects."""
    return DiskCache(cache_folder() / "objects")


def compile_objects(
    sources: Sequence[Source],
    target: CodeTarget,
    *,
    jobs: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    cache: DiskCache | None = None,
    cached: bool = True,
) -> list[bytes]:
    """Compile each source to an object file, in parallel processes; what the cache holds is not compiled if `cached`.

    `jobs` bounds the processes (default: one for each usable core). Raises CompileError with the first
    diagnostics and the text as evidence, MissingExtraError without the compiler.
    """
    store = object_cache() if cache is None else cache
    version = zig_version()
    keys = [_key(source, target, version) for source in sources]
    objects: dict[str, bytes] = {}
    missing: dict[str, Source] = {}
    for key, source in zip(keys, sources, strict=True):
        if key not in objects and key not in missing:
            found = store.get(key) if cached else None
            if found is None:
                missing[key] = source
            else:
                objects[key] = found
    if missing:
        workers = min(jobs or usable_cores(), len(missing))
        log.info("compiling %d of %d sources for %s", len(missing), len(sources), target.cpu)
        # The longest first, so that the last worker to end ends early.
        order = sorted(missing, key=lambda key: -len(missing[key].text))
        with _scratch_folder() as folder, ThreadPoolExecutor(workers, "argosy-compile") as pool:
            compiler = _Compiler(zig_program(), target, limits, folder)
            compiler.parse_heads(missing.values())
            futures = {key: pool.submit(compiler.compile, missing[key], key) for key in order}
            try:
                for key, future in futures.items():
                    objects[key] = made = future.result()
                    store.put(key, made, _description(missing[key], target, version))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        store.trim()
    return [objects[key] for key in keys]


def link(objects: Sequence[bytes], target: CodeTarget, *, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Link objects to one shared object that needs no other: ELF, Mach-O or PE, as the target's system has it.

    Raises CompileError, with undefined symbols by name.
    """
    linker = _LINKERS.get(target.system)
    if linker is None:
        raise CompileError(f"there is no linker for {target.triple}")
    with _scratch_folder() as folder:
        names = [f"{number}.o" for number in range(len(objects))]
        for name, content in zip(names, objects, strict=True):
            (folder / name).write_bytes(content)
        command = (zig_program(), *linker(target), *names)
        ended = run_tool(command, folder=folder, environment=_environment(folder), limits=limits)
        if ended.status:
            _blame_disk(ended)
            raise CompileError(f"linking failed: {_first(ended)}", where=target.cpu)
        return (folder / _LINKED).read_bytes()


def _link_elf(target: CodeTarget) -> Sequence[str]:
    return (
        "ld.lld", "-m", _EMULATIONS[target.isa], "-shared", "--no-undefined", "--strip-all", "--build-id=none",
        "--hash-style=gnu", "--gc-sections", "-Bsymbolic", "-z", "noexecstack", "-z", "now", "-soname", _LINKED,
        "-o", _LINKED,
    )  # fmt: skip


def _link_mach_o(target: CodeTarget) -> Sequence[str]:
    # zig has no bare linker for macOS. Without the standard library, its compiler builds nothing first.
    return ("cc", "-target", target.triple, f"-mcpu={target.cpu}", "-shared", "-nostdlib", "-s", "-o", _LINKED)


def _link_pe(_: CodeTarget) -> Sequence[str]:
    # `-Brepro` writes a hash in place of the time.
    return ("lld-link", "-dll", "-noentry", "-nodefaultlib", "-noimplib", "-Brepro", f"-out:{_LINKED}")


_LINKERS: Final = {"linux": _link_elf, "macos": _link_mach_o, "windows": _link_pe}


class _Compiler:
    """Runs `zig cc` for one target in one scratch folder."""

    def __init__(self, zig: str, target: CodeTarget, limits: Limits, folder: Path) -> None:
        self._target = target
        self._limits = limits
        self._folder = folder
        # Windows has no other than position-independent code, and its probes of large stacks are in a C library.
        place = ("-mno-stack-arg-probe",) if target.system == "windows" else ("-fPIC",)
        self._words = (zig, "cc", "-target", target.triple, f"-mcpu={target.cpu}", *_FLAGS, *place, *target.flags)
        self._parsed: dict[tuple[str, tuple[str, ...]], str] = {}

    def parse_heads(self, sources: Iterable[Source]) -> None:
        """Parse the heads that several sources share: 30 ms of CPU time saved for each, the object stays the same."""
        counts = Counter((source.head, source.flags) for source in sources if len(source.head) >= _LONG_HEAD)
        for number, ((head, flags), count) in enumerate(counts.items()):
            if count >= _SHARED:
                folder = self._folder / f"head-{number}"
                folder.mkdir()
                (folder / _HEAD).write_text(head, encoding="utf-8")
                command = (*self._words, *flags, "-x", "c-header", _HEAD, "-o", f"{_HEAD}.pch")
                if self._run(command, folder, f"{_HEAD}.pch").status == 0:  # else a source tells what is wrong with it
                    self._parsed[head, flags] = f"../{folder.name}/{_HEAD}.pch"

    def compile(self, source: Source, key: str) -> bytes:
        """The object file of one source, made in a folder of its own."""
        folder = self._folder / key
        folder.mkdir()
        words = (*self._words, *source.flags, "-x", "c", "-c", _SOURCE, "-o", _OBJECT)
        head = self._parsed.get((source.head, source.flags))
        text = source.text if head is not None else source.head + source.text
        (folder / _SOURCE).write_text(text, encoding="utf-8")
        with_head = () if head is None else ("-Xclang", "-include-pch", "-Xclang", head)
        ended = self._run((*words, *with_head), folder, _OBJECT)
        if ended.status:
            _blame_disk(ended)
            refused = CompileError(f"the C compiler refused it: {_first(ended)}", where=source.name)
            raise refused.attach("zig", partial(_evidence, source.head + source.text, words))
        return (folder / _OBJECT).read_bytes()

    def _run(self, command: Sequence[str], folder: Path, made: str) -> Finished:
        ended = run_tool(command, folder=folder, environment=_environment(folder), limits=self._limits)
        if ended.status == 0 and not (folder / made).is_file():
            return replace(ended, status=1)
        return ended


def _blame_disk(ended: Finished) -> None:
    """Raise EnvironmentError_ where a tool failed because the disk refused what it wrote."""
    for fault in _DISK_FAULTS:
        if fault in ended.errors:
            raise EnvironmentError_(f"the compiler can't write its files: {fault}", hint=_MORE_DISK)


def _first(ended: Finished) -> str:
    """The first diagnostics of a tool that failed."""
    lines = [line for line in ended.errors.splitlines() if "error:" in line or line.startswith(("LLVM", "thread"))]
    return "\n".join(lines[:_DIAGNOSTICS]) or ended.errors.strip()[-500:] or ended.reason


def _evidence(text: str, command: Sequence[str]) -> dict[str, bytes]:
    """The text that the compiler refused, under the command that did."""
    return {_SOURCE: f"// {' '.join(['zig', *command[1:]])}\n{text}".encode()}


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    """A folder for one compile, gone at its end. A disk that refuses is an EnvironmentError_."""
    try:
        with tempfile.TemporaryDirectory(prefix="argosy-") as folder:
            yield Path(folder)
    except OSError as error:
        raise EnvironmentError_(
            f"can't write temporary files: {error.strerror or error}",
            where=str(error.filename or ""),
            hint=_MORE_DISK,
        ) from error


def _environment(folder: Path) -> dict[str, str]:
    """All that the compiler sees of the environment: where it may keep its own, short-lived cache."""
    return {"ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"), "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}


def _key(source: Source, target: CodeTarget, version: str) -> str:
    texts = (source.text, target.triple, target.cpu, *_FLAGS, "", *target.flags, "", *source.flags, version)
    return hashlib.sha256(f"{_digest(source.head)}{json.dumps(texts)}".encode()).hexdigest()


@lru_cache(maxsize=16)
def _digest(head: str) -> str:
    return hashlib.sha256(head.encode()).hexdigest()


def _description(source: Source, target: CodeTarget, version: str) -> dict[str, str]:
    flags = " ".join((*target.flags, *source.flags))
    return {"name": source.name, "target": target.triple, "cpu": target.cpu, "flags": flags, "zig": version}
