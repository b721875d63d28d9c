"""The CPU of this machine: its instruction set, what it can do, how many cores may be used.

Features have one name each, whatever the system calls them: those of compilers without punctuation (`avx512bf16`,
`dotprod`). Compiler and runtime both ask here: `native` means what the runtime will accept.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = ["cpu_features", "features_in", "isa", "physical_cores", "system", "usable_cores"]

_CPUINFO: Final = Path("/proc/cpuinfo")
_TOPOLOGY: Final = Path("/sys/devices/system/cpu")
_ISAS: Final = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
_SYSTEMS: Final = {"linux": "linux", "darwin": "macos", "win32": "windows"}
# What systems call features, where that is not our name. Underscores and dots are dropped in any case.
_NAMES: Final = {
    "pni": "sse3", "abm": "lzcnt", "bmi1": "bmi", "pclmulqdq": "pclmul", "shani": "sha", "lahflm": "sahf",
    "asimd": "neon", "asimdhp": "fp16", "asimddp": "dotprod", "asimdfhm": "fp16fml", "asimdrdm": "rdm",
    "atomics": "lse", "crc32": "crc", "fcma": "complxnum", "jscvt": "jsconv", "lrcpc": "rcpc", "ilrcpc": "rcpcimmo",
    "uscat": "lse2",
}  # fmt: skip
# The keys under which macOS says that an ARM core has a feature.
_SYSCTL: Final = {
    "hw.optional.AdvSIMD": "neon", "hw.optional.arm.FEAT_FP16": "fp16", "hw.optional.arm.FEAT_DotProd": "dotprod",
    "hw.optional.arm.FEAT_FHM": "fp16fml", "hw.optional.arm.FEAT_RDM": "rdm", "hw.optional.arm.FEAT_LSE": "lse",
    "hw.optional.arm.FEAT_FCMA": "complxnum", "hw.optional.arm.FEAT_JSCVT": "jsconv",
    "hw.optional.arm.FEAT_LRCPC": "rcpc", "hw.optional.arm.FEAT_LRCPC2": "rcpcimmo",
    "hw.optional.arm.FEAT_LSE2": "lse2", "hw.optional.arm.FEAT_BF16": "bf16", "hw.optional.arm.FEAT_I8MM": "i8mm",
    "hw.optional.armv8_crc32": "crc",
}  # fmt: skip


def isa() -> str:
    """The instruction set, as compilers call it: `x86_64`, `aarch64`, or what the system says."""
    import platform  # noqa: PLC0415 - the standard library's slowest import here

    machine = platform.machine().lower()
    return _ISAS.get(machine, machine)


def system() -> str:
    """The operating system: `linux`, `macos`, `windows`, or Python's name of another."""
    return _SYSTEMS.get(sys.platform, sys.platform)


@lru_cache(maxsize=1)
def cpu_features() -> frozenset[str]:
    """What every core of this machine can do. Empty where the system doesn't tell."""
    if _CPUINFO.is_file():
        return features_in(_CPUINFO.read_text(encoding="utf-8", errors="replace"))
    return _features_by_sysctl() if system() == "macos" else frozenset()


def features_in(cpuinfo: str) -> frozenset[str]:
    """The features that all processors in the text of `/proc/cpuinfo` have."""
    found: set[str] | None = None
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            names = {name.replace("_", "").replace(".", "") for name in value.split()}
            features = {_NAMES.get(name, name) for name in names}
            found = features if found is None else found & features
    return frozenset(found or ())


def _features_by_sysctl() -> frozenset[str]:
    """macOS: a key for each feature of ARM cores, lists of words for those of Intel."""
    import ctypes.util  # noqa: PLC0415 - for macOS alone

    library = ctypes.CDLL(ctypes.util.find_library("c"))

    def ask(name: str) -> bytes:
        size = ctypes.c_size_t(0)
        if library.sysctlbyname(name.encode(), None, ctypes.byref(size), None, 0) or not size.value:
            return b""
        buffer = ctypes.create_string_buffer(size.value)
        failed = library.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0)
        return b"" if failed else buffer.raw[: size.value]

    if isa() == "aarch64":
        return frozenset(feature for key, feature in _SYSCTL.items() if any(ask(key)))
    lists = ("machdep.cpu.features", "machdep.cpu.leaf7_features", "machdep.cpu.extfeatures")
    words = b" ".join(ask(name).rstrip(b"\0") for name in lists).decode("ascii", "replace").lower().split()
    names = {word.replace("_", "").replace(".", "") for word in words}
    renamed = {"avx10": "avx", "rdwrfsgs": "fsgsbase", "lahf": "sahf"}
    return frozenset(renamed.get(name, _NAMES.get(name, name)) for name in names)


def usable_cores() -> int:
    """Logical cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def physical_cores() -> int:
    """Cores that this process may use, those that share one counted once."""
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is None or not _TOPOLOGY.is_dir():
        return usable_cores()
    cores = set()
    for number in affinity(0):
        try:
            siblings = (_TOPOLOGY / f"cpu{number}/topology/thread_siblings_list").read_text(encoding="ascii")
        except OSError:
            siblings = str(number)
        cores.add(siblings.strip())
    return max(1, len(cores))
