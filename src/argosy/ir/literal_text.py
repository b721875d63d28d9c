"""Constants as text: `float32[2] dense(0.5, -0.0)`, `int64[1000] splat(1)`, `int8[64, 64] sha256:…`.

The element forms keep every bit: a float is written as the shortest decimal that its type rounds back, and
as its bits where no decimal gives them (a NaN with a payload of its own).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import Array, DType
from argosy.ir.lexer import quote, quote_bytes
from argosy.ir.literal import Literal, unpack_bits

__all__ = ["INLINE_ELEMENTS", "Bits", "Scalar", "literal_of", "literal_text"]

INLINE_ELEMENTS: Final = 8
"""Constants of at most so many elements are written out."""


class Bits(int):
    """The bits of an element, where no number stands for it."""

    __slots__ = ()


Scalar = bool | int | float | str | bytes | complex | Bits
"""What an element is in the text."""


def literal_text(literal: Literal) -> str:
    """A constant as its type and its elements, or the hash of its content where it has many."""
    kind = f"{literal.dtype}[{', '.join(map(str, literal.shape))}]"
    if literal.is_splat:
        return f"{kind} splat({_element_text(_splat_element(literal), literal.dtype)})"
    if literal.size <= INLINE_ELEMENTS:
        elements = literal.array().reshape(-1)
        return f"{kind} dense({', '.join([_element_text(element, literal.dtype) for element in elements])})"
    return f"{kind} sha256:{literal.digest}"


def _splat_element(literal: Literal) -> Any:
    if literal.dtype.is_packed:
        return unpack_bits(literal.stored, literal.dtype, 1)[0]
    return literal.stored[0]


def _element_text(element: Any, dtype: DType) -> str:
    match dtype.kind:
        case "string":
            return quote_bytes(element) if isinstance(element, bytes) else quote(str(element))
        case "bool":
            return "true" if element else "false"
        case "int" | "uint":
            return str(int(element))
    stored = _element_bytes(element, dtype)
    if dtype.kind == "complex":
        value = complex(element)
        text = f"[{value.real!r}, {value.imag!r}]"
        exact = _element_bytes(value, dtype) == stored
    else:
        # numpy prints the shortest decimal of its own types; reading it by way of float64 may round twice.
        text = str(element) if isinstance(element, np.floating) else repr(float(element))
        if _element_bytes(float(text), dtype) != stored:
            text = repr(float(element))
        exact = _element_bytes(float(text), dtype) == stored
    return text if exact else f"0x{int.from_bytes(stored, 'little'):x}"


def _element_bytes(value: Any, dtype: DType) -> bytes:
    return np.asarray(value).astype(dtype.numpy).tobytes()


def literal_of(dtype: DType, shape: Sequence[int], elements: Sequence[Scalar], *, splat: bool) -> Literal:
    """The literal that its text describes. Raises ModelError where an element does not fit the type."""
    if dtype.kind == "string":
        texts: Array = np.empty(len(elements), object)
        for index, element in enumerate(elements):
            if not isinstance(element, (str, bytes)):
                raise ModelError(f"expected a string, found {element!r}")
            texts[index] = element
        return Literal(dtype, tuple(shape), texts, is_splat=splat)
    raw = b"".join(_parse_element(element, dtype) for element in elements)
    values = np.frombuffer(raw, dtype.numpy)
    return Literal.splat(values[0], dtype, shape) if splat else Literal.of(values.reshape(shape))


def _parse_element(element: Scalar, dtype: DType) -> bytes:
    size = dtype.numpy.itemsize
    if isinstance(element, Bits):
        if element >> (8 * size):
            raise ModelError(f"{element:#x} has more bits than {dtype}")
        return element.to_bytes(size, "little")
    if dtype.kind in ("int", "uint"):
        low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
        if isinstance(element, bool) or not isinstance(element, int) or not low <= element < low + (1 << dtype.bits):
            raise ModelError(f"{element!r} is no {dtype}")
        return np.asarray(element).astype(dtype.numpy).tobytes()
    expected = {"bool": (bool,), "float": (float,), "complex": (complex,)}[dtype.kind]
    if not isinstance(element, expected):
        raise ModelError(f"{element!r} is no {dtype}")
    return _element_bytes(element, dtype)
