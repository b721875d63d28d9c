"""Memory of runs: aligned blocks, and a pool that keeps those whose size depends on data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from argosy.runtime.forking import survive_forks

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ALIGNMENT", "Bytes", "MemoryPool", "address_of", "aligned"]

Bytes: TypeAlias = "NDArray[np.uint8]"

ALIGNMENT: Final = 64
"""Of every buffer: a cache line, and the widest vector."""
_PAGE: Final = 4096
_HUGE: Final = 1 << 21
"""A large page. numpy asks the system for them; at such a boundary, all of a block may lie in them."""
_CLASSES: Final = 4
"""Size classes of the pool for each doubling: at most a fifth of a block is wasted."""


def address_of(array: NDArray[Any]) -> int:
    """Where the first element of an array lies."""
    address: int = array.__array_interface__["data"][0]
    return address


def aligned(size: int) -> Bytes:
    """Zeroed memory at a multiple of `ALIGNMENT`, of a page where it is larger than one; pages come lazily."""
    boundary = _HUGE if size >= _HUGE else _PAGE if size >= _PAGE else ALIGNMENT
    raw = np.zeros(size + boundary, np.uint8)
    skip = -address_of(raw) % boundary
    return raw[skip : skip + size]


class MemoryPool:
    """Gives blocks and takes them back for the next run; keeps at most `limit` bytes that nobody uses."""

    def __init__(self, allocate: Callable[[int], Bytes] = aligned, limit: int = 1 << 30) -> None:
        self._allocate = allocate
        self._limit = limit
        self._kept = 0
        self._free: dict[int, list[Bytes]] = defaultdict(list)
        self._lock = Lock()
        survive_forks(self)

    def after_fork(self) -> None:
        """See `Survivor`."""
        self._lock = Lock()

    def take(self, size: int) -> Bytes:
        """A block of at least `size` bytes. What it holds is undefined."""
        rounded = _rounded(size)
        with self._lock:
            free = self._free[rounded]
            if free:
                self._kept -= rounded
                return free.pop()
        return self._allocate(rounded)

    def give(self, block: Bytes) -> None:
        """Take back a block that `take` gave."""
        with self._lock:
            if self._kept + block.size <= self._limit:
                self._kept += block.size
                self._free[block.size].append(block)


def _rounded(size: int) -> int:
    """The size class: the next multiple of a quarter of the power of two below."""
    grain = max(ALIGNMENT, (1 << max(size - 1, 1).bit_length()) // (2 * _CLASSES))
    return max(-(-size // grain) * grain, ALIGNMENT)
