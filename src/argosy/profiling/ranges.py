"""Ranges for profilers: each instruction of a run under the name of its node, inside a range for the run.

NVIDIA's tools show ranges of NVTX, by the package `nvtx` or a library of CUDA's toolkit or wheels; AMD's show those of
roctx, by ROCm's libraries. Both are stacks for each thread: ranges are pushed and popped.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.drivers.discovery import rocm_folders
from argosy.errors import EnvironmentError_
from argosy.ir.interpreter import Watcher
from argosy.ir.module import Constant, Instruction
from argosy.profiling.instructions import node_of, op_of
from argosy.runtime.session import Session

__all__ = ["RangeLibrary", "Ranges", "range_library"]

_NVTX: Final = ("libnvtx3interop.so.1", "libnvToolsExt.so.1", "nvToolsExt64_1.dll")
_ROCTX: Final = ("librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so", "libroctx64.so.4", "libroctx64.so")
_INSTALL: Final = {
    "nvtx": "install it with: pip install nvtx",
    "roctx": "it is part of ROCm: install rocprofiler-sdk or roctracer, and set ROCM_PATH where it lies elsewhere",
}


@dataclass(frozen=True, slots=True)
class RangeLibrary:
    """What profilers listen to: `push` begins a range inside of the last one, `pop` ends it."""

    name: str
    push: Callable[[str], object]
    pop: Callable[[], object]


def range_library(family: str) -> RangeLibrary:
    """The library for the profilers of a family of GPUs, nvidia or amd; for code on a CPU the one that is there.

    Raises EnvironmentError_ naming what to install.
    """
    kinds = {"nvidia": ("nvtx",), "amd": ("roctx",)}.get(family, ("nvtx", "roctx"))
    for kind in kinds:
        found = _nvtx() if kind == "nvtx" else _roctx()
        if found is not None:
            return found
    raise EnvironmentError_(
        f"there is no library for ranges of profilers ({' or '.join(kinds)})",
        hint="; or ".join(_INSTALL[kind] for kind in kinds),
    )


class Ranges(Watcher):
    """Runs a session with a range for each run and each instruction: step by step, without graphs of a whole run."""

    def __init__(self, library: RangeLibrary) -> None:
        self._library = library
        self._open = 0

    def run(self, session: Session, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once."""
        self._push("argosy run")
        try:
            return session.observe(inputs, self)
        finally:
            while self._open:  # also those of an instruction that failed
                self._pop()

    def begins(self, instruction: Instruction) -> None:
        if not isinstance(instruction.op, Constant):
            self._push(node_of(instruction) or op_of(instruction))

    def __call__(self, instruction: Instruction, results: Sequence[Any]) -> None:
        if not isinstance(instruction.op, Constant):
            self._pop()

    def _push(self, name: str) -> None:
        self._library.push(name)
        self._open += 1

    def _pop(self) -> None:
        self._library.pop()
        self._open -= 1


def _nvtx() -> RangeLibrary | None:
    try:
        nvtx: Any = importlib.import_module("nvtx")
    except ImportError:
        paths = [str(path) for folder in _nvidia_folders() for name in _NVTX for path in folder.glob(f"*/lib/{name}")]
        return _of_library("NVTX", (*_NVTX, *paths), "nvtxRangePushA", "nvtxRangePop")
    return RangeLibrary("NVTX", nvtx.push_range, nvtx.pop_range)


def _nvidia_folders() -> Sequence[Path]:
    """Where NVIDIA's wheels lie, which torch brings along."""
    found = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in (found.submodule_search_locations or ())] if found else []


def _roctx() -> RangeLibrary | None:
    paths = [str(Path(folder, "lib", name)) for folder in rocm_folders() for name in _ROCTX]
    return _of_library("roctx", (*_ROCTX, *paths), "roctxRangePushA", "roctxRangePop")


def _of_library(name: str, candidates: Sequence[str], push: str, pop: str) -> RangeLibrary | None:
    """The first of the libraries that loads and has the functions."""
    for library in _loaded(candidates):
        if hasattr(library, push) and hasattr(library, pop):
            return RangeLibrary(name, _pushing(getattr(library, push)), getattr(library, pop))
    return None


def _pushing(function: Any) -> Callable[[str], object]:
    """A function of C that takes a text, as one of Python."""
    function.argtypes = [ctypes.c_char_p]
    return lambda name: function(name.encode())


def _loaded(candidates: Sequence[str]) -> Iterator[ctypes.CDLL]:
    for candidate in candidates:
        try:
            yield ctypes.CDLL(candidate)
        except OSError:
            continue
