"""The C engine's code: its functions for the operations are written from their meanings, compiled once and kept."""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.emulation.c_engine.encode import FAULT, INSTRUCTION, LAUNCH, OPERAND, SHAPE
from argosy.emulation.c_engine.trace import handler, result_types, storage
from argosy.emulation.semantics import load_semantics
from argosy.emulation.semantics.arithmetic import turns_in_bits
from argosy.emulation.semantics.table import OPERATIONS
from argosy.errors import InternalError
from argosy.host_cpu import cpu_features, isa
from argosy.options import cache_folder
from argosy.toolchains.zig import CodeTarget, Source, compile_objects, link

__all__ = ["Library", "engine_library", "engine_reason"]

_HEADERS: Final = (
    "numbers.h", "machine.h", "compute.h", "groups.h", "shadows.h", "copies.h", "access.h", "moves.h", "products.h",
    "twins.h", "run.h",
)  # fmt: skip
_NEEDED: Final = frozenset({"avx2", "fma", "f16c", "bmi2", "popcnt", "lzcnt"})
_MATH: Final = ("exp2", "log2", "sin", "tanh")


class Library:
    """The engine, loaded. `numbers` gives each operation's place in it."""

    def __init__(self, path: Path, numbers: dict[str, int]) -> None:
        self.numbers = numbers
        self._library = library = ctypes.CDLL(str(path))
        self.emulate = library.argosy_emulate
        self.emulate.restype = ctypes.c_int
        self.emulate.argtypes = [
            ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
            ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p,
            ctypes.c_uint64, ctypes.c_void_p,
        ]  # fmt: skip
        self._apply = library.argosy_emulator_apply
        self._apply.restype = None
        self._apply.argtypes = [ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p]
        for place, layout in enumerate((INSTRUCTION, OPERAND, LAUNCH, SHAPE, FAULT)):
            if library.argosy_emulator_sizes(place) != layout.itemsize:
                raise InternalError(f"the C engine's structure {place} is not as it is written to")
        math = ctypes.CDLL(ctypes.util.find_library("m"))
        self._math = (ctypes.c_void_p * len(_MATH))(
            *(ctypes.cast(getattr(math, name), ctypes.c_void_p) for name in _MATH)
        )
        library.argosy_emulator_math(ctypes.byref(self._math))

    def apply(self, name: str, sources: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The results of an operation of the table, given as many values of each source: what engines are compared by.

        Values are as registers hold them, unsigned and of their type's width; masks are bytes.
        """
        operation, count = OPERATIONS[name], len(sources[0])
        results = [np.zeros(count, storage(kind)) for kind in result_types(operation)]
        given = [np.ascontiguousarray(source) for source in sources]
        pointers = (ctypes.c_void_p * len(given))(*(each.ctypes.data for each in given))
        found = (ctypes.c_void_p * len(results))(*(each.ctypes.data for each in results))
        self._apply(self.numbers[name], count, pointers, found)
        return results


def engine_reason() -> str:
    """Why the C engine can't be had here; empty where it can."""
    if isa() == "x86_64":
        missing = _NEEDED - cpu_features()
        return f"this CPU lacks {', '.join(sorted(missing))}" if missing else ""
    return "" if isa() == "aarch64" else f"it is not written for {isa()}"


@lru_cache(maxsize=1)
def engine_library() -> Library:
    """The engine for this machine. Raises MissingExtraError without the C compiler."""
    load_semantics()
    numbers = {name: place for place, name in enumerate(OPERATIONS)}
    functions = [handler(operation, place) for place, operation in enumerate(OPERATIONS.values())]
    folder = resources.files("argosy.emulation.c_engine")
    headers = [folder.joinpath(name).read_text(encoding="utf-8") for name in _HEADERS]
    table = f"static const Handler handlers[] = {{{', '.join(f'op_{place}' for place in numbers.values())}}};\n"
    turns = turns_in_bits() << (38 * 32 - 1201)
    words = ", ".join(f"{turns >> (32 * place) & 0xFFFFFFFF:#x}u" for place in reversed(range(38)))
    text = "\n".join([f"#define TURNS {words}", *headers[:2], *functions, *headers[2:3], table, *headers[3:]])
    cpu = "x86_64_v3" if isa() == "x86_64" else "generic"
    target = CodeTarget(f"{isa()}-linux-none", cpu)
    source = Source("emulator", text, ("-fno-builtin-memcpy", "-fno-builtin-memset"))
    key = hashlib.sha256(repr((text, target)).encode()).hexdigest()
    path = cache_folder() / "emulator" / f"{key}.so"
    if not path.is_file():
        made = link(compile_objects([source], target), target)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{np.random.default_rng().integers(1 << 62)}")
        partial.write_bytes(made)
        partial.replace(path)
    return Library(path, numbers)
