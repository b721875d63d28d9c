"""Tensor maps: how the copy engine of a device sees a tensor, as its driver encodes it for the parameters of a launch.

Source: CUDA driver API, "Tensor Map Object Management".
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int, c_uint, c_ulonglong
from typing import Final

import numpy as np

from argosy.artifact.plan import TensorMapArgument
from argosy.drivers.api import Api
from argosy.errors import DeviceError
from argosy.runtime.memory import address_of

__all__ = ["encoded_map"]

_BYTES: Final = 128
_ALIGNMENT: Final = 64
# CUtensorMapDataType, CUtensorMapSwizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B
_KINDS: Final = {"uint8": 0, "float16": 6, "float32": 7, "bfloat16": 9}
_WIDTHS: Final = {"uint8": 1, "float16": 2, "float32": 4, "bfloat16": 2}
_SWIZZLES: Final = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTED: Final = 2
_CLEARED: Final = 13010
"""The newest driver interface under which a bit of small tensors' maps must be cleared."""
_SMALL: Final = 128 * 1024
_BIT: Final = 1 << 21


def encoded_map(
    api: Api, driver: int, argument: TensorMapArgument, address: int, dims: Sequence[int], strides: Sequence[int]
) -> bytes:
    """The 128 bytes of a map of the tensor at `address`, with `dims` in elements and `strides` in bytes.

    Raises DriverError where the driver refuses, DeviceError where it has no maps.
    """
    if not api.has("tiled_map"):
        raise DeviceError("its driver has no tensor maps", hint="install a driver for CUDA 12.0 or later")
    room = np.zeros(_BYTES + _ALIGNMENT, np.uint8)
    start = -address_of(room) % _ALIGNMENT
    rank = len(dims)
    sizes, steps = (c_ulonglong * rank)(*dims), (c_ulonglong * rank)(*strides)
    head = (address_of(room) + start, _KINDS[argument.dtype], rank, address, sizes, steps)
    tail = (0, _SWIZZLES[argument.swizzle], _PROMOTED, int(argument.fill_nan))
    if argument.steps:
        lower, upper = ((c_int * rank)(*corner) for corner in (argument.lower, argument.upper))
        between = (c_uint * rank)(*argument.steps)
        api.call("window_map", *head, lower, upper, *argument.box[:2], between, *tail)
    else:
        ones = (c_uint * rank)(*(1,) * rank)
        api.call("tiled_map", *head, (c_uint * rank)(*argument.box), ones, *tail)
    words = room[start : start + _BYTES].view(np.uint64)
    width = _WIDTHS[argument.dtype]
    last = sum((size - 1) * step for size, step in zip(dims, (width, *strides), strict=True))
    if driver <= _CLEARED and last + 1 < _SMALL:  # as CUTLASS does it
        words[1] &= np.uint64(~_BIT & (1 << 64) - 1)
    return words.tobytes()
