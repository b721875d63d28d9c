"""Several tensors to one and back: concat, split, tile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike
from argosy.ir.module import Value
from argosy.ir.op import Known, Op, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.demands import demand_room, differ
from argosy.ops.operands import ints, present, shape_text, steering, unknown_dims
from argosy.ops.shapes import normalize_axis, product

__all__ = ["Concat", "Split", "Tile"]

_MOST: Final = 2**63 - 1
"""Bytes of an array at most: numpy does not check this where it repeats elements, and crashes."""


@register
@dataclass(frozen=True, slots=True)
class Concat(Op):
    """The operands one after another along `axis`."""

    name = "concat"
    axis: int

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        tensors = [present(operand).tensor for operand in operands]
        first = tensors[0]
        rank = next((tensor.rank for tensor in tensors if tensor.dims is not None), 0)
        if rank == 0 and first.dims is not None:
            raise ModelError("scalars can't be concatenated")
        for tensor in tensors:
            if tensor.dtype is not first.dtype:
                raise ModelError(f"operands have the element types {first.dtype} and {tensor.dtype}, expected one")
            if tensor.dims is not None and tensor.rank != rank:
                raise ModelError(f"operands have the ranks {rank} and {tensor.rank}, expected one")
        axis = normalize_axis(self.axis, rank) if rank else self.axis
        result = list(first.shape)
        for tensor in tensors[1:]:
            for place, dim in enumerate(tensor.shape):
                result[place] = result[place] + dim if place == axis else _same(result[place], dim, place, axis)
        return (TensorType(first.dtype, tuple(result)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (np.concatenate(values, self.axis),)

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        parts = [present(operand).known for operand in operands]
        return None if any(part is None for part in parts) else self.evaluate(*parts)


def _same(left: DimLike, right: DimLike, place: int, axis: int) -> DimLike:
    if differ(left, right):
        raise ModelError(f"operands differ at axis {place} ({left} and {right}), but are joined along axis {axis}")
    return right if isinstance(right, int) else left


@register
@dataclass(frozen=True, slots=True)
class Split(Op):
    """`count` pieces of `x` along `axis`: of the given sizes, else equal ones with the last as small as it must be.

    Operands: x, [sizes].
    """

    name = "split"
    axis: int
    count: int
    sizes: Dims | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, *rest = operands
        tensor = present(x).tensor
        given = rest[0] if rest else None
        axis = normalize_axis(self.axis, tensor.rank)
        size = tensor.shape[axis]
        pieces = steering(self.sizes, given)
        if pieces is None:
            pieces = self._equal(size) if given is None else unknown_dims(self.count)
        if len(pieces) != self.count:
            raise ModelError(f"{len(pieces)} sizes are given for {self.count} outputs")
        if differ(sum(pieces[1:], pieces[0]), size):
            raise ModelError(f"the sizes {shape_text(pieces)} do not add up to the dim {size} of axis {axis}")
        for piece in pieces:
            if isinstance(piece, int) and piece < 0:
                raise ModelError(f"the sizes are {shape_text(pieces)}, expected none below 0")
            demand_room(piece, axis)
        return tuple(tensor.with_dims((*tensor.shape[:axis], piece, *tensor.shape[axis + 1 :])) for piece in pieces)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(present(operands[0]).dtype, None),) * self.count

    def _equal(self, size: DimLike) -> Dims:
        chunk = dims.ceildiv(size, self.count)
        last = size - chunk * (self.count - 1)
        if isinstance(last, int) and last < 0:
            raise ModelError(f"the dim {size} can't be split into {self.count} pieces")
        return (*(chunk,) * (self.count - 1), last)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        given = values[1] if len(values) > 1 else None
        size = x.shape[self.axis]
        pieces = self._equal(size) if self.sizes is None and given is None else ints(self.sizes, given, "sizes")
        if len(pieces) != self.count or sum(int(piece) for piece in pieces) != size:
            raise ModelError(f"the sizes {shape_text(pieces)} do not add up to the dim {size} of axis {self.axis}")
        return tuple(np.split(x, list(accumulate(int(piece) for piece in pieces[:-1])), self.axis))

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        x, *rest = operands
        sizes = steering(self.sizes, rest[0] if rest else None)
        source = present(x).known
        if source is None or (sizes is None and rest and rest[0] is not None):
            return None
        if sizes is not None and any(isinstance(size, Dim) for size in sizes):
            return None
        return self.evaluate(source, sizes)


@register
@dataclass(frozen=True, slots=True)
class Tile(Op):
    """`x` repeated: `result.dims[i] = x.dims[i] * repeats[i]`. Operands: x, [repeats]."""

    name = "tile"
    moves_data = True
    repeats: Dims | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, *rest = operands
        tensor = present(x).tensor
        repeats = steering(self.repeats, rest[0] if rest else None)
        if repeats is None:
            given = present(rest[0] if rest else None).tensor
            if given.dims is not None and differ(product(given.dims), tensor.rank):
                raise ModelError(f"the repeats are {given} for a tensor of rank {tensor.rank}")
            return (tensor.with_dims(unknown_dims(tensor.rank)),)
        if len(repeats) != tensor.rank:
            raise ModelError(f"{len(repeats)} repeats are given for a tensor of rank {tensor.rank}")
        return (tensor.with_dims(tuple(by * dim for dim, by in zip(tensor.shape, repeats, strict=True))),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        repeats = ints(self.repeats, values[1] if len(values) > 1 else None, "repeats")
        if len(repeats) != x.ndim:
            raise ModelError(f"{len(repeats)} repeats are given for a tensor of rank {x.ndim}")
        if math.prod(max(size, 1) for size in (x.itemsize, *x.shape, *repeats)) > _MOST:
            sizes = tuple(size * by for size, by in zip(x.shape, repeats, strict=True))
            raise ModelError(
                f"{shape_text(repeats)} repeats of {shape_text(x.shape)} make {shape_text(sizes)}, too large"
            )
        return (np.tile(x, repeats),)
