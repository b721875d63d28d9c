"""Element types: one row each, with the numpy type that holds one element.

Sub-byte types (int4, uint4, int2, uint2, float4, float6) have one numpy element per value in memory while a
program runs; literals and buffers pack them as ONNX says (`bits` gives the packed size).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ml_dtypes
import msgspec
import numpy as np

from argosy.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BOOL",
    "DTYPES",
    "FLOAT32",
    "FLOAT64",
    "INT32",
    "INT64",
    "STRING",
    "UINT8",
    "Array",
    "DType",
    "dtype",
    "dtype_of",
]

Array: TypeAlias = "NDArray[Any]"


class DType(msgspec.Struct, frozen=True):
    """An element type: its name, its size in bits when packed, its kind, and the numpy type of one element.

    `kind` is one of float, int, uint, bool, complex, string.
    """

    name: str
    bits: int
    kind: str
    numpy: np.dtype[Any]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def is_float(self) -> bool:
        """True for every floating-point type, the 8- and 4-bit ones included."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers; bool is not one."""
        return self.kind in ("int", "uint")

    @property
    def is_packed(self) -> bool:
        """True for types below a byte, whose elements share bytes in literals and buffers."""
        return 0 < self.bits < 8

    @property
    def compute(self) -> DType:
        """The type in which formulas on it are computed: float32 for short floats, a byte for integers below 8 bits."""
        if self.kind == "float" and self.bits < 32:
            return FLOAT32
        return DTYPES[f"{self.kind}8"] if self.is_packed else self

    def byte_size(self, elements: int) -> int:
        """Bytes of `elements` packed elements."""
        return (elements * self.bits + 7) // 8


def _row(name: str, bits: int, kind: str, numpy: Any = None) -> DType:
    return DType(name, bits, kind, np.dtype(numpy if numpy is not None else name))


_ROWS: Final = (
    _row("bool", 8, "bool"),
    *(_row(f"int{bits}", bits, "int") for bits in (8, 16, 32, 64)),
    *(_row(f"uint{bits}", bits, "uint") for bits in (8, 16, 32, 64)),
    _row("int4", 4, "int", ml_dtypes.int4),
    _row("uint4", 4, "uint", ml_dtypes.uint4),
    _row("int2", 2, "int", ml_dtypes.int2),
    _row("uint2", 2, "uint", ml_dtypes.uint2),
    *(_row(f"float{bits}", bits, "float") for bits in (16, 32, 64)),
    _row("bfloat16", 16, "float", ml_dtypes.bfloat16),
    _row("float8_e4m3fn", 8, "float", ml_dtypes.float8_e4m3fn),
    _row("float8_e4m3fnuz", 8, "float", ml_dtypes.float8_e4m3fnuz),
    _row("float8_e5m2", 8, "float", ml_dtypes.float8_e5m2),
    _row("float8_e5m2fnuz", 8, "float", ml_dtypes.float8_e5m2fnuz),
    _row("float8_e8m0fnu", 8, "float", ml_dtypes.float8_e8m0fnu),
    _row("float4_e2m1fn", 4, "float", ml_dtypes.float4_e2m1fn),
    _row("float6_e2m3fn", 6, "float", ml_dtypes.float6_e2m3fn),
    _row("float6_e3m2fn", 6, "float", ml_dtypes.float6_e3m2fn),
    _row("complex64", 64, "complex"),
    _row("complex128", 128, "complex"),
    _row("string", 0, "string", object),
)

DTYPES: Final[dict[str, DType]] = {row.name: row for row in _ROWS}
_BY_NUMPY: Final[dict[Any, DType]] = {row.numpy: row for row in _ROWS}

BOOL: Final = DTYPES["bool"]
UINT8: Final = DTYPES["uint8"]
INT32: Final = DTYPES["int32"]
INT64: Final = DTYPES["int64"]
FLOAT32: Final = DTYPES["float32"]
FLOAT64: Final = DTYPES["float64"]
STRING: Final = DTYPES["string"]


def dtype(name: str) -> DType:
    """The element type called `name`; raises ModelError for an unknown name."""
    found = DTYPES.get(name)
    if found is None:
        raise ModelError(f"unknown element type {name!r}", hint=f"known: {', '.join(DTYPES)}")
    return found


def dtype_of(numpy_dtype: np.dtype[Any]) -> DType:
    """The element type of a numpy dtype; numpy's text types count as strings. Raises ModelError for others."""
    if numpy_dtype.kind in "US":
        return STRING
    found = _BY_NUMPY.get(numpy_dtype) or _BY_NUMPY.get(numpy_dtype.newbyteorder("="))
    if found is None:
        raise ModelError(f"numpy type {numpy_dtype} has no element type of ours", hint=f"known: {', '.join(DTYPES)}")
    return found
