"""Which device a GPU variant runs on, and how well it fits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from argosy.artifact.manifest import Requirements, VariantRecord
from argosy.drivers.discovery import DeviceInfo, devices, driver, driver_words
from argosy.drivers.machine import Machine
from argosy.emulation.archs import emulated_reason
from argosy.runtime.gpu.families import EMULATED, GPU_FAMILIES

__all__ = ["Fit", "emulated_info", "fit"]

_NEWEST: Final = 10**9
_CAPABILITY: Final = re.compile(r"(sm|compute)_(\d+)(\d)$")


@dataclass(frozen=True, slots=True)
class Fit:
    """How a variant fits a device: `exact` code for its arch, or other code that it runs, with the reason."""

    device: DeviceInfo | None
    exact: bool
    reason: str


def fit(variant: VariantRecord, wanted: str = "", machine: Machine | None = None) -> Fit:
    """The device for a variant, of this machine or another one; None where no device runs it.

    `wanted` is `cuda`, `hip:1`, `cuda:0000:01:00.0` or `emulated:gfx942`.
    """
    if wanted.partition(":")[0] == EMULATED:
        return _emulated(variant, wanted.partition(":")[2])
    kind = GPU_FAMILIES[variant.family]
    found = [info for info in (machine.gpus if machine else devices()) if info.kind == kind]
    if not found:
        problem = "it reports none" if machine else driver(kind).words or "it reports none"
        return Fit(None, False, f"no {kind} driver finds a device here ({problem})")
    place = wanted.partition(":")[2]
    asked = [info for info in found if place in ("", str(info.index)) or place.lower() == info.pci]
    if not asked:
        there = ", ".join(f"{kind}:{info.index} at {info.pci}" for info in found)
        return Fit(None, False, f"there is no device {wanted!r}, but {there}")
    fits = [_on(variant, info) for info in asked]
    return next((each for each in sorted(fits, key=lambda each: not each.exact) if each.device), fits[0])


def _emulated(variant: VariantRecord, asked: str) -> Fit:
    """The emulated device of a variant's arch."""
    if asked and asked != variant.arch:
        return Fit(None, False, f"it is for {variant.arch}, {asked} is to be emulated")
    problem = emulated_reason(variant.arch)
    return (
        Fit(None, False, problem) if problem else Fit(emulated_info(variant.arch), True, f"{variant.arch} is emulated")
    )


def emulated_info(arch: str) -> DeviceInfo:
    """An emulated device: memory is what the host gives, and the driver is as new as any."""
    return DeviceInfo("hip", 0, f"emulated {arch}", arch, 1, 1 << 62, _NEWEST, "")


def _on(variant: VariantRecord, info: DeviceInfo) -> Fit:
    runs = _arch(variant, info)
    problem = info.problem or _lack(variant.requirements, info)
    if runs.device is None or not problem:
        return runs
    return Fit(None, False, f"{info.name} ({info.arch}): {problem}")


def _arch(variant: VariantRecord, info: DeviceInfo) -> Fit:
    if variant.arch == info.arch:
        units = _units(variant)
        if units not in (0, info.units):
            return Fit(info, False, f"it is compiled for {units} compute units, {info.name} has {info.units}")
        return Fit(info, True, f"it is code for {info.name} ({info.arch})")
    if info.arch in variant.requirements.features:
        return Fit(info, False, f"{info.name} ({info.arch}) runs {variant.arch} code")
    own, its = _CAPABILITY.match(info.arch), _CAPABILITY.match(variant.arch)
    if own and its and its[1] == "compute" and (int(its[2]), int(its[3])) <= (int(own[2]), int(own[3])):
        return Fit(info, False, f"the driver finishes it for {info.name} ({info.arch})")
    return Fit(None, False, f"it is for {variant.arch}, {info.name} is {info.arch}")


def _units(variant: VariantRecord) -> int:
    """The compute units that a variant was compiled for; 0 where it doesn't say."""
    told = (product.partition("=") for product in variant.products)
    return next((int(number) for name, _, number in told if name == "num_cu" and number.isdigit()), 0)


def _lack(needs: Requirements, info: DeviceInfo) -> str:
    """What a device of the right arch lacks."""
    has = driver_words(info.kind, info.driver)
    if needs.minimum_driver and _parts(has) < _parts(needs.minimum_driver):
        return f"its driver is too old: it has {info.kind.upper()} {has}, the code needs {needs.minimum_driver}"
    if needs.memory > info.memory:
        return f"it has {info.memory} bytes of memory, the code needs {needs.memory}"
    return ""


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
