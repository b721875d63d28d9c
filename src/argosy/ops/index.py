"""Ops that pick elements by index or condition: gather and relatives, one_hot, nonzero, compress, range, triangle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import BOOL, INT64
from argosy.ir.module import Value
from argosy.ir.op import Known, Op, fresh, register
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import demand_cover, differ
from argosy.ops.operands import number, present, single, steering
from argosy.ops.scatter import ScatterElements, ScatterND, along_axis, check_indices, in_range, tuple_index
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.view import Broadcast

__all__ = [
    "Compress",
    "Gather",
    "GatherElements",
    "GatherND",
    "NonZero",
    "OneHot",
    "Range",
    "ScatterElements",
    "ScatterND",
    "Triangle",
]


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
        check_indices(indices)
        axis = normalize_axis(self.axis, x.rank)
        return (x.with_dims((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, indices = np.asarray(values[0]), np.asarray(values[1])
        axis = normalize_axis(self.axis, x.ndim)
        return (np.asarray(np.take(x, in_range(indices, x.shape[axis], axis), axis), x.dtype),)


@register
@dataclass(frozen=True, slots=True)
class GatherElements(Op):
    """One element for each index: `result[i, j] = x[indices[i, j], j]` for axis 0. Operands: x, indices of its rank."""

    name = "gather_elements"
    axis: int

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, indices = present(operands[0]).tensor, present(operands[1])
        check_indices(indices)
        if indices.tensor.dims is not None and x.dims is not None:
            normalize_axis(self.axis, x.rank)
            if indices.rank != x.rank:
                raise ModelError(f"the indices have rank {indices.rank}, expected the rank of the data, {x.rank}")
            demand_cover(x.shape, indices.shape, self.axis)
        return (x.with_dims(indices.tensor.dims),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, indices = np.asarray(values[0]), np.asarray(values[1])
        return (x[along_axis(indices, x.shape, normalize_axis(self.axis, x.ndim))],)


@register
@dataclass(frozen=True, slots=True)
class GatherND(Op):
    """Slices of `x` at coordinates: `result[i] = x[indices[i, 0], …, indices[i, k - 1]]`. Operands: x, indices.

    The first `batch_dims` axes of both are matched and not indexed.
    """

    name = "gather_nd"
    batch_dims: int = 0

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, indices = present(operands[0]).tensor, present(operands[1])
        check_indices(indices)
        if indices.rank == 0 or not 0 <= self.batch_dims < min(x.rank, indices.rank):
            limit = min(x.rank, indices.rank) - 1
            raise ModelError(f"batch_dims is {self.batch_dims}, expected 0..{limit} for {x} and indices {indices.type}")
        batches = tuple(zip(x.shape, indices.shape, strict=False))[: self.batch_dims]
        if any(differ(mine, its) for mine, its in batches):
            raise ModelError(f"the first {self.batch_dims} dims of {x} and of the indices {indices.type} differ")
        depth = indices.shape[-1]
        if isinstance(depth, Dim):
            return (x.with_dims(None),)
        if depth < 1 or self.batch_dims + depth > x.rank:
            raise ModelError(f"{depth} coordinates after {self.batch_dims} batch dims do not fit into {x}")
        return (x.with_dims((*indices.shape[:-1], *x.shape[self.batch_dims + depth :])),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, indices = np.asarray(values[0]), np.asarray(values[1])
        batch = self.batch_dims
        if x.shape[:batch] != indices.shape[:batch]:
            raise ModelError(f"the batch dims {list(x.shape[:batch])} and {list(indices.shape[:batch])} differ")
        places = tuple_index(indices, x.shape[batch:])
        # Batch coordinates as open grids that broadcast against the others.
        rank = indices.ndim - 1
        grids = [
            np.arange(x.shape[axis]).reshape([-1 if place == axis else 1 for place in range(rank)])
            for axis in range(batch)
        ]
        return (np.asarray(x[(*grids, *places)], x.dtype).reshape(indices.shape[:-1] + x.shape[batch + len(places) :]),)


@register
@dataclass(frozen=True, slots=True)
class OneHot(Op):
    """`on` where a new axis of size `depth` is at the index, else `off`. Operands: indices, depth, (off, on).

    Indices count from the end where negative; those outside [-depth, depth) give `off` everywhere.
    """

    name = "one_hot"
    axis: int

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        indices, depth, values = (present(operand) for operand in operands)
        size = single(depth, "the depth")
        size = fresh("depth") if size is None else size
        axis = normalize_axis(self.axis, indices.rank + 1)
        if not isinstance(size, Dim):
            size = _depth(size)
        if values.rank != 1 or differ(values.shape[0], 2):
            raise ModelError(f"the values are {values.type}, expected two: off and on")
        return (values.tensor.with_dims((*indices.shape[:axis], size, *indices.shape[axis:])),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(present(operands[2]).dtype, None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        indices, depth, choices = (np.asarray(value) for value in values)
        size = _depth(number(depth, "the depth"))
        if choices.shape != (2,):
            raise ModelError(f"the values have the shape {list(choices.shape)}, expected two: off and on")
        places = indices.astype(np.int64)
        places = np.where(places < 0, places + size, places)
        axis = normalize_axis(self.axis, indices.ndim + 1)
        shape = [1] * (indices.ndim + 1)
        shape[axis] = size
        hot = np.expand_dims(places, axis) == np.arange(size).reshape(shape)
        return (choices[hot.astype(np.int8)],)


def _depth(value: Any) -> int:
    """The size of the new axis; ONNX allows a float for it."""
    if not 0 <= value < 1 << 63:
        raise ModelError(f"the depth is {value}, expected a size")
    return int(value)


@register
@dataclass(frozen=True, slots=True)
class NonZero(Op):
    """Coordinates of the elements that are not zero, int64[rank, count], in row-major order."""

    name = "nonzero"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x = present(operands[0])
        return (TensorType(INT64, (x.rank, self._count(x))),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(INT64, (fresh("rank"), fresh("count"))),)

    @staticmethod
    def _count(x: Value) -> DimLike:
        total = product(x.shape)
        made_by = x.instruction
        if isinstance(made_by.op, Broadcast) and made_by.operands[0] is not None:
            scalar = made_by.operands[0].constant
            # NonZero(ConstantOfShape(shape)) is how older exporters write a range.
            if scalar is not None and scalar.size == 1 and scalar.item():
                return total
        return fresh("count", upper=dims.bounds(total)[1])

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        if x.ndim == 0:  # ONNX: shape (0, count), unlike numpy
            return (np.zeros((0, int(bool(x))), np.int64),)
        return (np.stack(np.nonzero(x)).astype(np.int64, copy=False),)


@register
@dataclass(frozen=True, slots=True)
class Compress(Op):
    """Slices of `x` along `axis`, or elements of all of `x`, where the condition (1-D, may be shorter) is true."""

    name = "compress"
    axis: int | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, condition = present(operands[0]).tensor, present(operands[1])
        if condition.dtype is not BOOL or (condition.tensor.dims is not None and condition.rank != 1):
            raise ModelError(f"the condition is {condition.type}, expected bool of rank 1")
        if self.axis is None:
            upper = None if x.dims is None else dims.bounds(product(x.dims))[1]
            return (x.with_dims((fresh("count", upper=upper),)),)
        axis = normalize_axis(self.axis, x.rank)
        kept = fresh("count", upper=dims.bounds(x.shape[axis])[1])
        return (x.with_dims((*x.shape[:axis], kept, *x.shape[axis + 1 :])),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, condition = np.asarray(values[0]), np.asarray(values[1])
        limit = x.size if self.axis is None else x.shape[self.axis]
        if np.any(condition[limit:]):
            raise ModelError(f"the condition selects element {int(np.flatnonzero(condition)[-1])} of {limit}")
        return (np.compress(condition[:limit], x, self.axis),)


@register
@dataclass(frozen=True, slots=True)
class Range(Op):
    """`start + i * delta` for i in 0 .. ceil((limit - start) / delta) - 1. Operands: start, limit, delta."""

    name = "range"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        first, *rest = (present(operand) for operand in operands)
        for other in rest:
            if other.dtype is not first.dtype:
                raise ModelError(f"start is {first.dtype}, found {other.dtype} beside it, expected one element type")
        for operand in (first, *rest):
            if operand.tensor.dims is not None and differ(product(operand.shape), 1):
                raise ModelError(f"start, limit or delta is {operand.type}, expected a scalar")
        size = self._size(*operands)
        return (TensorType(first.dtype, (fresh("count") if size is None else size,)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return self.infer(*operands)

    @staticmethod
    def _size(*operands: Value | None) -> DimLike | None:
        known = [steering(None, operand) for operand in operands]
        if any(not values for values in known):
            return None
        start, limit, delta = (values[0] for values in known if values)
        if isinstance(delta, Dim):
            return None
        if delta == 0:
            raise ModelError("the delta of a range is 0, expected a positive or negative number")
        if not isinstance(start, Dim) and not isinstance(limit, Dim):
            return _steps(start, limit, delta)
        distance = limit - start if delta > 0 else start - limit
        return dims.ceildiv(dims.dim_max(distance, 0), abs(delta))

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        for value in values:
            if np.size(value) != 1:
                raise ModelError(f"start, limit or delta has {np.size(value)} elements, expected a scalar")
        start, limit, delta = (number(value, "a bound of the range") for value in values)
        kind = np.asarray(values[0]).dtype
        if delta == 0:
            raise ModelError("the delta of a range is 0, expected a positive or negative number")
        wide = np.dtype(np.float32) if kind.kind in "fV" and kind.itemsize < 4 else kind
        plain = int if kind.kind in "iu" else float
        steps = np.arange(_steps(plain(start), plain(limit), plain(delta))).astype(wide)
        return ((np.asarray(start, wide) + steps * np.asarray(delta, wide)).astype(kind),)

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        known = [steering(None, operand) for operand in operands]
        size = self._size(*operands)
        if any(values is None for values in known) or not present(operands[0]).dtype.is_integer:
            return None
        if not isinstance(size, int):
            return None
        start, _, delta = (values[0] for values in known if values)
        result = np.empty(size, object)
        result[:] = [start + delta * index for index in range(size)]
        return (result,)


def _steps(start: float, limit: float, delta: float) -> int:
    if all(isinstance(value, int) for value in (start, limit, delta)):
        return max(-int((start - limit) // delta), 0)
    return max(math.ceil((limit - start) / delta), 0)


@register
@dataclass(frozen=True, slots=True)
class Triangle(Op):
    """The upper or lower triangle of the last two axes, up to diagonal `k`, zero elsewhere. Operands: x, [k]."""

    name = "triangle"
    upper: bool

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        tensor = present(operands[0]).tensor
        if tensor.rank < 2:
            raise ModelError(f"found {tensor}, expected at least two axes")
        if len(operands) > 1 and operands[1] is not None:
            single(operands[1], "the diagonal")
        return (tensor,)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, k = (*values, None)[:2]
        x = np.asarray(x)
        diagonal = 0 if k is None else int(number(k, "the diagonal"))
        rows, columns = np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])[None, :]
        kept = columns - rows >= diagonal if self.upper else columns - rows <= diagonal
        return (np.where(kept, x, np.zeros((), x.dtype)),)
