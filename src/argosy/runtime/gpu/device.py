"""One device with its context, memory, code, launches and graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_float, c_int, c_size_t, c_ubyte, c_uint, c_ulonglong, c_void_p, pointer
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from argosy.artifact.plan import TensorMapArgument
from argosy.drivers.api import PROGRAMMATIC, SHORTAGE_HINT, Api, DriverError, LaunchAttribute, LaunchConfig
from argosy.drivers.discovery import DeviceInfo, driver
from argosy.errors import DeviceError
from argosy.runtime.forking import survive_forks
from argosy.runtime.gpu.tensor_maps import encoded_map
from argosy.runtime.memory import address_of

__all__ = ["Device", "DeviceMemoryError", "GpuDevice", "open_device"]

_SMALL_SHARED: Final = 48 * 1024
"""Shared memory that a kernel has without asking."""


class Device(Protocol):
    """What runs launches. Addresses and handles are integers."""

    @property
    def info(self) -> DeviceInfo:
        """What it is."""
        ...

    @property
    def reaches_host(self) -> bool:
        """Whether kernels may work on what `allocate_host` gives, at the same address, with every atomic operation."""
        ...

    def enter(self) -> int:
        """Make it the one that this thread's calls are for; what `leave` needs to make that undone."""
        ...

    def leave(self, before: int) -> None:
        """Give this thread back what it had before `enter`."""
        ...

    def allocate(self, size: int) -> int:
        """Device memory; at least 256-byte aligned. Raises DeviceError where there is not enough."""
        ...

    def free(self, address: int) -> None:
        """Give memory back."""
        ...

    def allocate_host(self, size: int) -> NDArray[np.uint8]:
        """Memory of the host that copies reach without a detour."""
        ...

    def free_host(self, memory: NDArray[np.uint8]) -> None:
        """Give memory of the host back."""
        ...

    def create_stream(self) -> int:
        """A queue for work."""
        ...

    def destroy_stream(self, stream: int) -> None:
        """Give a queue back."""
        ...

    def upload(self, address: int, source: NDArray[Any], stream: int) -> None:
        """Copy bytes of contiguous host memory to the device."""
        ...

    def download(self, target: NDArray[Any], address: int, stream: int) -> None:
        """Copy bytes from the device to contiguous host memory; they are there after `synchronize`."""
        ...

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes on the device."""
        ...

    def fill(self, address: int, size: int, stream: int) -> None:
        """Set bytes to zero."""
        ...

    def synchronize(self, stream: int) -> None:
        """Wait for all work of a queue."""
        ...

    def create_event(self, *, timed: bool = False) -> int:
        """A mark to put into queues; for `elapsed` a `timed` one."""
        ...

    def elapsed(self, first: int, last: int) -> float:
        """Seconds between two timed marks that the device has passed."""
        ...

    def destroy_event(self, event: int) -> None:
        """Give a mark back."""
        ...

    def record(self, event: int, stream: int) -> None:
        """Put a mark behind the work of a queue."""
        ...

    def wait(self, stream: int, event: int) -> None:
        """Let later work of a queue wait for a mark."""
        ...

    def load(self, code: bytes) -> int:
        """A module with the kernels of a code object."""
        ...

    def unload(self, module: int) -> None:
        """Give a module back."""
        ...

    def function(self, module: int, entry: str, shared: int) -> int:
        """A kernel of a module, which may take that much shared memory."""
        ...

    def tensor_map(
        self, argument: TensorMapArgument, address: int, dims: Sequence[int], strides: Sequence[int]
    ) -> bytes:
        """A map of the tensor at an address, as a parameter of a launch; `dims` in elements, `strides` in bytes."""
        ...

    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: int,
        parameters: bytes,
        *,
        programmatic: bool = False,
    ) -> None:
        """Start a kernel; a `programmatic` one may begin before the kernel in front of it has ended."""
        ...

    def begin_capture(self, stream: int) -> None:
        """From now on, remember work of a queue instead of doing it."""
        ...

    def end_capture(self, stream: int) -> int:
        """A graph of the work remembered."""
        ...

    def launch_graph(self, graph: int, stream: int) -> None:
        """Do the work of a graph."""
        ...

    def destroy_graph(self, graph: int) -> None:
        """Forget a graph."""
        ...


class DeviceMemoryError(DeviceError):
    """There is not enough memory on a device: `size` bytes were asked for, `free` are."""

    def __init__(self, name: str, size: int, free: int) -> None:
        super().__init__(f"{size} bytes of memory were asked for on {name}, {free} are free", hint=SHORTAGE_HINT)


class GpuDevice:
    """A device behind libcuda or libamdhip64, by its primary context, which other libraries of the process share."""

    def __init__(self, api: Api, info: DeviceInfo) -> None:
        self._api = api
        self._info = info
        self._context = api.made("retain_context", api.number("device", info.index))
        self._is_forked = False
        survive_forks(self)

    def after_fork(self) -> None:
        """See `Survivor`: drivers of GPUs don't work in a child."""
        self._is_forked = True

    @property
    def info(self) -> DeviceInfo:
        """See `Device`."""
        return self._info

    @property
    def reaches_host(self) -> bool:
        """See `Device`.

        CUDA's unified addressing promises it among the kernels of one device. Over PCIe, AMD's devices have few atomic
        operations on memory of the host (HIP, "Hardware atomics operation support").
        """
        return self._info.kind == "cuda"

    def enter(self) -> int:
        """See `Device`."""
        if self._is_forked:
            raise DeviceError(
                f"{self._info.name} was opened before this process was forked, and its driver does not work in a child",
                hint="start processes by spawn, or open the first session in the child",
            )
        before = self._api.made("context")
        if before != self._context:
            self._api.call("set_context", self._context)
        return before

    def leave(self, before: int) -> None:
        """See `Device`."""
        if before != self._context:
            self._api.call("set_context", before)

    def allocate(self, size: int) -> int:
        """See `Device`."""
        address = c_ulonglong()
        try:
            self._api.call("allocate", ctypes.byref(address), max(size, 1))
        except DriverError as error:
            if not error.is_out_of_memory:
                raise
            raise DeviceMemoryError(self._info.name, size, self._free_memory()) from None
        return address.value

    def _free_memory(self) -> int:
        free, total = c_size_t(), c_size_t()
        self._api.call("free_memory", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def free(self, address: int) -> None:
        """See `Device`."""
        self._api.call("free", address)

    def allocate_host(self, size: int) -> NDArray[np.uint8]:
        """See `Device`."""
        address = self._api.made("allocate_host", max(size, 1), 0)
        return np.ctypeslib.as_array((c_ubyte * size).from_address(address))

    def free_host(self, memory: NDArray[np.uint8]) -> None:
        """See `Device`."""
        self._api.call("free_host", address_of(memory))

    def create_stream(self) -> int:
        """See `Device`."""
        return self._api.made("create_stream", self._api.constant("non_blocking"))

    def destroy_stream(self, stream: int) -> None:
        """See `Device`."""
        self._api.call("destroy_stream", stream)

    def upload(self, address: int, source: NDArray[Any], stream: int) -> None:
        """See `Device`."""
        self._api.call("upload", address, address_of(source), source.nbytes, stream)

    def download(self, target: NDArray[Any], address: int, stream: int) -> None:
        """See `Device`."""
        self._api.call("download", address_of(target), address, target.nbytes, stream)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """See `Device`."""
        self._api.call("copy", target, source, size, stream)

    def fill(self, address: int, size: int, stream: int) -> None:
        """See `Device`."""
        self._api.call("fill", address, 0, size, stream)

    def synchronize(self, stream: int) -> None:
        """See `Device`."""
        self._api.call("synchronize", stream)

    def create_event(self, *, timed: bool = False) -> int:
        """See `Device`."""
        return self._api.made("create_event", self._api.constant("timing" if timed else "no_timing"))

    def elapsed(self, first: int, last: int) -> float:
        """See `Device`."""
        milliseconds = c_float()
        self._api.call("elapsed", ctypes.byref(milliseconds), first, last)
        return milliseconds.value / 1e3

    def destroy_event(self, event: int) -> None:
        """See `Device`."""
        self._api.call("destroy_event", event)

    def record(self, event: int, stream: int) -> None:
        """See `Device`."""
        self._api.call("record_event", event, stream)

    def wait(self, stream: int, event: int) -> None:
        """See `Device`."""
        self._api.call("wait_event", stream, event, 0)

    def load(self, code: bytes) -> int:
        """See `Device`."""
        return self._api.made("load_module", code if code.endswith(b"\0") else code + b"\0")

    def unload(self, module: int) -> None:
        """See `Device`."""
        self._api.call("unload_module", module)

    def function(self, module: int, entry: str, shared: int) -> int:
        """See `Device`."""
        function = self._api.made("function", module, entry.encode())
        if shared > _SMALL_SHARED:
            self._api.call("set_function_attribute", function, self._api.constant("shared_memory"), shared)
        return function

    def tensor_map(
        self, argument: TensorMapArgument, address: int, dims: Sequence[int], strides: Sequence[int]
    ) -> bytes:
        """See `Device`."""
        return encoded_map(self._api, self._info.driver, argument, address, dims, strides)

    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: int,
        parameters: bytes,
        *,
        programmatic: bool = False,
    ) -> None:
        """See `Device`."""
        held, size = ctypes.create_string_buffer(parameters, len(parameters)), c_size_t(len(parameters))
        number = self._api.constant
        words = (c_void_p * 5)(
            number("parameters"), ctypes.addressof(held), number("parameter_bytes"), ctypes.addressof(size),
            number("launch_end") or None,
        )  # fmt: skip
        if programmatic and self._api.has("launch_with"):
            attribute = LaunchAttribute(PROGRAMMATIC, 0, (c_int * 16)(1))
            config = LaunchConfig((c_uint * 3)(*grid), (c_uint * 3)(*block), shared, stream, pointer(attribute), 1)
            self._api.call("launch_with", ctypes.byref(config), function, None, words)
            return
        self._api.call("launch", function, *grid, *block, shared, stream, None, words)

    def begin_capture(self, stream: int) -> None:
        """See `Device`."""
        self._api.call("begin_capture", stream, self._api.constant("thread_local"))

    def end_capture(self, stream: int) -> int:
        """See `Device`."""
        captured = c_void_p()
        self._api.call("end_capture", stream, ctypes.byref(captured))
        graph = captured.value or 0
        try:
            return self._api.made("instantiate", graph, 0)
        finally:
            self._api.call("destroy_graph", graph)

    def launch_graph(self, graph: int, stream: int) -> None:
        """See `Device`."""
        self._api.call("launch_graph", graph, stream)

    def destroy_graph(self, graph: int) -> None:
        """See `Device`."""
        self._api.call("destroy_executable", graph)


@lru_cache(maxsize=16)
def open_device(info: DeviceInfo) -> GpuDevice:
    """The device that `info` is about. Raises DeviceError where its driver refuses."""
    found = driver(info.kind).api
    if found is None:
        raise DeviceError(f"the driver of {info.name} is gone")
    try:
        return GpuDevice(found, info)
    except DriverError as error:
        raise DeviceError(f"{info.name} can't be used: {error}") from error
