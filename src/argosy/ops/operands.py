"""How an op reads an operand that may be absent, or that may be given as an attribute instead.

Many ops take small integer tensors (axes, pads, repeats) that are attributes in one form of a program and
run-time operands in another. `infer` asks `steering`, which answers in numbers and dims where these are
known; `evaluate` asks `ints`, which answers in numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.errors import InternalError, ModelError
from argosy.ir.dim import Dim, DimLike
from argosy.ir.module import Value
from argosy.ir.op import fresh
from argosy.ir.types import MAX_RANK, Dims

__all__ = [
    "ints",
    "length",
    "number",
    "numbers",
    "present",
    "shape_text",
    "single",
    "steering",
    "unknown_dims",
]


def present(operand: Value | None) -> Value:
    """The operand, which the op can't do without."""
    if operand is None:
        raise InternalError("a required operand is absent")
    return operand


def steering(attribute: Sequence[DimLike] | None, operand: Value | None) -> Dims | None:
    """The attribute, or what is known of the operand, flattened; None where neither is known."""
    if attribute is not None:
        return tuple(attribute)
    if operand is None or operand.known is None:
        return None
    return tuple(operand.known.reshape(-1).tolist())


def numbers(attribute: Sequence[int] | None, operand: Value | None) -> tuple[int, ...] | None:
    """Like `steering`, for what can't be symbolic, such as axes: None where it is."""
    found = steering(attribute, operand)
    if found is None or any(isinstance(value, Dim) for value in found):
        return None
    return tuple(int(value) for value in found)


def single(operand: Value | None, what: str) -> Any:
    """The one element of an operand, where it is known (a number or a Dim), else None.

    Raises ModelError for an operand that surely has another number of elements; `what` names it.
    """
    tensor = present(operand).tensor
    if tensor.dims is not None and all(isinstance(dim, int) for dim in tensor.dims) and math.prod(tensor.dims) != 1:
        raise ModelError(f"{what} is {tensor}, expected one number")
    known = steering(None, operand)
    return known[0] if known else None


def number(value: Any, what: str) -> Any:
    """The one element of a run-time value; raises ModelError where it has another number of elements."""
    array = np.asarray(value)
    if array.size != 1:
        raise ModelError(f"{what} has the shape {list(array.shape)}, expected one number")
    return array.reshape(-1)[0]


def length(operand: Value | None) -> int | None:
    """Number of elements of a 1-D operand with a value for each of some axes, where that is a known number."""
    if operand is None or operand.tensor.dims is None or len(operand.tensor.dims) != 1:
        return None
    size = operand.tensor.dims[0]
    if isinstance(size, int) and size > MAX_RANK:
        raise ModelError(f"{size} values are given, one for an axis each; a tensor has at most {MAX_RANK} axes")
    return size if isinstance(size, int) else None


def ints(attribute: Sequence[DimLike] | None, value: Any, what: str) -> tuple[int, ...]:
    """The attribute (bound already) or the run-time value as numbers; raises ModelError where there is neither."""
    if attribute is not None:
        return tuple(int(entry) for entry in attribute)
    if value is None:
        raise ModelError(f"{what} is given neither as an attribute nor as an operand")
    return tuple(int(entry) for entry in np.asarray(value).reshape(-1))


def unknown_dims(rank: int) -> Dims:
    """Dims of which only the number is known; raises ModelError for a negative one (more axes taken than there are)."""
    if rank < 0:
        raise ModelError(f"{-rank} more axes are given than the tensor has")
    return tuple(fresh(f"{axis}_") for axis in range(rank))


def shape_text(shape: Dims) -> str:
    """Dims as an error shows them."""
    return f"[{', '.join(map(str, shape))}]"
