"""Ops that pick or place elements by index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import Array
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import Type
from argosy.ops.operands import present
from argosy.ops.shapes import normalize_axis

__all__ = ["Gather"]


def _check_indices(indices: Value) -> None:
    if indices.dtype.name not in ("int32", "int64"):
        raise ModelError(f"the indices are {indices.dtype}, expected int32 or int64")


def in_range(indices: Array, size: int, axis: int) -> Array:
    """`indices` counted from the front; raises ModelError for one outside [-size, size)."""
    if indices.size and (int(indices.min()) < -size or int(indices.max()) >= size):
        worst = int(indices.min()) if int(indices.min()) < -size else int(indices.max())
        raise ModelError(f"the index {worst} is outside axis {axis} of size {size}")
    return np.where(indices < 0, indices + size, indices)


@register
@dataclass(frozen=True, slots=True)
class Gather(Op):
    """Slices of `x` along `axis`, one for each index: `result[a, i, b] = x[a, indices[i], b]`. ONNX Gather.

    Negative indices count from the end. Operands: x, indices.
    """

    name = "gather"
    moves_data = True
    axis: int

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, indices = present(operands[0]).tensor, present(operands[1])
        _check_indices(indices)
        axis = normalize_axis(self.axis, x.rank)
        return (x.with_dims((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, indices = np.asarray(values[0]), np.asarray(values[1])
        axis = normalize_axis(self.axis, x.ndim)
        return (np.asarray(np.take(x, in_range(indices, x.shape[axis], axis), axis), x.dtype),)
