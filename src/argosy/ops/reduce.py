"""Reductions over axes: sum, mean, prod, max, min; the position of an extreme; softmax."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import InternalError, ModelError
from argosy.ir.dim import Dim, DimLike, dim_max, dim_min
from argosy.ir.dtype import BOOL, INT64, Array, DType, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Known, Op, fresh, register
from argosy.ir.types import TensorType, Type, UnrankedError
from argosy.ops.demands import demand_room
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import length, numbers
from argosy.ops.shapes import normalize_axis

__all__ = ["ArgReduce", "Reduce", "Softmax"]

_KINDS: Final = ("sum", "mean", "prod", "max", "min")
_ON_DIMS: Final[dict[str, tuple[Callable[[DimLike, DimLike], DimLike], int | None]]] = {
    "sum": (lambda a, b: b + a, 0),
    "prod": (lambda a, b: b * a, 1),
    "max": (dim_max, None),
    "min": (dim_min, None),
}
"""The kinds that dims can be reduced by, with what an empty reduction gives."""


@register
@dataclass(frozen=True, slots=True)
class Reduce(Op):
    """`x` reduced over `axes` by `kind`: sum, mean, prod, max or min.

    `axes` may be negative and in any order; None means that the operand `axes` gives them (an absent one
    counts as empty). No axes mean all of them, or none where `noop_with_empty_axes`. A reduction over no
    elements gives 0, 1, NaN (mean), or the least or greatest value of the type (max, min).

    Float32 sums, means and products are accumulated in float64 and rounded once; short floats too.
    Integer sums wrap in their own type; an integer mean truncates. Max and min are NaN where an element is;
    of bools they are "or" and "and".
    """

    name = "reduce"
    kind: str
    axes: tuple[int, ...] | None = None
    keep_dims: bool = True
    noop_with_empty_axes: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, given = _operands(operands)
        self._check(x.dtype)
        axes = self._known_axes(given)
        if axes is None:
            return (TensorType(x.dtype, self._unknown_axes_shape(x, given)),)
        reduced = self._reduced(axes, x.rank)
        if self.keep_dims:
            return (TensorType(x.dtype, tuple(1 if i in reduced else dim for i, dim in enumerate(x.shape))),)
        return (TensorType(x.dtype, tuple(dim for i, dim in enumerate(x.shape) if i not in reduced)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        x, given = _operands(operands)
        everything = self._known_axes(given) == () and not self.noop_with_empty_axes and not self.keep_dims
        return (TensorType(x.dtype, () if everything else None),)

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        x, given = _operands(operands)
        axes = self._known_axes(given)
        if x.known is None or axes is None or self.kind not in _ON_DIMS or not x.dtype.is_integer:
            return None
        combine, empty = _ON_DIMS[self.kind]
        reduced = self._reduced(axes, x.known.ndim)
        kept = [i for i in range(x.known.ndim) if i not in reduced]
        rows = x.known.transpose([*kept, *reduced]).reshape(
            *(x.known.shape[i] for i in kept), math.prod(x.known.shape[i] for i in reduced)
        )
        if not rows.shape[-1] and empty is None:
            return None
        if not any(isinstance(element, Dim) for element in x.known.flat):  # numbers wrap in their type
            return self.evaluate(x.known.astype(x.dtype.numpy), axes)
        result = np.empty(rows.shape[:-1], dtype=object)
        for index in np.ndindex(*rows.shape[:-1]):
            elements = rows[index].tolist()
            result[index] = functools.reduce(combine, elements) if elements else empty
        if self.keep_dims:
            result = result.reshape([1 if i in reduced else size for i, size in enumerate(x.known.shape)])
        return (result,)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = values[0]
        if self.axes is None:
            axes = tuple(int(axis) for axis in np.ravel(values[1])) if len(values) > 1 and values[1] is not None else ()
        else:
            axes = self.axes
        return (self._reduce(x, self._reduced(axes, x.ndim)),)

    def _check(self, dtype: DType) -> None:
        if self.kind not in _KINDS:
            raise InternalError(f"there is no reduction of kind {self.kind!r}")
        if dtype.is_float or dtype.is_integer or (dtype is BOOL and self.kind in ("max", "min")):
            return
        raise ModelError(f"a reduction by {self.kind} is not defined for {dtype}")

    def _known_axes(self, given: Value | None) -> tuple[int, ...] | None:
        if self.axes is None and (given is None or length(given) == 0):
            return ()
        return numbers(self.axes, given)

    def _reduced(self, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
        if not axes:
            return () if self.noop_with_empty_axes else tuple(range(rank))
        return tuple(sorted({normalize_axis(axis, rank, "an axis to reduce") for axis in axes}))

    def _unknown_axes_shape(self, x: Value, given: Value | None) -> tuple[DimLike, ...]:
        if self.keep_dims:
            return tuple(fresh(f"kept{axis}") for axis in range(x.rank))
        count = given.shape[0] if given is not None and given.rank else None
        if not isinstance(count, int):
            raise UnrankedError
        return tuple(fresh(f"kept{axis}") for axis in range(x.rank - count))

    def _reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        dtype = dtype_of(x.dtype)
        if self.kind in ("max", "min"):
            return self._extreme(x, axes, dtype)
        count = math.prod(x.shape[axis] for axis in axes)
        # The wide type keeps a long sum exact, whatever the order in which numpy adds.
        wide = np.dtype(np.float64) if dtype.is_float else dtype.numpy
        values = x.astype(np.float32) if x.dtype.kind == "V" else x
        if self.kind == "prod":
            return convert(np.asarray(values.prod(axis=axes, keepdims=self.keep_dims, dtype=wide)), dtype)
        total = np.asarray(values.sum(axis=axes, keepdims=self.keep_dims, dtype=wide))
        if self.kind == "sum":
            return convert(total, dtype)
        if dtype.is_float:
            return convert(np.asarray(total / np.float64(count)), dtype)
        return convert(np.trunc(total.astype(np.float64) / max(count, 1)), dtype)

    def _extreme(self, x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
        wide = x.astype(np.float32) if x.dtype.kind == "V" else x
        function = np.max if self.kind == "max" else np.min
        # An empty reduction gives the limit; for others numpy is faster without an initial value.
        limits = {}
        if not math.prod(x.shape[axis] for axis in axes):
            limits["initial"] = _limits(wide.dtype)[0 if self.kind == "max" else 1]
        return convert(np.asarray(function(wide, axis=axes, keepdims=self.keep_dims, **limits)), dtype)


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the greatest value of a numpy type; infinities for floats."""
    if dtype.kind == "b":
        return False, True
    if dtype.kind == "f":
        return -np.inf, np.inf
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def _operands(operands: tuple[Value | None, ...]) -> tuple[Value, Value | None]:
    x = operands[0]
    if x is None:
        raise ModelError("a reduction needs an operand")
    return x, operands[1] if len(operands) > 1 else None


@register
@dataclass(frozen=True, slots=True)
class ArgReduce(Op):
    """Position (int64) of the greatest or least element along `axis`: the first of equals, or the last.

    A NaN counts as the extreme, as in numpy. The axis must not be empty.
    """

    name = "arg_reduce"
    kind: str
    axis: int
    keep_dims: bool = True
    select_last: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, _ = _operands(operands)
        if not (x.dtype.is_float or x.dtype.is_integer):
            raise ModelError(f"the position of the {self.kind} is not defined for {x.dtype}")
        axis = normalize_axis(self.axis, x.rank)
        demand_room(x.shape[axis] - 1, axis)
        middle: tuple[DimLike, ...] = (1,) if self.keep_dims else ()
        return (TensorType(INT64, (*x.shape[:axis], *middle, *x.shape[axis + 1 :])),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(INT64, None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = values[0].astype(np.float32) if values[0].dtype.kind == "V" else values[0]
        axis = normalize_axis(self.axis, x.ndim)
        size = x.shape[axis]
        if not size:
            raise ModelError(f"the position of the {self.kind} along axis {axis}, which is empty")
        find = np.argmax if self.kind == "max" else np.argmin
        if self.select_last:
            found = size - 1 - find(np.flip(x, axis), axis=axis, keepdims=self.keep_dims)
        else:
            found = find(x, axis=axis, keepdims=self.keep_dims)
        return (np.asarray(found, dtype=np.int64),)


@register
@dataclass(frozen=True, slots=True)
class Softmax(Op):
    """`exp(x) / sum(exp(x))` along `axis`, or its logarithm; the largest element is subtracted first.

    Short floats are computed in float32 and rounded once.
    """

    name = "softmax"
    axis: int = -1
    log: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, _ = _operands(operands)
        if not x.dtype.is_float:
            raise ModelError(f"softmax is not defined for {x.dtype}")
        normalize_axis(self.axis, x.rank)
        return (x.type,)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        dtype = dtype_of(values[0].dtype)
        x = values[0].astype(dtype.compute.numpy, copy=False)
        if not x.size:
            return (values[0].copy(),)
        shifted = x - x.max(axis=self.axis, keepdims=True)
        powers = np.exp(shifted)
        total = powers.sum(axis=self.axis, keepdims=True, dtype=np.float64)
        if self.log:
            return (convert(shifted - np.log(total).astype(x.dtype), dtype),)
        powers /= total.astype(x.dtype)
        return (convert(powers, dtype),)
