"""Which GPUs there are: driver libraries, where they were found, and what they and the kernel say of each device."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator, Sequence
from ctypes import c_size_t
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from argosy.drivers.api import ARCH_BYTES, ARCH_PLACE, ATTRIBUTES, PROPERTIES_BYTES, Api, DriverError
from argosy.drivers.topology import kfd_nodes
from argosy.options import rocm_folder

__all__ = ["DeviceInfo", "Driver", "devices", "driver", "driver_words", "rocm_folders"]

_LIBRARIES: Final = {
    "cuda": ("libcuda.so.1", "nvcuda.dll"),
    "hip": ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so", "amdhip64_7.dll", "amdhip64_6.dll"),
}
_ROCM: Final = "/opt/rocm"
_ROCM_WHEEL: Final = "_rocm_sdk_core"
"""The package of AMD's wheels that holds the runtime's library."""
_MAPS: Final = Path("/proc/self/maps")
_GROUPED_WAVE: Final = 32
"""HIP counts pairs of compute units where waves have this size (hipDeviceProp_t, multiProcessorCount)."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as its driver reports it: `kind` is cuda or hip, `arch` is spelled as the manifest does.

    `units` are compute units as the vendor counts them, `memory` is in bytes, `driver` the newest interface that the
    driver has (see `driver_words`), `pci` its place as `0000:06:00.0`. `problem` says why it can't be used.
    """

    kind: str
    index: int
    name: str
    arch: str
    units: int
    memory: int
    driver: int
    pci: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver library: `path` is where it lies, `problem` why it can't be used; one of the two is empty."""

    kind: str
    api: Api | None
    path: str
    problem: str

    @property
    def words(self) -> str:
        """What to tell of it."""
        return f"{self.path}: {self.problem}" if self.path and self.problem else self.path or self.problem


def driver_words(kind: str, version: int) -> str:
    """`major.minor` of an interface version: CUDA counts 1000 * major + 10 * minor, HIP 10^7 and 10^5."""
    large, small = (1000, 10) if kind == "cuda" else (10**7, 10**5)
    return f"{version // large}.{version % large // small}"


@lru_cache(maxsize=2)
def driver(kind: str) -> Driver:
    """The driver library of a kind, initialised."""
    tried = ""
    for name in _candidates(kind):
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            tried = tried or str(error)
            continue
        path = _path_of(name)
        try:
            found = Api(kind, library)
            found.call("init", 0)
        except AttributeError as error:
            return Driver(kind, None, path, f"it is too old: {error}")
        except DriverError as error:
            return Driver(kind, None, path, error.what)
        return Driver(kind, found, path, "")
    return Driver(kind, None, "", tried or f"no library of {kind} was found")


@lru_cache(maxsize=1)
def devices() -> tuple[DeviceInfo, ...]:
    """Every GPU that the drivers report."""
    return tuple(info for kind in _LIBRARIES for info in _reported(kind))


def _candidates(kind: str) -> Iterator[str]:
    """Where the library may be: what this process has already, `ROCM_PATH` and its usual place, the loader, wheels."""
    names = _LIBRARIES[kind]
    if hasattr(os, "RTLD_NOLOAD"):
        for name in names:
            try:
                ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
            except OSError:
                continue
            yield name
    is_hip = kind == "hip"
    yield from (str(path) for folder in (_rocm() if is_hip else ()) for path in _libraries_in(folder))
    yield from names
    yield from (str(path) for folder in (_rocm_wheel() if is_hip else ()) for path in _libraries_in(folder))


def rocm_folders() -> Sequence[str]:
    """Where ROCm may be: `ROCM_PATH`, its usual place, AMD's wheel."""
    return [*_rocm(), *_rocm_wheel()]


def _rocm() -> Sequence[str]:
    return [folder for folder in (rocm_folder(), _ROCM) if folder]


def _rocm_wheel() -> Sequence[str]:
    wheel = importlib.util.find_spec(_ROCM_WHEEL)
    return (wheel.submodule_search_locations or ()) if wheel else ()


def _libraries_in(folder: str) -> list[Path]:
    return sorted(Path(folder, "lib").glob("libamdhip64.so*"))


def _path_of(name: str) -> str:
    """The file of a library that was loaded by name."""
    if os.sep in name or not _MAPS.is_file():
        return name
    for line in _MAPS.read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")[2]
        if Path(path).name.startswith(name):
            return f"/{path}"
    return name


def _reported(kind: str) -> list[DeviceInfo]:
    found = driver(kind).api
    if found is None:
        return []
    try:
        count, version = found.number("device_count"), found.number("driver_version")
        return [_info(found, kind, index, version) for index in range(count)]
    except DriverError:
        return []


def _info(found: Api, kind: str, index: int, version: int) -> DeviceInfo:
    number = found.number("device", index)
    name, pci = ctypes.create_string_buffer(256), ctypes.create_string_buffer(64)
    found.call("device_name", name, 256, number)
    found.call("pci_id", pci, 64, number)
    memory = c_size_t()
    found.call("device_memory", ctypes.byref(memory), number)
    place = pci.value.decode().lower()
    about = {what: found.number("attribute", row.of(kind), number) for what, row in ATTRIBUTES.items()}
    units, problem = about["units"], ""
    if kind == "cuda":
        arch = f"sm_{about['major']}{about['minor']}"
    else:
        arch, units, problem = _amd(found, index, place, units, about["wave"])
    return DeviceInfo(kind, index, name.value.decode(), arch, units, memory.value, version, place, problem)


def _amd(found: Api, index: int, place: str, units: int, wave: int) -> tuple[str, int, str]:
    """Arch, compute units, and what is wrong, of an AMD GPU.

    HIP's properties and the kernel's topology must agree on the arch. The two are matched by PCI place, for
    HIP_VISIBLE_DEVICES reorders HIP's devices. HIP counts pairs of units on some archs; the topology counts units.
    """
    properties = ctypes.create_string_buffer(PROPERTIES_BYTES)
    found.call("properties", properties, index)
    name = properties.raw[ARCH_PLACE : ARCH_PLACE + ARCH_BYTES].partition(b"\0")[0].decode()
    arch = name.partition(":")[0]
    nodes = kfd_nodes()
    node = next((each for each in nodes if each.pci == place), None)
    if node is None:
        problem = f"the kernel's topology has no device at {place}" if nodes else ""
        return arch, units * (2 if wave == _GROUPED_WAVE else 1), problem
    problem = "" if node.arch == arch else f"HIP calls it {arch}, the kernel's topology {node.arch}"
    return arch, node.units or units, problem
