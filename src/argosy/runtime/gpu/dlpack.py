"""DLPack's structures, read and written through ctypes.

Source: dlpack.h 1.0 (DLTensor, DLManagedTensor) and the Python specification of DLPack: a capsule `dltensor` whose
consumer renames it `used_dltensor` and then calls the deleter.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple

import ml_dtypes
import numpy as np

from argosy.errors import UsageError

__all__ = [
    "CUDA", "ROCM", "TENSOR_BYTES", "Tensor", "capsule_pointer", "check_dense", "exported", "imported",
    "is_on_gpu", "read_tensor",
]  # fmt: skip

CUDA: Final = 2
ROCM: Final = 10
_NAME: Final = b"dltensor"
_CODES: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT: Final = 4


class _Tensor(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
        ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
        ("shape", ctypes.POINTER(c_int64)), ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64),
    ]  # fmt: skip


_TENSOR: Final = struct.Struct("=QiiiBBHQQQ")
"""The same structure, read at once: it has no gaps where pointers have 8 bytes."""
TENSOR_BYTES: Final = _TENSOR.size
_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class _Managed(ctypes.Structure):
    _fields_: ClassVar[Any] = [("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter)]


_API: Final = ctypes.pythonapi
_Destructor = ctypes.CFUNCTYPE(None, c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, _Destructor)(("PyCapsule_New", _API))
capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _API))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _API))
_pointer_of_dying = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _API))

_given: Final[dict[int, tuple[Any, ...]]] = {}
"""What others hold, by the address of its structure, with all that it needs."""


def _delete(managed: int) -> None:
    _given.pop(managed, None)


def _destroy(capsule: int) -> None:
    if _is_valid(capsule, _NAME):  # nobody took it
        _given.pop(_pointer_of_dying(capsule, _NAME), None)


_deleter, _destructor = _Deleter(_delete), _Destructor(_destroy)


class Tensor(NamedTuple):
    """Memory of a library: the kind of device and its number, the address, the shape, the element type."""

    family: int
    device: int
    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def exported(device: tuple[int, int], address: int, shape: Sequence[int], dtype: np.dtype[Any], owner: Any) -> Any:
    """A capsule; `owner` stays as long as a consumer needs it."""
    numbers = _numbers(max(len(shape), 1))
    sizes, strides = numbers(*shape), numbers(*_strides(shape))
    code = _BFLOAT if dtype == ml_dtypes.bfloat16 else _CODES.get(dtype.kind)
    if code is None:
        raise BufferError(f"DLPack has no element type {dtype}")
    managed = _Managed(
        _Tensor(address, *device, len(shape), code, dtype.itemsize * 8, 1, sizes, strides, 0), None, _deleter
    )
    place = ctypes.addressof(managed)
    _given[place] = (managed, sizes, strides, owner)
    return _new(place, _NAME, _destructor)


def imported(capsule: Any, where: str = "") -> Tensor:
    """What a capsule holds. It stays the capsule's: whoever keeps that keeps the memory. Raises UsageError."""
    return read_tensor(ctypes.string_at(capsule_pointer(capsule, _NAME), TENSOR_BYTES), where)


def is_on_gpu(tensor: bytes) -> bool:
    """Whether a DLTensor lies on a GPU."""
    return _TENSOR.unpack(tensor)[1] in (CUDA, ROCM)


def read_tensor(tensor: bytes, where: str) -> Tensor:
    """What a DLTensor says. Raises UsageError where it is not dense or of an unknown type."""
    data, family, device, axes, code, bits, lanes, sizes, steps, offset = _TENSOR.unpack(tensor)
    shape = _shape(_raw(sizes, axes), _raw(steps, axes) if steps else b"", where)
    return Tensor(family, device, data + offset, shape, _dtype(code, bits, lanes, where))


def _raw(place: int, count: int) -> bytes:
    return ctypes.string_at(place, 8 * count) if count else b""


@lru_cache(maxsize=256)
def _shape(sizes: bytes, steps: bytes, where: str) -> tuple[int, ...]:
    shape = struct.unpack(f"={len(sizes) // 8}q", sizes)
    check_dense(shape, struct.unpack(f"={len(steps) // 8}q", steps), where)
    return shape


@lru_cache(maxsize=64)
def _numbers(count: int) -> Any:
    """An array type, kept: ctypes forgets, and makes anew, those that nobody holds."""
    return c_int64 * count


def check_dense(shape: Sequence[int], strides: Sequence[int], where: str) -> None:
    """Raise UsageError where elements are not one after the other. `strides` are in elements; none is dense."""
    if not strides or 0 in shape or tuple(strides) == tuple(_strides(shape)):
        return
    for size, stride, dense in zip(shape, strides, _strides(shape), strict=True):
        if size != 1 and stride != dense:
            raise UsageError(
                f"the tensor has the strides {list(strides)}, which is not dense",
                where=where,
                hint="make it contiguous",
            )


def _strides(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]


@lru_cache(maxsize=64)
def _dtype(code: int, bits: int, lanes: int, where: str) -> np.dtype[Any]:
    if lanes == 1 and (code, bits) == (_BFLOAT, 16):
        return np.dtype(ml_dtypes.bfloat16)
    kind = next((kind for kind, number in _CODES.items() if number == code), "")
    if lanes != 1 or bits % 8 or not kind:
        raise UsageError(f"DLPack's element type {code} of {bits} bits is unknown here", where=where)
    return np.dtype(f"{kind}{bits // 8}")
