"""The memory of a device from outside of any session: how much is free, and ballast to make it scarce."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import byref, c_size_t
from dataclasses import dataclass
from typing import Final

from argosy.drivers.api import Api
from argosy.drivers.discovery import devices, driver
from argosy.errors import DeviceError
from argosy.runtime.gpu.device import Device, open_device

__all__ = ["DeviceMemory"]

_LEAST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The memory of a device, whose driver is `api`."""

    device: Device
    api: Api

    @staticmethod
    def of_first_device() -> DeviceMemory:
        """That of the first device that the drivers report."""
        info = devices()[0]
        api = driver(info.kind).api
        if api is None:
            raise DeviceError(f"the driver of {info.name} is gone")
        return DeviceMemory(open_device(info), api)

    @property
    def total(self) -> int:
        """Bytes that the device has."""
        return self.device.info.memory

    def free(self) -> int:
        """Bytes that are free."""
        free, total = c_size_t(), c_size_t()
        before = self.device.enter()
        try:
            self.api.call("free_memory", byref(free), byref(total))
        finally:
            self.device.leave(before)
        return free.value

    @contextmanager
    def scarce(self, left: int) -> Iterator[None]:
        """Hold all of it but about `left` bytes."""
        held = []
        size = self.total
        before = self.device.enter()
        try:
            while size >= _LEAST:
                with suppress(DeviceError):
                    if self.free() - size >= left:
                        held.append(self.device.allocate(size))
                        continue
                size //= 2
            yield
        finally:
            for address in held:
                self.device.free(address)
            self.device.leave(before)
