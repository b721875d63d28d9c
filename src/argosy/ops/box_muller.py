"""Normal numbers from random words by the method of Box and Muller, with the same bits on every target.

The logarithm and the cosine are made of additions, multiplications, one division and a square root, which IEEE 754
defines to the last bit, in an order that every target keeps: libraries' own functions round differently at times.
Source: G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from argosy.ir.dtype import Array

__all__ = [
    "COSINE",
    "LOGARITHM",
    "LOG_2",
    "ROOT_HALF",
    "SINE",
    "STEP",
    "cosine_of_turn",
    "log_of_fraction",
    "normal_numbers",
]

LOGARITHM: Final = tuple(2.0 / (2 * k + 1) for k in range(12))
"""log((1 + s) / (1 - s)) = 2 s + 2/3 s^3 + …, for |s| <= 0.172: what is left out is below 2^-60 of it."""
COSINE: Final = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(10))
"""cos t = 1 - t^2/2! + …, for 0 <= t <= pi/4."""
SINE: Final = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(10))
"""sin t = t - t^3/3! + …, for 0 <= t <= pi/4."""
LOG_2: Final = 0.6931471805599453
ROOT_HALF: Final = 0.7071067811865476
STEP: Final = math.pi / 2**31
"""The angle of a turn's 2^-32nd part."""
_QUARTER: Final = 1 << 30


def normal_numbers(radius: Array, angle: Array) -> Array:
    """A number for each pair of words (32 bits in uint64): sqrt(-2 log u) cos(2 pi v), u in (0, 1], v in [0, 1)."""
    return np.sqrt(-2.0 * log_of_fraction(radius)) * cosine_of_turn(angle)


def log_of_fraction(word: Array) -> Array:
    """log((word + 1) / 2^32)."""
    mantissa, exponent = np.frexp((word + np.uint64(1)).astype(np.float64))
    low = mantissa < ROOT_HALF
    mantissa = np.where(low, mantissa + mantissa, mantissa)
    exponent = exponent - low - 32
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return exponent.astype(np.float64) * LOG_2 + s * _series(LOGARITHM, s * s)


def cosine_of_turn(word: Array) -> Array:
    """cos(2 pi word / 2^32); the octant is told from the bits, so that no angle is rounded before it is small."""
    quarter, rest = word >> np.uint64(30), word & np.uint64(_QUARTER - 1)
    far = rest > np.uint64(_QUARTER // 2)
    angle = np.where(far, np.uint64(_QUARTER) - rest, rest).astype(np.float64) * STEP
    square = angle * angle
    sine, cosine = angle * _series(SINE, square), _series(COSINE, square)
    odd = (quarter & np.uint64(1)).astype(np.bool_)
    value = np.where(far == odd, cosine, sine)
    return np.where((quarter == np.uint64(1)) | (quarter == np.uint64(2)), -value, value)


def _series(coefficients: tuple[float, ...], x: Array) -> Array:
    """The polynomial of `x`, from the highest power down."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total
