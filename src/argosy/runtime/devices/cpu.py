"""The CPU: loads a variant's shared object from checked bytes and calls it.

The bytes are those whose hash the manifest names. They go to a sealed memory file, which nobody can change
between check and load; where there are none, to a file that only this user can open. The objects need no library, so
loading runs no code.
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import finalize

from argosy.artifact.artifact import Artifact
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.manifest import VariantRecord
from argosy.errors import ArtifactError, DeviceError
from argosy.host_cpu import physical_cores
from argosy.runtime.devices.cpu_pool import POOL
from argosy.runtime.executor import Executor
from argosy.runtime.host_abi import HOST_ABI, RunRecord
from argosy.runtime.memory import Bytes, aligned
from argosy.runtime.shared_weights import SharedWeights, recipes

__all__ = ["Library", "LoadedCode", "cpu_family", "load_variant"]


def cpu_family(isa: str) -> str:
    """The family of variants with code for a CPU instruction set, by the compilers' name of it."""
    return f"cpu-{isa.replace('_', '-')}"


class Library:
    """A shared object in this process; it is unloaded when nobody needs it."""

    def __init__(self, content: bytes, where: str) -> None:
        self._where = where
        try:
            self._library, opened = _load(content)
        except OSError as error:
            raise DeviceError(f"its code can't be loaded: {error}", where=where) from error
        self._unload = finalize(self, _close, self._library._handle, opened)  # noqa: SLF001 - there is no other name
        self._unload.atexit = False  # workers may still be in it
        version = self._number("argosy_host_abi")
        if version != HOST_ABI:
            raise ArtifactError(
                f"its code follows version {version} of the host ABI, this runtime version {HOST_ABI}",
                where=where,
                hint="compile the model again, or use the Argosy that compiled it",
            )
        self._run = self._function("argosy_run", None, ctypes.c_void_p)
        self._work = self._function("argosy_work", ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        self._stop = self._function("argosy_stop", None, ctypes.c_void_p)
        self._addresses: dict[str, int] = {}

    @property
    def pool_bytes(self) -> int:
        """See `Workers`."""
        return self._number("argosy_pool_bytes")

    def work(self, pool: int, worker: int) -> int:
        """See `Workers`."""
        again: int = self._work(pool, worker)
        return again

    def stop(self, pool: int) -> None:
        """See `Workers`."""
        self._stop(pool)

    def address(self, entry: str) -> int:
        """Where a function lies; raises ArtifactError where there is none of that name."""
        found = self._addresses.get(entry)
        if found is None:
            found = ctypes.cast(self._function(entry, None), ctypes.c_void_p).value or 0
            self._addresses[entry] = found
        return found

    def bind(self, record: RunRecord) -> Callable[[], None]:
        """A function that runs `record`: one foreign call, without the interpreter's lock."""
        run, address = self._run, ctypes.addressof(record)

        def call() -> None:
            if POOL.is_stale:
                POOL.revive()
            run(address)

        return call

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        try:
            function = self._library[name]
        except AttributeError:
            raise ArtifactError(f"its code has no function {name!r}", where=self._where) from None
        function.restype, function.argtypes = result, arguments
        return function

    def _number(self, name: str) -> int:
        try:
            return ctypes.c_int64.in_dll(self._library, name).value
        except ValueError:
            raise ArtifactError(f"its code has no number {name!r}", where=self._where) from None


class LoadedCode:
    """The code objects of a variant, for the executor. `threads` bounds the workers of a run, the caller included."""

    def __init__(self, libraries: Sequence[Library], threads: int) -> None:
        self._libraries = libraries
        self.threads = threads
        self._pool = POOL.join(libraries[0], threads) if threads > 1 else None

    def address(self, code: int, entry: str) -> int:
        """See `Code`."""
        return self._libraries[code].address(entry)

    def bind(self, record: RunRecord) -> Callable[[], None]:
        """See `Code`."""
        record.pool = self._pool
        return self._libraries[0].bind(record)

    def allocate(self, size: int) -> Bytes:
        """See `Code`."""
        return aligned(size)

    def adopt(self, memory: Bytes) -> Bytes:
        """See `Code`."""
        return memory

    @property
    def sees_everything(self) -> bool:
        """See `Code`."""
        return True


def load_variant(
    artifact: Artifact, variant: VariantRecord, threads: int | None = None, shared: SharedWeights | None = None
) -> Executor:
    """The variant's plan with its code, ready to run. What other variants prepared alike it takes from `shared`."""
    plan = artifact.plan(variant.key)
    where = f"{artifact.where}: {variant.words}"
    decoder = Decoder(plan.modules, decode_symbols(plan.symbols), artifact.literal, where)
    contents = [artifact.entry(variant.key, code.path) for code in plan.code]  # all, before any is loaded
    libraries = [Library(content, where) for content in contents]
    code = LoadedCode(libraries, threads or physical_cores()) if libraries else None
    names = {} if shared is None else recipes(plan, variant)
    return Executor(plan, decoder, where, code, shared=shared, names=names)


def _load(content: bytes) -> tuple[Any, Any]:
    """The library, and what must stay open as long as it is loaded."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return _from_memory(content)
    return _from_file(content)


def _from_memory(content: bytes) -> tuple[Any, int]:
    import fcntl  # noqa: PLC0415 - not on every system

    descriptor = os.memfd_create("argosy-kernels", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        # The descriptor stays open: loaders know a library by its path, so none may be used twice.
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}"), descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _from_file(content: bytes) -> tuple[Any, None]:
    import tempfile  # noqa: PLC0415 - only where memory files are missing

    with tempfile.TemporaryDirectory(prefix="argosy-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "kernels.so"
        path.write_bytes(content)
        return ctypes.CDLL(str(path)), None


def _close(handle: int, opened: int | None) -> None:
    """Unload a library and close its memory file."""
    if hasattr(_ctypes, "dlclose"):
        _ctypes.dlclose(handle)
    if opened is not None:
        os.close(opened)
