"""Running sums and products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import Type
from argosy.ops.operands import number, present, single
from argosy.ops.shapes import normalize_axis

__all__ = ["Cumulative"]


@register
@dataclass(frozen=True, slots=True)
class Cumulative(Op):
    """`result[i]` = the sum (product) of `x[0] … x[i]` along an axis. Operands: x, axis (a number in a tensor).

    `exclusive` leaves `x[i]` itself out; `reverse` runs from the end. Short floats are summed in float32 and
    rounded once.
    """

    name = "cumulative"
    kind: str
    exclusive: bool = False
    reverse: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        if self.kind not in ("sum", "prod"):
            raise ModelError(f"the kind is {self.kind!r}, expected sum or prod")
        x, axis = present(operands[0]).tensor, single(operands[1], "the axis")
        if isinstance(axis, int) and x.dims is not None:
            normalize_axis(axis, x.rank)
        return (x,)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        axis = normalize_axis(int(number(values[1], "the axis")), x.ndim)
        wide = dtype_of(x.dtype).compute.numpy
        run = np.flip(x, axis) if self.reverse else x
        run = (np.cumsum if self.kind == "sum" else np.cumprod)(run, axis, dtype=wide)
        if self.exclusive:
            neutral = np.full_like(run, 0 if self.kind == "sum" else 1)
            places = [slice(None)] * x.ndim
            behind, before = list(places), list(places)
            behind[axis], before[axis] = slice(1, None), slice(None, -1)
            neutral[tuple(behind)] = run[tuple(before)]
            run = neutral
        return ((np.flip(run, axis) if self.reverse else run).astype(x.dtype, copy=False),)
