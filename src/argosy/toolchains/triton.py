"""Triton kernels to code for any AMD or NVIDIA GPU, by the compilers inside the `triton` package; no device is needed.

Triton runs in worker processes of its own, each with bounds on time and memory: generated text can make it fail, crash
or hang, and then that kernel is refused with the reason while the others go on. The process that compiles never
imports it. Sources have one virtual file name and no line information, so equal sources give equal bytes in any folder.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from argosy.errors import EnvironmentError_, MissingExtraError
from argosy.host_cpu import usable_cores
from argosy.options import cache_folder
from argosy.toolchains.cache import DiskCache
from argosy.toolchains.gpu_code_object import facts_of
from argosy.toolchains.process import Limits, bounded

__all__ = [
    "CompiledKernel", "GpuCode", "Refused", "TritonSource", "compile_kernels", "compile_stages", "kernel_cache",
    "triton_version",
]  # fmt: skip

log = logging.getLogger("argosy.toolchains")

_MEMORY: Final = 8 << 30
"""Bytes that all workers together may take."""
_FORMS: Final = {"cuda": ("cubin", "ptx"), "hip": ("hsaco", "amdgcn")}
"""The code object of a backend and its assembly, as Triton names them."""


@dataclass(frozen=True, slots=True)
class GpuCode:
    """What code is made for, in Triton's words: the backend (`cuda`, `hip`), its arch, threads in a warp.

    `portable` asks for assembly that a driver finishes (PTX) instead of a code object. `generic` names the AMD arch
    that the code object is made for where it is not `arch` but one that stands for several, of which `arch` is one.
    `ptx_version` asks for PTX of that version, times ten, that older drivers know; 0 is the newest.
    """

    backend: Literal["cuda", "hip"]
    arch: int | str
    warp_size: int
    portable: bool = False
    generic: str = ""
    ptx_version: int = 0


@dataclass(frozen=True, slots=True)
class TritonSource:
    """One kernel: its text, the function that is the kernel, and the type of each parameter in order.

    `divisible` are the places of parameters that are multiples of 16 (pointers: aligned to 16 bytes), `options` those
    of Triton's backend (`num_warps`, `num_stages` …).
    """

    entry: str
    text: str
    types: tuple[tuple[str, str], ...]
    divisible: tuple[int, ...] = ()
    options: tuple[tuple[str, int | bool | str], ...] = ()


class CompiledKernel(msgspec.Struct, frozen=True):
    """A code object, or PTX, and its assembly text, with what a launch needs to know: threads, bytes of shared memory.

    `scratch` is the size of the global scratch memory of one program in bytes; `maps` are the recipes of tensor maps.
    `spilled` counts registers of a thread that lie in memory, as far as the code says (PTX does not).
    """

    form: Literal["cubin", "ptx", "hsaco"]
    code: bytes
    assembly: str
    entry: str
    threads: int
    shared: int
    scratch: int = 0
    scratch_align: int = 1
    maps: list[Any] = msgspec.field(default_factory=list)
    spilled: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a kernel could not be compiled."""

    reason: str


def triton_version() -> str:
    """The version of the compiler: part of every cache key and of a variant's. MissingExtraError without one."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        raise MissingExtraError("triton", "gpu", "compiling for GPUs") from None


def kernel_cache() -> DiskCache:
    """The cache of compiled kernels."""
    return DiskCache(cache_folder() / "kernels")


_RECORD: Final = 2
"""The version of what the cache holds of a kernel."""
_LIMITS: Final = Limits(seconds=120.0)


def compile_kernels(
    sources: Sequence[TritonSource],
    target: GpuCode,
    *,
    jobs: int | None = None,
    limits: Limits = _LIMITS,
    cache: DiskCache | None = None,
) -> list[CompiledKernel | Refused]:
    """Compile each source, in parallel processes; what the cache holds is not compiled.

    `jobs` bounds the processes (default: one for each usable core); `limits.seconds` is for one kernel, the memory
    for all processes together is bounded apart. Raises MissingExtraError without the compiler, EnvironmentError_
    where no process can be started. A kernel that Triton can't compile is Refused.
    """
    version = triton_version()
    store = kernel_cache() if cache is None else cache
    keys = [_key(source, target, version) for source in sources]
    found: dict[str, CompiledKernel | Refused] = {}
    missing: dict[str, TritonSource] = {}
    for key, source in zip(keys, sources, strict=True):
        if key in found or key in missing:
            continue
        held = _held(store, key)
        if held is None:
            missing[key] = source
        else:
            found[key] = held
    if missing:
        workers = min(jobs or usable_cores(), len(missing))
        log.info("compiling %d of %d kernels for %s", len(missing), len(sources), target.arch)
        crew = _Crew(target, Limits(limits.seconds, _MEMORY // workers), missing)
        found.update(crew.run(workers))
        for key, source in missing.items():
            made = found[key]
            if isinstance(made, CompiledKernel):
                about = {"name": source.entry, "target": str(target.arch), "triton": version}
                store.put(key, msgspec.msgpack.encode(made), about)
        store.prune()
    return [found[key] for key in keys]


def compile_stages(
    sources: Sequence[TritonSource], target: GpuCode, *, jobs: int | None = None, limits: Limits = _LIMITS
) -> list[tuple[CompiledKernel | Refused, dict[str, str]]]:
    """Compile each source anew, without the cache: the kernel, and the text of each stage on the way, in order."""
    triton_version()
    workers = max(min(jobs or usable_cores(), len(sources)), 1)
    known = {str(number): source for number, source in enumerate(sources)}
    crew = _Crew(target, Limits(limits.seconds, _MEMORY // workers), known, stages=True)
    made = crew.run(workers)
    return [(made[key], crew.texts.get(key, {})) for key in known]


def _held(store: DiskCache, key: str) -> CompiledKernel | None:
    payload = store.get(key)
    return None if payload is None else msgspec.msgpack.decode(payload, type=CompiledKernel)


def _key(source: TritonSource, target: GpuCode, version: str) -> str:
    texts = (
        _RECORD, source.text, source.entry, source.types, source.divisible, sorted(source.options), target.backend,
        target.arch, target.warp_size, target.portable, target.generic,
        target.ptx_version, version,
    )  # fmt: skip
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


class _Crew:
    """Workers that share a queue of jobs; each thread feeds one process, and starts it anew when it died."""

    def __init__(
        self, target: GpuCode, limits: Limits, sources: Mapping[str, TritonSource], *, stages: bool = False
    ) -> None:
        self.target = target
        self.stages = stages
        self.texts: dict[str, dict[str, str]] = {}
        self.limits = limits
        self.sources = sources
        self.done: dict[str, CompiledKernel | Refused] = {}
        self.fault: BaseException | None = None

    def run(self, workers: int) -> dict[str, CompiledKernel | Refused]:
        """All answers, by key."""
        jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
        # The longest first, so that the last worker to end ends early.
        for key in sorted(self.sources, key=lambda key: -len(self.sources[key].text)):
            jobs.put(key)
        with tempfile.TemporaryDirectory(prefix="argosy-") as folder:
            threads = [
                threading.Thread(target=self._serve, args=(jobs, Path(folder) / str(number)), daemon=True)
                for number in range(workers)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if self.fault is not None:
            raise self.fault
        return self.done

    def _serve(self, jobs: queue.SimpleQueue[str], folder: Path) -> None:
        try:
            folder.mkdir()
            worker: _Worker | None = None
            while self.fault is None:
                try:
                    key = jobs.get_nowait()
                except queue.Empty:
                    break
                worker = worker or _Worker(folder, self.limits)
                answer, alive = worker.ask(_job(self.sources[key], self.target) | {"stages": self.stages})
                self.done[key] = _made(answer, self.target)
                if self.stages and "files" in answer:
                    binary = _FORMS[self.target.backend][0]
                    self.texts[key] = {name: text for name, text in answer["files"].items() if name != binary}
                if not alive:
                    worker = None
            if worker is not None:
                worker.end()
        except BaseException as error:  # noqa: BLE001 - raised again where the crew was started
            self.fault = error


def _job(source: TritonSource, target: GpuCode) -> dict[str, Any]:
    return {
        "text": source.text,
        "entry": source.entry,
        "types": source.types,
        "divisible": source.divisible,
        "options": dict(source.options) | ({"ptx_version": target.ptx_version} if target.ptx_version else {}),
        "backend": target.backend,
        "arch": target.arch,
        "warp_size": target.warp_size,
        "generic": target.generic,
    }


def _made(answer: dict[str, Any], target: GpuCode) -> CompiledKernel | Refused:
    if "error" in answer:
        return Refused(answer["error"])
    about, files = answer["metadata"], answer["files"]
    form, text = _FORMS[target.backend]
    if about["profile_scratch_size"] or about["num_ctas"] != 1:
        return Refused("it asks for profiling memory or clusters, which launches here don't have")
    code = files[text].encode() if target.portable else base64.b64decode(files[form])
    kind: Literal["cubin", "ptx", "hsaco"] = "ptx" if target.portable else "cubin" if form == "cubin" else "hsaco"
    return CompiledKernel(
        kind,
        code,
        files[text],
        about["name"],
        about["num_warps"] * about["warp_size"],
        about["shared"],
        about["global_scratch_size"],
        about["global_scratch_align"],
        about["tensordesc_meta"] or [],
        facts_of(kind, code).spilled,
    )


class _Worker:
    """A process that runs Triton."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._limits = limits
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        command = (sys.executable, "-m", "argosy.toolchains.triton_worker")
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a list of words
                [*bounded(limits.memory), *command],
                env=_environment(folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentError_(f"can't be started: {error.strerror or error}", where=sys.executable) from error

    def ask(self, job: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The answer to a job, and whether the process lives on."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._kill()

        timer = threading.Timer(self._limits.seconds, stop)
        timer.start()
        line = b""
        try:
            # A worker that died breaks the pipe.
            with contextlib.suppress(OSError):
                self._stdin.write(json.dumps(job).encode() + b"\n")
                self._stdin.flush()
                line = self._stdout.readline()
        finally:
            timer.cancel()
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer, True
        self._kill()
        status = self._process.wait()
        return {"error": self._end(status, timed_out=late.is_set())}, False

    def end(self) -> None:
        """Let the process end."""
        self._stdin.close()
        self._process.wait()
        self._stdout.close()
        self._errors.close()

    @property
    def _stdin(self) -> Any:
        return self._process.stdin

    @property
    def _stdout(self) -> Any:
        return self._process.stdout

    def _end(self, status: int, *, timed_out: bool) -> str:
        if timed_out:
            return f"Triton took more than {self._limits.seconds:.0f} s and was stopped"
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._errors.tell() - 2000, 0))
        words = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"Triton {how}{': ' + words[-1] if words else ''}"

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()


def _environment(folder: Path) -> dict[str, str]:
    """All that a worker sees of the environment: where Python finds its modules, and folders of its own."""
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TRITON_DISABLE_LINE_INFO": "1",
    }
