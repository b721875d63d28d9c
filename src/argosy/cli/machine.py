"""What a machine has that matters to Argosy: Python and packages, drivers, GPUs, the CPU. Nothing is changed."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any, Final

from argosy import __version__

__all__ = ["describe_machine", "machine_json"]

# Extra (or `base`) and the packages that it needs, as pyproject.toml names them.
_PACKAGES: Final = {
    "base": ("numpy", "ml_dtypes", "msgspec"),
    "onnx": ("onnx",),
    "cpu": ("ziglang",),
    "gpu": ("triton",),
    "images": ("pillow",),
}
# Kinds of GPU drivers, and the device file that the kernel module of each makes.
_DRIVERS: Final = {"NVIDIA": ("cuda", "/dev/nvidiactl"), "AMD": ("hip", "/dev/kfd")}
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
        "drivers": {vendor: _driver(kind, device) for vendor, (kind, device) in _DRIVERS.items()},
        "gpus": _gpus(),
        "cpu": _cpu(),
    }


def machine_json() -> Any:
    """The machine as `compile --fleet` reads it."""
    import msgspec

    from argosy.drivers.machine import this_machine

    return msgspec.to_builtins(this_machine(), order="sorted")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _driver(kind: str, device: str) -> str:
    from argosy.drivers.discovery import driver

    found = driver(kind)
    kernel = "present" if Path(device).exists() else "absent"
    return f"{found.words or 'ready'}; {device} {kernel}"


def _gpus() -> dict[str, str]:
    """Every GPU that the drivers report, by what `--device` takes."""
    from argosy.drivers.discovery import devices, driver_words

    return {
        f"{info.kind}:{info.index}": f"{info.name}, {info.arch}, {info.units} compute units, {info.memory >> 20} MiB, "
        f"at {info.pci}, driver with {info.kind.upper()} {driver_words(info.kind, info.driver)}"
        + (f"; can't be used: {info.problem}" if info.problem else "")
        for info in devices()
    }


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
