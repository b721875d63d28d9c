"""Memory in which an access out of bounds crashes, for the host runtime of this process.

Every buffer of an arena, every weight and every block lies in pages of its own, flush with their end or with their
beginning, and the page beyond is forbidden. What a run has not written yet is not zero but all ones. Linux only.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from argosy.artifact.arena import Placement, live_bytes
from argosy.runtime import body, layout, memory
from argosy.runtime.devices import cpu
from argosy.runtime.memory import ALIGNMENT, Bytes, address_of

__all__ = ["guard_memory"]

_PAGE: Final = mmap.PAGESIZE
_FORBIDDEN: Final = 0
_MOST: Final = 1 << 28
"""Bytes of an arena or block; models that ask for more are not run."""


class _Guarded:
    """Blocks with forbidden pages around them. `ends` says at which end a block is flush with them."""

    def __init__(self) -> None:
        self.ends = True
        self._forbid: Callable[..., int] = ctypes.CDLL(None, use_errno=True).mprotect
        self._arenas: dict[tuple[int, tuple[int, ...]], list[int]] = {}

    def block(self, size: int) -> Bytes:
        """Memory of `size` zero bytes between two forbidden pages."""
        if size > _MOST:
            raise MemoryError
        room = -(-size // _PAGE) * _PAGE
        mapped = np.frombuffer(mmap.mmap(-1, room + 2 * _PAGE), np.uint8)
        self.forbid(address_of(mapped))
        self.forbid(address_of(mapped) + _PAGE + room)
        first = _PAGE + (room - _rounded(size) if self.ends else 0)
        return mapped[first : first + size]

    def forbid(self, address: int) -> None:
        """Let any access to a page crash."""
        if self._forbid(ctypes.c_void_p(address), ctypes.c_size_t(_PAGE), _FORBIDDEN) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

    def place(self, sizes: Sequence[int], starts: Sequence[int], ends: Sequence[int], alignment: int) -> Placement:
        """Like `argosy.artifact.arena.place`, with each buffer in pages of its own and a page to forbid behind."""
        del alignment
        offsets: list[int] = []
        guards: list[int] = [0]
        top = _PAGE
        for size in sizes:
            room = -(-size // _PAGE) * _PAGE
            offsets.append(top + (room - _rounded(size) if self.ends else 0))
            guards.append(top + room)
            top += room + _PAGE
        self._arenas[top, tuple(offsets)] = guards
        return Placement(tuple(offsets), top, live_bytes(sizes, starts, ends))

    def guard(self, arena: Bytes, size: int, offsets: Sequence[int]) -> None:
        """Forbid the pages between the buffers of an arena, and fill the others."""
        guards = self._arenas[size, tuple(offsets)]
        for first, last in pairwise(guards):
            arena[first + _PAGE : last] = 0xFF
        for offset in guards:
            self.forbid(address_of(arena) + offset)


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def guard_memory() -> Callable[[bool], None]:
    """Guard all memory of sessions made from now on; the function that says whether blocks are flush at their ends."""
    guarded = _Guarded()
    frame = layout.Workspace.frame

    def framed(self: layout.Workspace, of: layout.Layout, build: Callable[..., Any]) -> layout.Frame:
        before = self.arena

        def built(made: layout.Layout, workspace: layout.Workspace) -> layout.Frame:
            if workspace.arena is not before and made.arena:
                guarded.guard(workspace.arena, made.arena, tuple(made.offsets.values()))
            found: layout.Frame = build(made, workspace)
            return found

        return frame(self, of, built)

    def adopted(self: cpu.LoadedCode, held: Bytes) -> Bytes:
        del self
        copy = guarded.block(held.size)
        copy[:] = held
        return copy

    replaced: Mapping[tuple[Any, str], Any] = {
        (body, "place"): guarded.place,
        (layout.Workspace, "frame"): framed,
        (layout, "aligned"): guarded.block,
        (cpu, "aligned"): guarded.block,
        (cpu.LoadedCode, "adopt"): adopted,
        (memory, "_rounded"): _rounded,
    }
    for (place, name), function in replaced.items():
        if not hasattr(place, name):
            raise AttributeError(f"{place} has no {name} to replace")
        setattr(place, name, function)

    def choose(ends: bool) -> None:
        guarded.ends = ends

    return choose
