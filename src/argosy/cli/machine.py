"""What a machine has that matters to Argosy: Python and packages, drivers, the CPU. Nothing is loaded or changed."""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Final

from argosy import __version__

__all__ = ["describe_machine"]

# Extra (or `base`) and the packages that it needs, as pyproject.toml names them.
_PACKAGES: Final = {
    "base": ("numpy", "ml_dtypes", "msgspec"),
    "onnx": ("onnx",),
    "cpu": ("ziglang",),
    "gpu": ("triton",),
    "images": ("pillow",),
}
# Driver libraries, and the device file that its kernel module makes.
_DRIVERS: Final = {"NVIDIA": ("cuda", "/dev/nvidiactl"), "AMD": ("amdhip64", "/dev/kfd")}
_CPUINFO: Final = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, dict[str, str]]:
    """Sections of lines: a name and what is there."""
    return {
        "python": {
            "argosy": __version__,
            "python": f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}",
            "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        },
        "packages": {
            package: f"{_version(package)} ({'needed' if extra == 'base' else f'extra {extra}'})"
            for extra, packages in _PACKAGES.items()
            for package in packages
        },
        "drivers": {vendor: _driver(library, device) for vendor, (library, device) in _DRIVERS.items()},
        "cpu": _cpu(),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _driver(library: str, device: str) -> str:
    found = ctypes.util.find_library(library)
    kernel = "present" if Path(device).exists() else "absent"
    return f"{found or f'lib{library} not found'}; {device} {kernel}; this version runs on no GPU"


def _cpu() -> dict[str, str]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"model": _cpu_model(), "cores": f"{os.cpu_count()}, usable: {usable}"}


def _cpu_model() -> str:
    if _CPUINFO.is_file():
        for line in _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model"):
                return value.strip()
    return platform.processor() or "unknown"
