"""The memory that emulated code may touch: the blocks it was given, and nothing else."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.errors import DeviceError

__all__ = ["Fault", "Memory"]

_ALIGNMENT: Final = 4096
_RED_ZONE: Final = 4096
_POISON: Final = 0xCD


class Fault(DeviceError):  # noqa: N818 - what hardware calls it
    """Emulated code did what it must not: touched memory out of bounds, raced, or went where there is no code."""


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    size: int
    bytes: NDArray[np.uint8]
    whole: NDArray[np.uint8]


class Memory:
    """Blocks of memory at their addresses in this process, apart from each other by red zones."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: dict[int, _Block] = {}

    def allocate(self, size: int) -> int:
        """A new block, filled with a pattern that is no sensible value."""
        room = max(size, 1)
        whole = np.full(room + _ALIGNMENT + 2 * _RED_ZONE, _POISON, np.uint8)
        first = whole.__array_interface__["data"][0]
        shift = -(first + _RED_ZONE) % _ALIGNMENT + _RED_ZONE
        start = first + shift
        self._blocks[start] = _Block(start, size, whole[shift : shift + room], whole)
        insort(self._starts, start)
        return start

    def free(self, address: int) -> None:
        """Give a block back."""
        del self._blocks[address]
        self._starts.remove(address)

    def ranges(self) -> NDArray[np.uint64]:
        """First and last address of each block, in order; shape (n, 2)."""
        return np.array([(start, start + self._blocks[start].size) for start in self._starts], np.uint64).reshape(-1, 2)

    def block(self, address: int, size: int) -> NDArray[np.uint8] | None:
        """The bytes at an address, where a block holds all of them."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        block = self._blocks[self._starts[place]]
        first = address - block.start
        return block.bytes[first : first + size] if first + size <= block.size else None

    def read(self, addresses: NDArray[np.uint64], size: int) -> NDArray[np.uint8]:
        """`size` bytes at each of n addresses; shape (n, size). Raises Fault."""
        found = self._one(addresses, size)
        if found is not None:
            return _read(*found, size)
        values = np.empty((len(addresses), size), np.uint8)
        for block, chosen in self._apart(addresses, size):
            values[chosen] = _read(block.bytes, (addresses[chosen] - np.uint64(block.start)).astype(np.int64), size)
        return values

    def write(self, addresses: NDArray[np.uint64], values: NDArray[np.uint8]) -> None:
        """Write rows of bytes, shape (n, size), in this order. Raises Fault."""
        size = values.shape[1]
        found = self._one(addresses, size)
        if found is not None:
            _write(*found, values)
            return
        for block, chosen in self._apart(addresses, size):
            _write(block.bytes, (addresses[chosen] - np.uint64(block.start)).astype(np.int64), values[chosen])

    def _one(self, addresses: NDArray[np.uint64], size: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """The bytes of the block that holds all places, and the offsets in it; None where no one block does."""
        lowest, highest = int(addresses.min()), int(addresses.max())
        place = bisect_right(self._starts, lowest) - 1
        if place < 0:
            return None
        block = self._blocks[self._starts[place]]
        if highest + size > block.start + block.size:
            return None
        return block.bytes, (addresses - np.uint64(block.start)).astype(np.int64)

    def _apart(self, addresses: NDArray[np.uint64], size: int) -> Iterator[tuple[_Block, NDArray[np.bool_]]]:
        """Each block that holds some of the places, with which. Raises Fault for a place in none."""
        numbers = self._check(addresses, size)
        for number in np.unique(numbers):
            yield self._blocks[self._starts[number]], numbers == number

    def _check(self, addresses: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
        """The number of the block of each place. Raises Fault for one that is in none."""
        starts = np.asarray(self._starts, np.uint64)
        places = np.searchsorted(starts, addresses, side="right") - 1
        sizes = np.asarray([self._blocks[start].size for start in self._starts], np.uint64)
        inside = places >= 0
        held = np.where(inside, places, 0)
        if len(starts):
            inside &= addresses - starts[held] + np.uint64(size) <= sizes[held]
        if not inside.all():
            wrong = int(addresses[~inside][0])
            raise Fault(f"{size} bytes at {wrong:#x} lie in no buffer{self.near(wrong)}")
        return places

    def near(self, address: int) -> str:
        """Where an address lies beside the blocks, in words; empty where it is near none."""
        for start in self._starts:
            block = self._blocks[start]
            if start - _RED_ZONE <= address < start:
                return f": {start - address} bytes before one of {block.size}"
            if start + block.size <= address < start + block.size + _RED_ZONE:
                return f": {address - start - block.size} bytes past the end of one of {block.size}"
            if start <= address < start + block.size:
                return f": across the end of one of {block.size}"
        return ""


def _read(block: NDArray[np.uint8], offsets: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    if size % 4 == 0 and not (offsets & 3).any():
        words = block[: len(block) // 4 * 4].view(np.uint32)
        return words[(offsets >> 2)[:, None] + np.arange(size // 4)].view(np.uint8)
    return block[offsets[:, None] + np.arange(size)]


def _write(block: NDArray[np.uint8], offsets: NDArray[np.int64], values: NDArray[np.uint8]) -> None:
    size = values.shape[1]
    if size % 4 == 0 and not (offsets & 3).any():
        words = block[: len(block) // 4 * 4].view(np.uint32)
        words[(offsets >> 2)[:, None] + np.arange(size // 4)] = np.ascontiguousarray(values).view(np.uint32)
    else:
        block[offsets[:, None] + np.arange(size)] = values
