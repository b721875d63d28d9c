"""Tensors in device memory: those of other libraries as inputs, ours as outputs, by DLPack and without copies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.drivers.discovery import devices
from argosy.errors import UsageError
from argosy.runtime.dense import DenseArray
from argosy.runtime.gpu import dlpack
from argosy.runtime.gpu.device import Device, open_device
from argosy.runtime.gpu.dlpack_exchange import exchange_of

__all__ = ["DeviceArray", "device_array", "follow"]

_KINDS: Final = {"cuda": dlpack.CUDA, "hip": dlpack.ROCM}
_FAMILIES: Final = {number: kind for kind, number in _KINDS.items()}
_LEGACY: Final = 1
"""The stream in whose order a producer is asked to be ready: CUDA's default one (DLPack, Python specification)."""


class DeviceArray(DenseArray):
    """A dense tensor in the memory of a GPU. `numpy` copies it to the host; other libraries take it by DLPack.

    `owner` is what keeps the memory. Who reads it on a stream of their own keeps the array until that is done. `stream`
    is the one in whose order the values are ready, None where they are ready.
    """

    def __init__(
        self,
        device: Device,
        address: int,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        owner: Any,
        stream: int | None = None,
    ) -> None:
        self.stream = stream
        self.device = device
        self.address = address
        self.shape = tuple(shape)
        self.dtype = dtype
        self._owner = owner

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def numpy(self) -> NDArray[Any]:
        """A copy on the host."""
        copied = np.empty(self.nbytes, np.uint8)
        before = self.device.enter()
        try:
            stream = self.device.create_stream()
            try:
                if copied.size:
                    follow(self.device, stream, self.stream or 0)
                    self.device.download(copied, self.address, stream)
                self.device.synchronize(stream)
            finally:
                self.device.destroy_stream(stream)
        finally:
            self.device.leave(before)
        return copied.view(self.dtype).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001
        """For numpy."""
        if copy is False:
            raise ValueError("a tensor on a GPU can't be read without a copy")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface. AttributeError for element types that numpy has not."""
        if self.dtype.kind not in "biufc":
            raise AttributeError(f"the interface has no element type {self.dtype}")
        told: dict[str, Any] = {"shape": self.shape, "typestr": self.dtype.str, "version": 3}
        return told | {
            "data": (self.address if self.size else 0, False),
            "strides": None,
            "stream": None if self.stream is None else self.stream or _LEGACY,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind of device, by DLPack's number, and its index."""
        return _KINDS[self.device.info.kind], self.device.info.index

    def __dlpack__(self, **_: Any) -> Any:
        """A capsule for another library. The values are ready, on whichever stream they are read."""
        return dlpack.exported(self.__dlpack_device__(), self.address, self.shape, self.dtype, self)

    def __repr__(self) -> str:
        info = self.device.info
        return f"DeviceArray({self.dtype}{list(self.shape)} on {info.kind}:{info.index})"


def follow(device: Device, stream: int, other: int) -> None:
    """Let later work of a stream wait for what is in another now; 0 is the device's default stream."""
    event = device.create_event()
    try:
        device.record(event, other)
        device.wait(stream, event)
    finally:
        device.destroy_event(event)


def device_array(value: Any, where: str = "") -> DeviceArray | None:
    """A tensor of another library that lies on a GPU; None where it lies on the host.

    What its producer has not computed yet comes before what is put into the default stream, or into that of the array,
    from now on. Raises UsageError where it is not dense or of an unknown type.
    """
    if isinstance(value, DeviceArray):
        return value
    exchange = exchange_of(type(value))  # type: ignore[arg-type] # a type is hashable
    seen = exchange.view(value, where) if exchange else None
    if exchange and seen:
        stream = exchange.stream(seen.family, seen.device) or None
        return DeviceArray(_device_of(seen.family, seen.device, where), *seen[2:], value, stream)
    if hasattr(value, "__dlpack__"):
        kind, index = value.__dlpack_device__()
        if kind not in _FAMILIES:
            return None
        try:
            capsule = value.__dlpack__(stream=_LEGACY if kind == dlpack.CUDA else 0)
        except BufferError as error:
            raise UsageError(f"the tensor can't be taken by DLPack: {error}", where=where) from None
        return DeviceArray(_device_of(kind, index, where), *dlpack.imported(capsule, where)[2:], (capsule, value))
    told = value.__cuda_array_interface__
    dtype = np.dtype(told["typestr"])
    shape = tuple(told["shape"])
    dlpack.check_dense(shape, [stride // dtype.itemsize for stride in told.get("strides") or ()], where)
    return DeviceArray(_device_of(dlpack.CUDA, 0, where), told["data"][0], shape, dtype, value)


def _device_of(kind: int, index: int, where: str) -> Device:
    for info in devices():
        if (info.kind, info.index) == (_FAMILIES[kind], index):
            return open_device(info)
    raise UsageError(
        f"the tensor lies on a device of kind {kind}, number {index}, which no driver reports", where=where
    )
