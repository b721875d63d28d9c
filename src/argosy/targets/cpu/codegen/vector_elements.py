"""Sixteen neighbouring elements of float32 values at a time: `Elements` over vectors.

The lanes run along one axis of the iteration space; the C variable of that axis is the place of the first. Values
that are not float32, and accesses that move by other than 0 or 1 along the axis, decline: the caller then
computes one element after the other.
"""

from __future__ import annotations

from typing import Any

from argosy.ir.access import Access
from argosy.ir.dim import DimLike
from argosy.ir.dtype import BOOL, FLOAT32, DType
from argosy.ir.module import Instruction
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText, strides
from argosy.targets.cpu.codegen.element import DeclinedError, Elements
from argosy.targets.cpu.codegen.loops import coefficient
from argosy.targets.cpu.codegen.tile import BLOCK

__all__ = ["VectorElements", "position"]


class VectorElements(Elements):
    """Elements of 16 places along `axis` of the iteration space."""

    def __init__(self, text: CText, pointers: dict[Instruction, str], axis: int) -> None:
        super().__init__(text, pointers)
        self.axis = axis

    def let(self, dtype: DType, expression: str) -> str:
        """A vector variable; masks are vectors of 0 and -1."""
        if dtype is FLOAT32:
            return self.text.let("float32x16", expression)
        if dtype is BOOL:
            return self.text.let("int32x16", expression)
        raise DeclinedError(f"vectors of {dtype}")

    def constant(self, value: Any, dtype: DType) -> str:
        """A number in every lane."""
        if dtype is not FLOAT32:
            raise DeclinedError(f"vectors of {dtype}")
        return scalar.constant(value, dtype, BLOCK)

    def load(self, dtype: DType, pointer: str, access: Access) -> str:
        """Sixteen elements of a buffer, or one in every lane."""
        if dtype is not FLOAT32:
            raise DeclinedError(f"vectors of {dtype}")
        total = position(access)
        move = coefficient(total, self.axis)
        if move not in (0, 1):
            raise DeclinedError("elements that do not lie side by side")
        self.offsets.append(total)
        at = self.text.dim(total)
        return self.text.let(
            "float32x16", f"(float32x16)({pointer}[{at}])" if move == 0 else f"load_float32x16({pointer} + {at})"
        )

    def position(self, index: DimLike) -> str:
        """Places as values would differ from lane to lane."""
        raise DeclinedError("an element that depends on its place")


def position(access: Access) -> DimLike:
    """The row-major position of an element."""
    total: DimLike = 0
    for index, step in zip(access.indices, strides(access.source), strict=True):
        total = step * index + total
    return total
