"""Random numbers that are the same bits on every target.

They come from Philox (`argosy.ir.philox`), a function of a counter and a key, so that every element is computed on
its own: the key is (seed, node), the counter (element, draw).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from argosy.errors import InternalError, ModelError
from argosy.ir.dim import evaluate
from argosy.ir.dtype import FLOAT64, Array, DType
from argosy.ir.module import Value
from argosy.ir.op import Env, Op, register
from argosy.ir.philox import draw_number, philox
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.box_muller import normal_numbers
from argosy.ops.numpy_scalar import convert

__all__ = ["Random"]

_WORD: Final = np.uint64(0xFFFFFFFF)
_SHIFT: Final = np.uint64(32)


@register
@dataclass(frozen=True, slots=True)
class Random(Op):
    """Random numbers of shape `dims`, or of the shape of the operand where that is None.

    `uniform` numbers lie in [first, second); `normal` ones have mean `first` and deviation `second` (Box and
    Muller's method). They are computed in float64 from 53 and 64 random bits and rounded once to `dtype`.
    Each run of a program and each iteration of a body draws other numbers, each session the same; `node` tells
    the ops of a program apart.
    """

    name = "random"
    pure: ClassVar[bool] = False
    distribution: str
    dtype: DType
    first: float
    second: float
    seed: int
    node: int
    dims: Dims | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        if self.distribution not in ("uniform", "normal") or not self.dtype.is_float:
            what = f"there are no {self.distribution!r} random numbers of {self.dtype}"
            raise ModelError(what, hint="draw numbers of a float type: of ONNX's ops, by the attribute 'dtype'")
        like = operands[0] if operands else None
        if self.dims is not None:
            return (TensorType(self.dtype, self.dims),)
        if like is None:
            raise InternalError("random numbers need dims or an operand")
        return (TensorType(self.dtype, like.shape),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(self.dtype, None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return self.evaluate_in(Env(), *values)

    def evaluate_in(self, env: Env, *values: Any) -> tuple[Any, ...]:
        dims = None if self.dims is None else tuple(evaluate(dim, env.symbols) for dim in self.dims)
        return (self._draw(np.shape(values[0]) if dims is None else dims, draw_number(env.run, env.iterations)),)

    def _draw(self, shape: tuple[int, ...], number: int) -> Array:
        element = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint64)
        low, high = (np.asarray(word, np.uint64) for word in (number & 0xFFFFFFFF, number >> 32))
        counter = (element & _WORD, element >> _SHIFT, low, high)
        words = philox(counter, (self.seed, self.node))
        if self.distribution == "uniform":
            fraction = ((words[0] << np.uint64(21)) ^ (words[1] >> np.uint64(11))).astype(np.float64) * 2.0**-53
            drawn = self.first + fraction * (self.second - self.first)
        else:
            drawn = self.first + self.second * normal_numbers(words[0], words[1])
        result = convert(drawn.reshape(shape), self.dtype)
        if self.distribution == "uniform" and self.dtype is not FLOAT64 and self.second > self.first:
            # Rounding must not reach the end of the half-open interval.
            end = convert(np.asarray(self.second), self.dtype)
            below = np.nextafter(end, convert(np.asarray(self.first), self.dtype))
            result = np.minimum(result, below)
        return result
