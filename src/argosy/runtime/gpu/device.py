"""Devices: what the drivers report, and one device with its context, memory, code, launches and graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_size_t, c_ulonglong, c_void_p
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

from numpy.typing import NDArray

from argosy.errors import DeviceError
from argosy.options import rocm_folder
from argosy.runtime.gpu.api import ATTRIBUTES, Api, DriverError
from argosy.runtime.memory import address_of

__all__ = ["Device", "DeviceInfo", "GpuDevice", "devices", "open_device"]

_LIBRARIES: Final = {
    "cuda": ("libcuda.so.1", "nvcuda.dll"),
    "hip": ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so", "amdhip64_7.dll", "amdhip64_6.dll"),
}
_ROCM: Final = ("/opt/rocm",)
_NON_BLOCKING: Final = 1
_THREAD_LOCAL: Final = 1
_SMALL_SHARED: Final = 48 * 1024
"""Shared memory that a kernel has without asking."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as its driver reports it: `kind` is cuda or hip, `arch` is spelled as the manifest does.

    `memory` is in bytes, `driver` the newest interface version that the driver has (CUDA: 1000 * major + 10 * minor).
    """

    kind: str
    index: int
    name: str
    arch: str
    units: int
    memory: int
    driver: int
    pci: str


class Device(Protocol):
    """What runs launches. Addresses and handles are integers."""

    @property
    def info(self) -> DeviceInfo:
        """What it is."""
        ...

    def enter(self) -> None:
        """Make it the one that this thread's calls are for."""
        ...

    def allocate(self, size: int) -> int:
        """Device memory; at least 256-byte aligned. Raises DeviceError where there is not enough."""
        ...

    def free(self, address: int) -> None:
        """Give memory back."""
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

    def load(self, code: bytes, entry: str, shared: int) -> int:
        """The kernel `entry` of a code object, which may take that much shared memory."""
        ...

    def launch(
        self, function: int, grid: Sequence[int], block: Sequence[int], shared: int, stream: int, parameters: bytes
    ) -> None:
        """Start a kernel."""
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


class GpuDevice:
    """A device behind libcuda or libamdhip64, by its primary context, which other libraries of the process share."""

    def __init__(self, api: Api, info: DeviceInfo) -> None:
        self._api = api
        self._info = info
        self._context = api.made("retain_context", info.index)
        self._modules: dict[bytes, int] = {}

    @property
    def info(self) -> DeviceInfo:
        """See `Device`."""
        return self._info

    def enter(self) -> None:
        """See `Device`."""
        self._api.call("set_context", self._context)

    def allocate(self, size: int) -> int:
        """See `Device`."""
        address = c_ulonglong()
        try:
            self._api.call("allocate", ctypes.byref(address), c_size_t(max(size, 1)))
        except DriverError as error:
            if not error.is_out_of_memory:
                raise
            raise DeviceError(
                f"{size} bytes of memory are not free on {self._info.name}",
                hint="run with smaller sizes or fewer runs at once (max_concurrency), or free memory there",
            ) from None
        return address.value

    def free(self, address: int) -> None:
        """See `Device`."""
        self._api.call("free", address)

    def create_stream(self) -> int:
        """See `Device`."""
        return self._api.made("create_stream", _NON_BLOCKING)

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

    def load(self, code: bytes, entry: str, shared: int) -> int:
        """See `Device`."""
        module = self._modules.get(code)
        if module is None:
            text = code if code.endswith(b"\0") else code + b"\0"
            module = self._modules[code] = self._api.made("load_module", text)
        function = self._api.made("function", module, entry.encode())
        if shared > _SMALL_SHARED:
            self._api.allow_shared_memory(function, shared)
        return function

    def launch(
        self, function: int, grid: Sequence[int], block: Sequence[int], shared: int, stream: int, parameters: bytes
    ) -> None:
        """See `Device`."""
        block_ = ctypes.create_string_buffer(parameters, len(parameters))
        size = c_size_t(len(parameters))
        words = (c_void_p * 5)(1, ctypes.addressof(block_), 2, ctypes.addressof(size), self._api.launch_end or None)
        self._api.call("launch", function, *grid, *block, shared, stream, None, words)

    def begin_capture(self, stream: int) -> None:
        """See `Device`."""
        self._api.call("begin_capture", stream, _THREAD_LOCAL)

    def end_capture(self, stream: int) -> int:
        """See `Device`."""
        captured = c_void_p()
        self._api.call("end_capture", stream, ctypes.byref(captured))
        graph = captured.value or 0
        executable = self._api.made("instantiate", graph, 0)
        self._api.call("destroy_graph", graph)
        return executable

    def launch_graph(self, graph: int, stream: int) -> None:
        """See `Device`."""
        self._api.call("launch_graph", graph, stream)

    def destroy_graph(self, graph: int) -> None:
        """See `Device`."""
        self._api.call("destroy_executable", graph)


@lru_cache(maxsize=2)
def api(kind: str) -> Api | None:
    """The driver library of a kind, initialised; None where there is none or it finds no device."""
    for name in (*_under_rocm(kind), *_LIBRARIES[kind]):
        try:
            found = Api(kind, ctypes.CDLL(name))
            found.call("init", 0)
        except (OSError, AttributeError, DriverError):
            continue
        return found
    return None


def _under_rocm(kind: str) -> list[str]:
    if kind != "hip":
        return []
    folders = [rocm_folder(), *_ROCM]
    return [str(path) for folder in folders if folder for path in sorted(Path(folder, "lib").glob("libamdhip64.so*"))]


@lru_cache(maxsize=1)
def devices() -> tuple[DeviceInfo, ...]:
    """Every GPU that the drivers report."""
    return tuple(info for kind in ("cuda", "hip") for info in _reported(kind))


def _reported(kind: str) -> list[DeviceInfo]:
    found = api(kind)
    if found is None:
        return []
    try:
        count, driver = found.number("device_count"), found.number("driver_version")
        return [_info(found, kind, index, driver) for index in range(count)]
    except DriverError:
        return []


def _info(found: Api, kind: str, index: int, driver: int) -> DeviceInfo:
    number = found.number("device", index)
    name, pci = ctypes.create_string_buffer(256), ctypes.create_string_buffer(64)
    found.call("device_name", name, 256, number)
    found.call("pci_id", pci, 64, number)
    memory = c_size_t()
    found.call("device_memory", ctypes.byref(memory), number)
    place = 0 if kind == "cuda" else 1
    about = {what: found.number("attribute", rows[place], number) for what, rows in ATTRIBUTES.items()}
    arch = f"sm_{about['major']}{about['minor']}" if kind == "cuda" else _amd_arch(index)
    return DeviceInfo(kind, index, name.value.decode(), arch, about["units"], memory.value, driver, pci.value.decode())


_KFD: Final = Path("/sys/class/kfd/kfd/topology/nodes")


def _amd_arch(index: int) -> str:
    """The arch of an AMD GPU, from the kernel driver's topology: 10000 * major + 100 * minor + stepping."""
    versions = []
    for node in sorted(_KFD.glob("*"), key=lambda path: int(path.name) if path.name.isdigit() else 0):
        text = (node / "properties").read_text(encoding="ascii") if (node / "properties").is_file() else ""
        fields = dict(line.split(None, 1) for line in text.splitlines() if " " in line)
        version = int(fields.get("gfx_target_version", 0))
        if version:
            versions.append(version)
    if index >= len(versions):
        return ""
    major, minor, stepping = versions[index] // 10000, versions[index] // 100 % 100, versions[index] % 100
    return f"gfx{major}{minor:x}{stepping:x}"


@lru_cache(maxsize=16)
def open_device(info: DeviceInfo) -> GpuDevice:
    """The device that `info` is about. Raises DeviceError where its driver refuses."""
    found = api(info.kind)
    if found is None:
        raise DeviceError(f"the driver of {info.name} is gone")
    try:
        return GpuDevice(found, info)
    except DriverError as error:
        raise DeviceError(f"{info.name} can't be used: {error}") from error
