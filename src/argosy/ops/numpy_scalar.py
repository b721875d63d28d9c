"""The scalar vocabulary in numpy: one function for each primitive of `ir.scalar`, with its edge rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from argosy.ir.dtype import Array, DType, dtype_of

__all__ = ["NUMPY", "convert", "erf"]

# Rational approximations of erf in three ranges, good to an ulp of float64.
# Source: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969).
_SMALL = (
    (
        1.85777706184603153e-1,
        3.16112374387056560e0,
        1.13864154151050156e2,
        3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
        2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
        3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
    ),
)  # fmt: skip
_LARGE = (
    (
        1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
        1.60837851487422766e-2, 6.58749161529837803e-4,
    ),
    (
        1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)  # fmt: skip
_SMALL_LIMIT = 0.46875
_MIDDLE_LIMIT = 4.0


def _ratio(x: Array, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
    return np.polyval(coefficients[0], x) / np.polyval(coefficients[1], x)


def erf(x: Array) -> Array:
    """The error function, computed in float64 and rounded to the type of `x`."""
    wide = np.asarray(x, np.float64)
    size = np.abs(wide)
    small = size <= _SMALL_LIMIT
    result = np.empty_like(wide)
    near = wide[small]
    result[small] = near * _ratio(near * near, _SMALL)
    far = np.minimum(size[~small], 6.0)  # erf(6) is 1 in float64
    inverse = 1.0 / (far * far)
    beyond = (1.0 / math.sqrt(math.pi) - inverse * _ratio(inverse, _LARGE)) / far
    tail = np.exp(-far * far) * np.where(far <= _MIDDLE_LIMIT, _ratio(far, _MIDDLE), beyond)
    result[~small] = np.copysign(1.0 - tail, wide[~small])
    result[np.isnan(wide)] = np.nan
    return result.astype(x.dtype)


def _int_div(left: Array, right: Array) -> Array:
    safe = np.where(right == 0, np.ones_like(right), right)
    quotient = np.floor_divide(left, safe)
    if left.dtype.kind == "i":
        remainder = left - quotient * safe
        quotient = quotient + ((remainder != 0) & ((left < 0) != (safe < 0))).astype(left.dtype)
    return np.where(right == 0, np.zeros_like(quotient), quotient).astype(left.dtype, copy=False)


def _div(left: Array, right: Array) -> Array:
    return _int_div(left, right) if left.dtype.kind in "iu" else np.divide(left, right)


def _pow(base: Array, exponent: Array) -> Array:
    if base.dtype.kind not in "iu":
        return np.power(base, exponent).astype(base.dtype, copy=False)  # in the wider of both types, as C does
    if exponent.dtype.kind not in "iu":
        return convert(np.power(base.astype(np.float64), exponent.astype(np.float64)), dtype_of(base.dtype))
    return _int_pow(base, exponent)


def _int_pow(base: Array, exponent: Array) -> Array:
    """Powers by squaring, which wrap; 1/x truncated where the exponent is negative, which is 0 but for ±1."""
    base, exponent = np.broadcast_arrays(base, exponent)
    below = exponent < 0
    inverse = np.where(np.abs(base) == 1, base, 0).astype(base.dtype)
    factor = np.where(below, inverse, base)
    remaining = np.where(below, 0 - exponent, exponent).astype(np.uint64)
    result = np.ones_like(factor)
    while remaining.any():
        result = np.where(remaining & 1, result * factor, result)
        factor = factor * factor
        remaining = remaining >> np.uint64(1)
    return result


def _shl(value: Array, by: Array) -> Array:
    width = value.dtype.itemsize * 8
    return np.where((by >= width) | (by < 0), np.zeros_like(value), np.left_shift(value, np.clip(by, 0, width - 1)))


def _shr(value: Array, by: Array) -> Array:
    width = value.dtype.itemsize * 8
    shifted = np.right_shift(value, np.where(by < 0, width - 1, np.minimum(by, width - 1)).astype(by.dtype))
    return shifted if value.dtype.kind == "i" else np.where(by >= width, np.zeros_like(value), shifted)


@np.errstate(all="ignore")
def convert(value: Array, dtype: DType) -> Array:
    """`value` in another element type: nearest even into floats, towards zero into integers (which wrap)."""
    target = dtype.numpy
    if value.dtype == target:
        return value
    if value.dtype.kind == "c" and dtype.kind != "complex":
        value = value.real
    source = dtype_of(value.dtype)
    if source.compute is not source:
        value = value.astype(source.compute.numpy)  # exact, and numpy's own
    match dtype.kind:
        case "int" | "uint":
            whole = _modulo_two_to_64(value) if value.dtype.kind == "f" else value
            return _low_bits(whole, dtype) if dtype.bits < 8 else whole.astype(target)
        case "float" if not np.issubdtype(target, np.floating) and value.dtype not in (np.float16, np.float32):
            value = _round_to_odd(value)
    return _exponents(value).view(target) if dtype.name == "float8_e8m0fnu" else value.astype(target)


def _modulo_two_to_64(value: Array) -> Array:
    """Floats rounded towards zero, as uint64 that wrap; 0 for NaN and infinities.

    A cast of numpy's does what the processor does with a float that is out of range: each something else.
    """
    whole = np.fmod(np.where(np.isfinite(value), np.trunc(value), 0).astype(np.float64), 2.0**64)
    size = np.abs(whole).astype(np.uint64)
    return np.where(whole < 0, 0 - size, size)


def _low_bits(whole: Array, dtype: DType) -> Array:
    codes = whole.astype(np.int8) & ((1 << dtype.bits) - 1)
    sign = 1 << (dtype.bits - 1)
    return ((codes ^ sign) - sign if dtype.kind == "int" else codes).astype(dtype.numpy)


def _exponents(value: Array) -> Array:
    """The codes of float8_e8m0fnu: the biased exponent of the nearest power of two, the larger one of two.

    0xFF, its NaN, for whatever is not above zero. ml_dtypes before 0.7 took what lies between its two smallest
    numbers for the larger one. Source: OCP Microscaling Formats (MX) 1.0, section 5.4.
    """
    bits = value.astype(np.float32).view(np.int32)
    code = np.where(bits < 1 << 23, bits >= 3 << 21, (np.minimum(bits, 0x7F800000) + (1 << 22)) >> 23)
    return np.where((bits <= 0) | (bits > 0x7F800000), 0xFF, code).astype(np.uint8)


def _round_to_odd(value: Array) -> Array:
    """As float32, but of two neighbours the one with the odd significand wherever `value` is neither.

    ml_dtypes rounds by way of float32, and two roundings to nearest are not one. A first one to odd keeps on
    which side of a tie the value lies. Source: S. Boldo, G. Melquiond, "Emulation of a FMA and correctly
    rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57 (2008).
    """
    if value.dtype.kind in "iu" and value.dtype.itemsize == 8:
        # 53 bits and a sticky one, so that float64 holds it
        sticky = (value >> 11 << 11) | ((value & 0x7FF) != 0).astype(value.dtype) << 11
        value = np.where((value < 1 << 53) & (value > -(1 << 53) if value.dtype.kind == "i" else True), value, sticky)
    wide = value.astype(np.float64)
    near = wide.astype(np.float32)
    bits = near.view(np.uint32)
    exact = (near == wide) | np.isnan(wide)
    return np.where(exact, bits, (bits - (np.abs(near) > np.abs(wide))) | 1).astype(np.uint32).view(np.float32)


NUMPY: Final[dict[str, Callable[..., Any]]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": erf,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _div,
    "mod": np.mod,
    "fmod": np.fmod,
    "min": np.minimum,
    "max": np.maximum,
    "pow": _pow,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
    "bitnot": np.invert,
    "shl": _shl,
    "shr": _shr,
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "select": np.where,
    "convert": convert,
}
