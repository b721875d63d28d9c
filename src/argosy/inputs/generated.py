"""Generated inputs: from a seed and the input's name, the same on every machine.

Integers are 0 or 1 unless a range is given: what a program needs of an input (`ranges.py`), or what is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from argosy.errors import UsageError
from argosy.ir.dtype import Array, DType
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type

__all__ = ["generate", "generate_values"]

_FLOATS: Final = (-1.0, 1.0)
_INTEGERS: Final = (0.0, 1.0)
_UNSIGNED: Final = ("float8_e8m0fnu",)
"""Floats without a sign: a negative number would become NaN."""
_SEQUENCE: Final = 2
"""Elements of a generated sequence."""


def generate(
    name: str,
    kind: Type,
    shape: Sequence[int],
    *,
    seed: int = 0,
    fill: int | None = None,
    bounds: tuple[float, float] | None = None,
) -> Any:
    """A value of type `kind` for the input `name`; tensors in it have `shape`.

    `fill` makes every element that number; `bounds` are the least and greatest value (the greatest
    included for integers). Raises UsageError for a type or range that cannot be generated.
    """
    digest = hashlib.sha256(name.encode()).digest()
    source = np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])
    return _value(name, kind, shape, source, fill, bounds)


def generate_values(kind: TensorType, shape: Sequence[int], values: Sequence[float]) -> Array:
    """The tensor of type `kind` and `shape` with these elements, in row-major order."""
    return np.array(values).reshape(tuple(shape)).astype(kind.dtype.numpy)


def _value(
    name: str,
    kind: Type,
    shape: Sequence[int],
    source: np.random.Generator,
    fill: int | None,
    bounds: tuple[float, float] | None,
) -> Any:
    if isinstance(kind, OptionalType):
        return _value(name, kind.element, shape, source, fill, bounds)
    if isinstance(kind, SequenceType):
        return [_value(name, kind.element, shape, source, fill, bounds) for _ in range(_SEQUENCE)]
    if isinstance(kind, MapType):
        raise UsageError(
            f"a {kind} can't be generated",
            where=f"input {name!r}",
            hint=f"give --input {name}=FILE.npz that holds {name}.keys and {name}.values",
        )
    return _tensor(name, kind, tuple(shape), source, fill, bounds)


def _tensor(
    name: str,
    kind: TensorType,
    shape: tuple[int, ...],
    source: np.random.Generator,
    fill: int | None,
    bounds: tuple[float, float] | None,
) -> Array:
    element = kind.dtype
    if element.kind == "string":
        count = int(np.prod(shape, dtype=np.int64))
        words = [f"{name}{source.integers(1000)}" for _ in range(count)]
        return np.array(words, object).reshape(shape)
    if fill is not None:
        return np.full(shape, fill).astype(element.numpy)
    if element.kind == "bool":
        return source.integers(0, 2, shape).astype(np.bool_)
    low, high = bounds or (_FLOATS if element.kind in ("float", "complex") else _INTEGERS)
    if element.is_integer:
        return _integers(name, element, shape, source, low, high)
    if element.kind == "complex":
        return (source.uniform(low, high, shape) + 1j * source.uniform(low, high, shape)).astype(element.numpy)
    values = source.uniform(low, high, shape)
    return (np.abs(values) if element.name in _UNSIGNED else values).astype(element.numpy)


def _integers(
    name: str, element: DType, shape: tuple[int, ...], source: np.random.Generator, low: float, high: float
) -> Array:
    least, greatest = (-(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1)
    if element.kind == "uint":
        least, greatest = 0, (1 << element.bits) - 1
    if low != int(low) or high != int(high) or low < least or high > greatest:
        raise UsageError(
            f"the range {low:g}..{high:g} does not fit {element}",
            where=f"input {name!r}",
            hint=f"give whole numbers in {least}..{greatest}",
        )
    dtype = np.uint64 if int(high) > np.iinfo(np.int64).max else np.int64
    return source.integers(int(low), int(high), shape, dtype=dtype, endpoint=True).astype(element.numpy)
