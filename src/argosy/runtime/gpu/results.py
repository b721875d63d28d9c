"""Device memory of results that callers keep: given back for later results when they let go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod
from typing import Any
from weakref import finalize

import numpy as np

from argosy.errors import DeviceError
from argosy.runtime.gpu.array import DeviceArray, follow
from argosy.runtime.gpu.device import Device

__all__ = ["ResultMemory"]


class ResultMemory:
    """Blocks by size. They outlive the session as long as somebody has an array in one of them."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
        finalize(self, _release, device, self._free)

    def array(self, shape: Sequence[int], dtype: np.dtype[Any], writer: int, stream: int | None = None) -> DeviceArray:
        """A new array; what it holds is undefined. It is written on the stream `writer`, and ready in that of `stream`.

        What may still read its block, on the default stream or that of its last array, is waited for by the caller and
        here.
        """
        return self.filled(self.take(prod(shape) * dtype.itemsize, writer, stream), shape, dtype, stream)

    def take(self, size: int, writer: int, stream: int | None = None) -> int:
        """A block for an array of that many bytes: for `filled`, or to be given back by `give`. See `array`."""
        size = max(size, 1)
        free = self._free[size]
        try:
            address, last = free.pop()
        except IndexError:
            return self._device.allocate(size)
        if last is not None and last != stream:
            follow(self._device, writer, last)
        return address

    def give(self, address: int, size: int) -> None:
        """Give a block back that became no array, and that nobody writes any more."""
        self._free[max(size, 1)].append((address, None))

    def filled(
        self, address: int, shape: Sequence[int], dtype: np.dtype[Any], stream: int | None = None
    ) -> DeviceArray:
        """The array in a block of `take`."""
        made = DeviceArray(self._device, address, shape, dtype, self, stream)
        finalize(made, self._free[max(made.nbytes, 1)].append, (address, stream)).atexit = False
        return made


def _release(device: Device, free: dict[int, list[tuple[int, int | None]]]) -> None:
    try:
        before = device.enter()
    except DeviceError:  # a forked child
        return
    for addresses in free.values():
        while addresses:
            device.free(addresses.pop()[0])
    device.leave(before)
