"""Constant data: content-hashed, possibly mapped from a file, never copied.

A literal is a dtype, a shape and its bytes. Splats (one value everywhere) keep a single element. Sub-byte
types are held packed, low bits first, as ONNX packs them; strings are held as an object array.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from argosy.errors import InternalError
from argosy.ir.dtype import Array, DType, dtype_of

__all__ = ["Literal", "pack_bits", "unpack_bits"]

_SAMPLE: Final = 8
"""Elements that the hash of a literal reads."""


def pack_bits(elements: Array, bits: int) -> Array:
    """Pack one-element-per-byte integers or codes of `bits` bits (2, 4 or 6), low bits first, into uint8."""
    codes = elements.reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    if bits == 6:  # elements cross bytes
        return np.packbits(np.unpackbits(codes[:, None], axis=1, count=bits, bitorder="little"), bitorder="little")
    per_byte = 8 // bits
    padded = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
    padded[: codes.size] = codes
    packed = np.zeros(padded.size // per_byte, np.uint8)
    for position in range(per_byte):
        packed |= padded[position::per_byte] << (bits * position)
    return packed


def unpack_bits(packed: Array, dtype: DType, count: int) -> Array:
    """The inverse of `pack_bits`: `count` elements of the sub-byte `dtype`, one numpy element each."""
    if dtype.bits == 6:
        stream = np.unpackbits(packed, count=6 * count, bitorder="little")
        return np.packbits(stream.reshape(count, 6), axis=1, bitorder="little").reshape(count).view(dtype.numpy)
    per_byte = 8 // dtype.bits
    codes = np.empty(packed.size * per_byte, np.uint8)
    for position in range(per_byte):
        codes[position::per_byte] = (packed >> (dtype.bits * position)) & ((1 << dtype.bits) - 1)
    if dtype.kind == "int":  # ml_dtypes keeps signed sub-byte integers sign-extended in their byte
        sign = np.uint8(1 << (dtype.bits - 1))
        codes = (codes ^ sign) - sign
    return codes[:count].view(dtype.numpy)


class Literal:
    """Immutable constant tensor. Build one with `Literal.of`, `Literal.splat` or `Literal.packed`.

    Two literals are equal when dtype, shape and content are; `digest` is the SHA-256 of the content as it
    is stored (packed bytes, little endian), computed once when first asked for.
    """

    __slots__ = ("_array", "_data", "_digest", "_hash", "dtype", "is_splat", "shape")

    def __init__(self, dtype: DType, shape: tuple[int, ...], data: Array, *, is_splat: bool) -> None:
        self.dtype = dtype
        self.shape = shape
        self.is_splat = is_splat
        self._data = data
        self._array: Array | None = None
        self._digest: str | None = None
        self._hash: int | None = None

    @staticmethod
    def of(array: Any, dtype: DType | None = None) -> Literal:
        """A literal over `array` (one numpy element per value); keeps a view where it is contiguous already."""
        values = np.asarray(array, dtype=None if dtype is None else dtype.numpy)
        kind = dtype_of(values.dtype)
        if values.dtype.kind in "US":
            values = values.astype(object)
        shape = values.shape
        if kind.is_packed:
            return Literal(kind, shape, pack_bits(np.ascontiguousarray(values), kind.bits), is_splat=False)
        data = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False)).reshape(-1)
        return Literal(kind, shape, data, is_splat=False)

    @staticmethod
    def packed(dtype: DType, shape: Sequence[int], raw: Array) -> Literal:
        """A literal over stored bytes: `raw` is uint8, little endian, sub-byte types packed. Nothing is copied."""
        count = math.prod(shape)
        if raw.dtype != np.uint8 or raw.size != dtype.byte_size(count):
            raise InternalError(f"{raw.size} bytes given for {count} elements of {dtype}")
        data = raw if dtype.is_packed else raw.view(dtype.numpy)
        return Literal(dtype, tuple(shape), data, is_splat=False)

    @staticmethod
    def splat(value: Any, dtype: DType, shape: Sequence[int]) -> Literal:
        """`shape` elements that all equal `value`; holds one element."""
        element = np.asarray(value).astype(dtype.numpy).reshape(1)
        if dtype.is_packed:
            element = pack_bits(element, dtype.bits)
        return Literal(dtype, tuple(shape), element, is_splat=True)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes as stored (one element for a splat)."""
        return int(self._data.nbytes)

    @property
    def stored(self) -> Array:
        """The content as stored: packed uint8 for sub-byte types, else typed elements; one element for a splat."""
        return self._data

    def array(self) -> Array:
        """The value, read-only, one numpy element per value; a splat is a broadcast view."""
        if self._array is None:
            if self.dtype.is_packed:
                values = unpack_bits(self._data, self.dtype, 1 if self.is_splat else self.size)
            else:
                values = self._data
            if self.is_splat:
                values = np.broadcast_to(values.reshape(()), self.shape)
            else:
                values = values.reshape(self.shape).view()
            values.flags.writeable = False
            self._array = values
        return self._array

    def item(self) -> Any:
        """The single value of a splat or of a one-element literal, as a Python scalar."""
        if not self.is_splat and self.size != 1:
            raise InternalError(f"item() of a literal with {self.size} elements")
        return self.array().reshape(-1)[0].item() if self.dtype.kind != "string" else self._data[0]

    @property
    def digest(self) -> str:
        """SHA-256 of the stored content, as hex digits."""
        if self._digest is None:
            state = hashlib.sha256()
            if self.dtype.kind == "string":
                for text in self._data:
                    raw = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
                    state.update(len(raw).to_bytes(8, "little"))
                    state.update(raw)
            else:
                state.update(self._data.view(np.uint8).data)
            self._digest = state.hexdigest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Literal) and self._key() == other._key()

    def __hash__(self) -> int:
        # A few bytes of the content tell most weights of one shape apart, without reading all of them.
        if self._hash is None:
            begin = b"" if self.dtype.kind == "string" else self._data[:_SAMPLE].tobytes()
            self._hash = hash((self.dtype.name, self.shape, self.is_splat, self.nbytes, begin))
        return self._hash

    def _key(self) -> tuple[object, ...]:
        return (self.dtype, self.shape, self.is_splat, self.nbytes, self.digest)

    def __repr__(self) -> str:
        return f"Literal({self.dtype}{list(self.shape)})"
