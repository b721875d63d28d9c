"""Random numbers that are the same bits on every target: Philox 4x32-10.

Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The generator is a
function of a counter and a key, so that every element is computed on its own: the key is (seed, node), the
counter (element, run).
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
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.numpy_scalar import convert

__all__ = ["Random", "philox"]

_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS: Final = 10
_WORD: Final = np.uint64(0xFFFFFFFF)
_SHIFT: Final = np.uint64(32)


def philox(counter: tuple[Array, Array, Array, Array], key: tuple[int, int]) -> tuple[Array, Array, Array, Array]:
    """Philox 4x32-10: four random words for each counter of four words; words are 32 bits held in uint64."""
    first, second, third, fourth = counter
    low, high = key
    for _ in range(_ROUNDS):
        left, right = first * _MULTIPLIERS[0], third * _MULTIPLIERS[1]
        first, second, third, fourth = (
            (right >> _SHIFT) ^ second ^ np.uint64(low),
            right & _WORD,
            (left >> _SHIFT) ^ fourth ^ np.uint64(high),
            left & _WORD,
        )
        low, high = (low + _WEYL[0]) & 0xFFFFFFFF, (high + _WEYL[1]) & 0xFFFFFFFF
    return first, second, third, fourth


@register
@dataclass(frozen=True, slots=True)
class Random(Op):
    """Random numbers of shape `dims`, or of the shape of the operand where that is None.

    `uniform` numbers lie in [first, second); `normal` ones have mean `first` and deviation `second` (Box and
    Muller's method). They are computed in float64 from 53 and 64 random bits and rounded once to `dtype`.
    Each run of a program draws other numbers, each session the same; `node` tells the ops of a program apart.
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
            raise ModelError(f"there are no {self.distribution!r} random numbers of {self.dtype}")
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
        return (self._draw(np.shape(values[0]) if dims is None else dims, env.run),)

    def _draw(self, shape: tuple[int, ...], run: int) -> Array:
        element = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint64)
        zero = np.zeros((), np.uint64)
        counter = (element & _WORD, element >> _SHIFT, zero + np.uint64(run & 0xFFFFFFFF), zero + np.uint64(run >> 32))
        words = philox(counter, (self.seed, self.node))
        if self.distribution == "uniform":
            fraction = ((words[0] << np.uint64(21)) ^ (words[1] >> np.uint64(11))).astype(np.float64) * 2.0**-53
            drawn = self.first + fraction * (self.second - self.first)
        else:
            radius = np.sqrt(-2.0 * np.log((words[0].astype(np.float64) + 1.0) * 2.0**-32))
            drawn = self.first + self.second * radius * np.cos(words[1].astype(np.float64) * (2.0 * np.pi * 2.0**-32))
        result = convert(drawn.reshape(shape), self.dtype)
        if self.distribution == "uniform" and self.dtype is not FLOAT64 and self.second > self.first:
            # Rounding must not reach the end of the half-open interval.
            end = convert(np.asarray(self.second), self.dtype)
            below = np.nextafter(end, convert(np.asarray(self.first), self.dtype))
            result = np.minimum(result, below)
        return result
