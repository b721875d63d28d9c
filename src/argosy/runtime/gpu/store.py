"""What one session holds on a device, so that all of it goes back, whatever happened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.artifact.plan import TensorMapArgument
from argosy.drivers.discovery import DeviceInfo
from argosy.errors import DeviceError
from argosy.runtime.gpu.device import Device, DeviceMemoryError
from argosy.runtime.memory import address_of

__all__ = ["DeviceStore"]

log = logging.getLogger("argosy.gpu")


class DeviceStore:
    """A device that remembers what was taken from it and not given back. `release` gives it all back.

    Where memory runs out, `on_shortage` is called once, which says whether it gave some back.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._held: dict[tuple[str, int], Any] = {}
        self._bytes: dict[int, int] = {}
        self.on_shortage: Callable[[], bool] = lambda: False
        self.enter, self.leave = device.enter, device.leave
        self.upload, self.download, self.copy, self.fill = device.upload, device.download, device.copy, device.fill
        self.synchronize, self.record, self.wait = device.synchronize, device.record, device.wait
        self.function, self.launch, self.launch_graph = device.function, device.launch, device.launch_graph
        self.begin_capture, self.elapsed = device.begin_capture, device.elapsed

    @property
    def info(self) -> DeviceInfo:
        """See `Device`."""
        return self._device.info

    @property
    def reaches_host(self) -> bool:
        """See `Device`."""
        return self._device.reaches_host

    @property
    def memory(self) -> int:
        """Bytes of device memory that are held."""
        return sum(list(self._bytes.values()))

    def release(self) -> None:
        """Give everything back, the newest first, when all work has ended.

        Safe at any time, from any thread, and in a forked child.
        """
        held, self._held = list(self._held.items()), {}
        self._bytes.clear()
        try:
            before = self._device.enter()
        except DeviceError as error:
            log.debug("nothing is given back to %s: %s", self.info.name, error.what)
            return
        waits = [("synchronize", stream) for (giving, stream), _ in held if giving == "destroy_stream"]
        for doing, thing in (*waits, *((giving, thing) for (giving, _), thing in reversed(held))):
            try:
                getattr(self._device, doing)(thing)
            except DeviceError as error:  # after a fault of the device nothing of its context can be given back
                log.debug("%s on %s: %s", doing, self.info.name, error.what)
        self._device.leave(before)

    def allocate(self, size: int) -> int:
        """See `Device`."""
        try:
            address = self._device.allocate(size)
        except DeviceMemoryError:
            if not self.on_shortage():
                raise
            address = self._device.allocate(size)
        self._bytes[address] = size
        return self._keep("free", address)

    def free(self, address: int) -> None:
        """See `Device`."""
        self._bytes.pop(address, None)
        self._give("free", address)

    def allocate_host(self, size: int) -> NDArray[np.uint8]:
        """See `Device`."""
        memory = self._device.allocate_host(size)
        self._held["free_host", address_of(memory)] = memory
        return memory

    def free_host(self, memory: NDArray[np.uint8]) -> None:
        """See `Device`."""
        self._give("free_host", address_of(memory))

    def create_stream(self) -> int:
        """See `Device`."""
        return self._keep("destroy_stream", self._device.create_stream())

    def destroy_stream(self, stream: int) -> None:
        """See `Device`."""
        self._give("destroy_stream", stream)

    def create_event(self, *, timed: bool = False) -> int:
        """See `Device`."""
        return self._keep("destroy_event", self._device.create_event(timed=timed))

    def destroy_event(self, event: int) -> None:
        """See `Device`."""
        self._give("destroy_event", event)

    def load(self, code: bytes) -> int:
        """See `Device`."""
        return self._keep("unload", self._device.load(code))

    def tensor_map(
        self, argument: TensorMapArgument, address: int, dims: Sequence[int], strides: Sequence[int]
    ) -> bytes:
        """See `Device`."""
        return self._device.tensor_map(argument, address, dims, strides)

    def unload(self, module: int) -> None:
        """See `Device`."""
        self._give("unload", module)

    def end_capture(self, stream: int) -> int:
        """See `Device`."""
        return self._keep("destroy_graph", self._device.end_capture(stream))

    def destroy_graph(self, graph: int) -> None:
        """See `Device`."""
        self._give("destroy_graph", graph)

    def _keep(self, giving: str, handle: int) -> int:
        self._held[giving, handle] = handle
        return handle

    def _give(self, giving: str, handle: int) -> None:
        getattr(self._device, giving)(self._held.pop((giving, handle)))
