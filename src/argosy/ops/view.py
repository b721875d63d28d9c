"""Ops that say where elements lie: reshape, transpose, broadcast, squeeze, unsqueeze, and the other views.

An attribute that is None is given by an operand at run time; `infer` then uses what is known of it.
Slices and pads, joins, and the values of dims have files of their own and are found here too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import DType
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.demands import differ
from argosy.ops.dim_values import DimValues, Shape
from argosy.ops.joining import Concat, Split, Tile
from argosy.ops.operands import ints, length, numbers, present, shape_text, steering, unknown_dims
from argosy.ops.shapes import broadcast, normalize_axis, product
from argosy.ops.slicing import Pad, ReverseSequence, Slice

__all__ = [
    "BitCast",
    "Broadcast",
    "Concat",
    "DimValues",
    "Pad",
    "Reshape",
    "ReverseSequence",
    "Shape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
]


@register
@dataclass(frozen=True, slots=True)
class Reshape(Op):
    """The elements of `x` in row-major order under other dims: ONNX Reshape.

    One entry may be -1 and takes what is left; an entry 0 stands for the dim of `x` at that place, unless
    `allow_zero`. Operands: x, [shape] (the latter where `dims` is None).
    """

    name = "reshape"
    moves_data = True
    dims: Dims | None = None
    allow_zero: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, *rest = operands
        tensor = present(x).tensor
        shape = rest[0] if rest else None
        wanted = steering(self.dims, shape)
        if wanted is None:
            rank = length(shape)
            return (TensorType(tensor.dtype, None if rank is None else unknown_dims(rank)),)
        return (TensorType(tensor.dtype, self._resolve(wanted, tensor.dims)),)

    def _resolve(self, wanted: Dims, source: Dims | None) -> Dims:
        result: list[DimLike] = []
        for axis, entry in enumerate(wanted):
            if isinstance(entry, int) and entry < -1:
                raise ModelError(f"the shape holds {entry}, expected sizes, 0 or -1")
            if isinstance(entry, int) and entry == 0 and not self.allow_zero:
                if source is not None and axis >= len(source):
                    raise ModelError(f"the shape copies axis {axis} (an entry 0) of a tensor of rank {len(source)}")
                result.append(fresh(f"{axis}_") if source is None else source[axis])
            else:
                result.append(entry)
        left = [axis for axis, entry in enumerate(result) if isinstance(entry, int) and entry == -1]
        if len(left) > 1:
            raise ModelError(f"the shape {shape_text(wanted)} holds -1 more than once")
        if source is None:
            return tuple(fresh(f"{axis}_") if axis in left else entry for axis, entry in enumerate(result))
        if left:
            others = [entry for axis, entry in enumerate(result) if axis != left[0]]
            result[left[0]] = self._rest(source, others, wanted)
        if differ(product(tuple(result)), product(source)):
            what = f"the dims {shape_text(source)} can't be reshaped to {shape_text(wanted)}"
            raise ModelError(f"{what}: the sizes differ")
        return tuple(result)

    def _rest(self, source: Dims, others: list[DimLike], wanted: Dims) -> DimLike:
        """What -1 stands for: the quotient of the sizes, which leaves nothing over."""
        kept = list(source)
        # Dims on both sides cancel, so that the quotient is defined where one of them is 0.
        unmatched: list[DimLike] = []
        for entry in others:
            if entry in kept:
                kept.remove(entry)
            else:
                unmatched.append(entry)
        total, divisor = product(tuple(kept)), product(tuple(unmatched))
        if isinstance(divisor, Dim):
            return dims.floordiv(total, divisor)
        if divisor == 0:
            if self.allow_zero:
                raise ModelError(f"the shape {shape_text(wanted)} holds both 0 and -1, so that -1 is undetermined")
            return 0
        if isinstance(total, int) and total % divisor:
            what = f"the dims {shape_text(source)} can't be reshaped to {shape_text(wanted)}"
            raise ModelError(f"{what}: {total} is no multiple of {divisor}")
        factors = [total] if isinstance(total, int) else [coefficient for _, coefficient in total.terms]
        shared = math.gcd(divisor, *factors)
        return dims.floordiv(dims.floordiv(total, shared), divisor // shared)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        wanted = ints(self.dims, values[1] if len(values) > 1 else None, "the shape")
        shape = [int(entry) for entry in self._resolve(wanted, x.shape)]
        return (x.reshape(shape),)


@register
@dataclass(frozen=True, slots=True)
class Transpose(Op):
    """`result.dims[i] = x.dims[permutation[i]]`; None reverses the axes."""

    name = "transpose"
    moves_data = True
    permutation: tuple[int, ...] | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        tensor = present(operands[0]).tensor
        order = self.permutation
        if order is None:
            return (tensor.with_dims(tensor.shape[::-1]),)
        if tensor.dims is not None and sorted(order) != list(range(tensor.rank)):
            raise ModelError(f"{list(order)} is no permutation of the {tensor.rank} axes of {tensor}")
        return (tensor.with_dims(tuple(tensor.shape[axis] for axis in order)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        rank = None if self.permutation is None else len(self.permutation)
        return (TensorType(present(operands[0]).dtype, None if rank is None else unknown_dims(rank)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (np.transpose(values[0], self.permutation),)


@register
@dataclass(frozen=True, slots=True)
class Broadcast(Op):
    """`x` repeated along axes of size 1 and new leading axes, to the broadcast of its dims with `dims`.

    ONNX Expand: both sides may have a 1 where the other has a size. Operands: x, [shape].
    """

    name = "broadcast"
    moves_data = True
    dims: Dims | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, *rest = operands
        tensor = present(x).tensor
        shape = rest[0] if rest else None
        wanted = steering(self.dims, shape)
        if wanted is not None:
            return (tensor.with_dims(broadcast(tensor.shape, wanted)),)
        rank = length(shape)
        if rank is None:
            return (tensor.with_dims(None),)
        known = (1,) * (rank - tensor.rank) + tensor.shape
        # A size other than 1 can't change, whatever the shape says.
        fixed = tuple(dim if isinstance(dim, int) and dim != 1 else fresh(f"{axis}_") for axis, dim in enumerate(known))
        return (tensor.with_dims(fixed),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        wanted = ints(self.dims, values[1] if len(values) > 1 else None, "the shape")
        return (np.broadcast_to(x, [int(dim) for dim in broadcast(x.shape, wanted)]),)


@register
@dataclass(frozen=True, slots=True)
class Squeeze(Op):
    """`x` without the given axes of size 1, or without all of them. Operands: x, [axes].

    An operand of no elements names no axes, so that all go, as without one.
    """

    name = "squeeze"
    moves_data = True
    axes: tuple[int, ...] | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, *rest = operands
        tensor = present(x).tensor
        given = rest[0] if rest and length(rest[0]) != 0 else None
        axes = numbers(self.axes, given)
        if axes is None and given is not None:
            count = length(given)
            return (tensor.with_dims(None if count is None else unknown_dims(tensor.rank - count)),)
        if axes is None and any(dims.equal(dim, 1) is None for dim in tensor.shape):
            return (tensor.with_dims(None),)
        removed = self._removed(axes, tensor.shape)
        return (tensor.with_dims(tuple(dim for axis, dim in enumerate(tensor.shape) if axis not in removed)),)

    @staticmethod
    def _removed(axes: tuple[int, ...] | None, shape: Dims) -> set[int]:
        if axes is None:
            return {axis for axis, dim in enumerate(shape) if isinstance(dim, int) and dim == 1}
        removed = {normalize_axis(axis, len(shape)) for axis in axes}
        for axis in sorted(removed):
            if differ(shape[axis], 1):
                raise ModelError(f"axis {axis} of {shape_text(shape)} is removed, so its size must be 1")
        return removed

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        given = values[1] if len(values) > 1 and np.size(values[1]) else None
        axes = None if self.axes is None and given is None else ints(self.axes, given, "axes")
        return (np.squeeze(x, tuple(self._removed(axes, x.shape))),)


@register
@dataclass(frozen=True, slots=True)
class Unsqueeze(Op):
    """`x` with axes of size 1 put in, at places counted in the result. Operands: x, [axes]."""

    name = "unsqueeze"
    moves_data = True
    axes: tuple[int, ...] | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, *rest = operands
        tensor = present(x).tensor
        given = rest[0] if rest else None
        axes = numbers(self.axes, given)
        if axes is None:
            count = length(given)
            return (tensor.with_dims(None if count is None else unknown_dims(tensor.rank + count)),)
        return (tensor.with_dims(self._inserted(axes, tensor.shape)),)

    @staticmethod
    def _inserted(axes: tuple[int, ...], shape: Dims) -> Dims:
        rank = len(shape) + len(axes)
        places = {normalize_axis(axis, rank) for axis in axes}
        if len(places) != len(axes):
            raise ModelError(f"axes {list(axes)} name one axis twice")
        rest = iter(shape)
        return tuple(1 if axis in places else next(rest) for axis in range(rank))

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        axes = ints(self.axes, values[1] if len(values) > 1 else None, "axes")
        return (x.reshape([int(dim) for dim in self._inserted(axes, x.shape)]),)


@register
@dataclass(frozen=True, slots=True)
class BitCast(Op):
    """The bits of `x` read as another element type of the same width."""

    name = "bit_cast"
    dtype: DType

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        tensor = present(operands[0]).tensor
        if tensor.dtype.bits != self.dtype.bits:
            raise ModelError(f"the bits of {tensor.dtype} can't be read as {self.dtype}: the widths differ")
        return (tensor.with_dtype(self.dtype),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(self.dtype, None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (np.ascontiguousarray(values[0]).view(self.dtype.numpy).reshape(np.shape(values[0])),)
