"""Scatter ops: a tensor with some elements replaced or combined, and the index arithmetic shared with gathers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import Dim
from argosy.ir.dtype import STRING, Array, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import Type
from argosy.ops.demands import demand_cover, differ
from argosy.ops.operands import present
from argosy.ops.shapes import normalize_axis

__all__ = ["REDUCTIONS", "ScatterElements", "ScatterND", "along_axis", "check_indices", "in_range", "tuple_index"]

_COMBINE: Final = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
REDUCTIONS: Final = ("none", *_COMBINE)
"""What happens where an element is written to: it is replaced, or combined with the update."""


def check_indices(indices: Value) -> None:
    """Raise ModelError where `indices` are no int32 or int64."""
    if indices.dtype.name not in ("int32", "int64"):
        raise ModelError(f"the indices are {indices.dtype}, expected int32 or int64")


def in_range(indices: Array, size: int, axis: int) -> Array:
    """`indices` counted from the front; raises ModelError for one outside [-size, size)."""
    if not indices.size:
        return indices
    low, high = int(indices.min()), int(indices.max())
    if low < -size or high >= size:
        raise ModelError(f"the index {low if low < -size else high} is outside axis {axis} of size {size}")
    return indices if low >= 0 else np.where(indices < 0, indices + size, indices)


def along_axis(indices: Array, shape: tuple[int, ...], axis: int) -> tuple[Array, ...]:
    """The numpy index that names, for each index, its own place but for `axis`, where the index counts."""
    if any(size > limit for place, (size, limit) in enumerate(zip(indices.shape, shape, strict=True)) if place != axis):
        raise ModelError(f"indices of the shape {list(indices.shape)} reach outside the data of shape {list(shape)}")
    grids = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    grids[axis] = in_range(indices, shape[axis], axis)
    return tuple(grids)


def tuple_index(indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Coordinates in the last axis of `indices` as a numpy index into the first axes of `shape`."""
    return tuple(in_range(indices[..., axis], shape[axis], axis) for axis in range(indices.shape[-1]))


def _write(x: Array, index: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    if reduction == "none":
        result = x.copy()
        result[index] = updates
        return result
    wide = dtype_of(x.dtype).compute.numpy
    combined = x.astype(wide)
    _COMBINE[reduction].at(combined, index, updates.astype(wide))
    return combined.astype(x.dtype, copy=False)


def _check(operands: tuple[Value | None, ...], reduction: str) -> None:
    x, indices, updates = (present(operand) for operand in operands)
    check_indices(indices)
    if updates.dtype is not x.dtype:
        raise ModelError(f"the updates are {updates.dtype}, expected {x.dtype} as of the data")
    if reduction not in REDUCTIONS:
        raise ModelError(f"the reduction is {reduction!r}, expected one of {', '.join(REDUCTIONS)}")
    if reduction != "none" and (x.dtype is STRING or (x.dtype.kind == "complex" and reduction in ("max", "min"))):
        raise ModelError(f"the reduction {reduction!r} is not defined for {x.dtype}")


@register
@dataclass(frozen=True, slots=True)
class ScatterElements(Op):
    """`x` with `result[indices[i, j], j] = updates[i, j]` for axis 0. Operands of one rank: x, indices, updates."""

    name = "scatter_elements"
    axis: int
    reduction: str = "none"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        _check(operands, self.reduction)
        x, indices, updates = (present(operand) for operand in operands)
        normalize_axis(self.axis, x.rank)
        if indices.rank != x.rank or updates.rank != x.rank:
            found = f"{x.rank}, {indices.rank} and {updates.rank}"
            raise ModelError(f"data, indices and updates have the ranks {found}, expected one")
        if any(differ(mine, its) for mine, its in zip(indices.shape, updates.shape, strict=True)):
            raise ModelError(f"the updates are {updates.type}, expected the shape of the indices {indices.type}")
        demand_cover(x.shape, indices.shape, self.axis)
        return (x.type,)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, indices, updates = (np.asarray(value) for value in values)
        if updates.shape != indices.shape:
            raise ModelError(f"the updates have the shape {list(updates.shape)}, expected that of the indices")
        index = along_axis(indices, x.shape, normalize_axis(self.axis, x.ndim))
        return (_write(x, index, updates, self.reduction),)


@register
@dataclass(frozen=True, slots=True)
class ScatterND(Op):
    """`x` with `result[indices[i, 0], …, indices[i, k - 1]] = updates[i]`. Operands: x, indices, updates."""

    name = "scatter_nd"
    reduction: str = "none"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        _check(operands, self.reduction)
        x, indices, updates = (present(operand) for operand in operands)
        depth = indices.shape[-1] if indices.rank else 0
        if isinstance(depth, Dim):
            return (x.type,)
        if not indices.rank or depth > x.rank:
            raise ModelError(f"the indices are {indices.type}, expected at most {x.rank} in their last axis")
        expected = (*indices.shape[:-1], *x.shape[depth:])
        if len(expected) != updates.rank or any(differ(a, b) for a, b in zip(expected, updates.shape, strict=True)):
            raise ModelError(f"the updates are {updates.type}, expected {x.tensor.with_dims(expected)}")
        return (x.type,)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, indices, updates = (np.asarray(value) for value in values)
        index = tuple_index(indices, x.shape)
        if updates.shape != indices.shape[:-1] + x.shape[len(index) :]:
            raise ModelError(f"the updates have the shape {list(updates.shape)}, which does not fit the indices")
        return (_write(x, index, updates, self.reduction),)
