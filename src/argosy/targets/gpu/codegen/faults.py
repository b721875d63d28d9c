"""What a kernel may report when it can't go on, in the numbers of the runtime's messages."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Fault"]


class Fault(IntEnum):
    """The faults of `include/host_abi.h`."""

    INDEX = 1
    SIZE = 2
    SHAPES = 3
    DIVISION = 4
    VALUE = 5
