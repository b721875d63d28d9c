"""The host ABI in Python: the structs of `host_abi.h`, by which the runtime and generated code meet."""

from __future__ import annotations

import ctypes
from typing import Final

from argosy.errors import ArgosyError, InternalError, UsageError

__all__ = ["HOST_ABI", "SCRATCH_HEADER", "SHAPES_FAULT", "STEP_WORDS", "RunRecord", "fault_error"]

HOST_ABI: Final = 1
"""The version that this runtime knows."""
STEP_WORDS: Final = 3
"""`struct argosy_step`, in words of 8 bytes: the kernel, its parameter block, the number of chunks."""
SCRATCH_HEADER: Final = 64
"""Bytes before a worker's scratch."""


class RunRecord(ctypes.Structure):
    """`struct argosy_run`."""

    _fields_ = (
        ("steps", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("scratch", ctypes.c_void_p),
        ("stride", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("pool", ctypes.c_void_p),
        ("clock", ctypes.c_void_p),
        ("fault", ctypes.c_int64),
        ("value", ctypes.c_int64),
        ("step", ctypes.c_int64),
    )


SHAPES_FAULT: Final = 3
_FAULTS: Final = {
    1: "the index {} is out of range",
    2: "the size {} is negative, or larger than what was planned for",
    SHAPES_FAULT: "its operands' shapes do not fit each other at axis {}",
    4: "an integer is divided by zero",
    5: "an operand has the value {}, for which the op is not defined",
}


def fault_error(fault: int, value: int, source: str) -> ArgosyError:
    """The error for what a kernel reported; `source` names its node."""
    words = _FAULTS.get(fault)
    if words is None:
        return InternalError(f"a kernel reported the unknown fault {fault} ({value})", where=source)
    return UsageError(words.format(value).removesuffix(" at axis -1"), where=source)
