"""A machine, by what decides which code it runs: its system, its CPU, and the GPUs that its drivers report.

`argosy doctor --json` writes it, so that another machine can compile for it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from argosy import host_cpu
from argosy.drivers.discovery import DeviceInfo, devices
from argosy.errors import UsageError

__all__ = ["Machine", "read_machine", "this_machine"]

_MOST: Final = 1 << 20
"""Bytes of a description; what is larger is none."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """`isa` is the CPU's instruction set as `platform.machine` names it, `features` what the system says it can do."""

    system: str
    isa: str
    features: frozenset[str]
    gpus: tuple[DeviceInfo, ...] = ()


class _Doctor(msgspec.Struct, frozen=True):
    machine: Machine


def this_machine() -> Machine:
    """The machine that this process runs on."""
    return Machine(
        system=host_cpu.system(), isa=host_cpu.isa(), features=host_cpu.cpu_features(), gpus=tuple(devices())
    )


def read_machine(path: str | os.PathLike[str]) -> Machine:
    """The machine that a file with the answer of `argosy doctor --json` describes. Raises UsageError."""
    where, hint = os.fspath(path), "run argosy doctor --json on that machine, and give the file that it writes"
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST + 1)
    except OSError as error:
        raise UsageError(f"it can't be read: {error.strerror or error}", where=where) from error
    if len(text) > _MOST:
        raise UsageError("it is too large to describe a machine", where=where, hint=hint)
    try:
        return msgspec.json.decode(text, type=_Doctor).machine
    except msgspec.DecodeError as error:
        raise UsageError(f"it does not describe a machine: {error}", where=where, hint=hint) from error
