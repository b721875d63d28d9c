"""What the meanings of operations are made of: arithmetic on arrays, with the bits that hardware has.

Each takes numpy arrays. An engine that writes code from the meanings passes `Traced` values instead: the primitives,
and the operators of Python, then note what is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final

import numpy as np

__all__ = [
    "TYPES",
    "Traced",
    "bits",
    "convert",
    "cosine",
    "count_leading",
    "count_ones",
    "count_trailing",
    "exponent",
    "fused",
    "greatest",
    "hyperbolic",
    "invert",
    "is_nan",
    "least",
    "logarithm",
    "mantissa",
    "nearest",
    "next_power",
    "power",
    "reverse",
    "round_down",
    "round_up",
    "scale",
    "segment",
    "select",
    "sine",
    "square_root",
    "to_integer",
    "towards_zero",
    "truncated_half",
    "turns_in_bits",
]

TYPES: Final[dict[str, np.dtype[Any]]] = {
    "u16": np.dtype(np.uint16), "i16": np.dtype(np.int16), "f16": np.dtype(np.float16), "b16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32), "i32": np.dtype(np.int32), "f32": np.dtype(np.float32), "b32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64), "i64": np.dtype(np.int64), "f64": np.dtype(np.float64), "b64": np.dtype(np.uint64),
    "mask": np.dtype(np.bool_), "scc": np.dtype(np.bool_),
}  # fmt: skip
_INTEGERS: Final = {16: np.uint16, 32: np.uint32, 64: np.uint64}


class Traced:
    """A value that stands for one of a lane, in an engine that writes code from meanings."""

    def note(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """The result of a primitive of these arguments."""
        raise NotImplementedError(name, arguments)


def _primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any) -> Any:
        for each in arguments:
            if isinstance(each, Traced):
                return each.note(function.__name__, arguments)
        return function(*arguments)

    return call


@_primitive
def bits(value: Any, kind: str) -> Any:
    """The same bits, read as another type of the same width."""
    return np.ascontiguousarray(value).view(TYPES[kind])


@_primitive
def convert(value: Any, kind: str) -> Any:
    """The same number in another type: floats round to nearest even, integers keep their lower bits."""
    made = value.astype(TYPES[kind])
    return _quiet(made) if kind == "f16" and value.dtype.kind == "f" else made


def _quiet(half: Any) -> Any:
    """A float16 whose NaN are quiet ones, as hardware makes them."""
    return np.where(np.isnan(half), half.view(np.uint16) | np.uint16(0x200), half.view(np.uint16)).view(np.float16)


@_primitive
def to_integer(value: Any, kind: str) -> Any:
    """A float towards zero, held within the type's range; NaN is zero."""
    target = TYPES[kind]
    limits = np.iinfo(target)
    wide = np.where(np.isnan(value), 0, np.trunc(value)).astype(np.float64)
    held = np.clip(wide, float(limits.min), float(limits.max))
    inside = held < float(limits.max)  # the largest integers of 64 bits are no doubles
    return np.where(inside, np.where(inside, held, 0).astype(target), limits.max).astype(target)


@_primitive
def select(condition: Any, yes: Any, no: Any) -> Any:
    """One or the other, by lane."""
    return np.where(condition, yes, no)


@_primitive
def fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c with one rounding."""
    if a.dtype == np.float64:
        return _fused_double(a, b, c)
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: 48 bits, or 22
    other = c.astype(np.float64)
    total = product + other
    back = total - product
    error = (product - (total - back)) + (other - back)
    # Rounding to odd, so that the rounding to the shorter type is the only one (Boldo and Melquiond, 2008).
    pattern = total.view(np.int64)
    wrong = np.isfinite(total) & (error != 0) & ((pattern & 1) == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(wrong, pattern + step, pattern).view(np.float64)
    return odd.astype(a.dtype)


def _fused_double(a: Any, b: Any, c: Any) -> Any:
    from fractions import Fraction  # noqa: PLC0415 - what few kernels need

    def one(x: float, y: float, z: float) -> float:
        if not (np.isfinite(x) and np.isfinite(y)):
            return x * y + z
        if not np.isfinite(z):
            return z
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact == 0:
            return x * y + z
        try:
            return exact.numerator / exact.denominator
        except OverflowError:
            return float(np.copysign(np.inf, float(exact > 0) - 0.5))

    found = np.frompyfunc(one, 3, 1)(a, b, c)
    return np.asarray(found, np.float64)


@_primitive
def least(a: Any, b: Any) -> Any:
    """The lesser; of floats the one that is no NaN, and -0 is less than 0."""
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    integer = _INTEGERS[a.dtype.itemsize * 8]
    either = (a.view(integer) | b.view(integer)).view(a.dtype)
    return np.where((a == 0) & (b == 0), either, np.fmin(a, b))


@_primitive
def greatest(a: Any, b: Any) -> Any:
    """The greater; of floats the one that is no NaN, and 0 is greater than -0."""
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    integer = _INTEGERS[a.dtype.itemsize * 8]
    both = (a.view(integer) & b.view(integer)).view(a.dtype)
    return np.where((a == 0) & (b == 0), both, np.fmax(a, b))


@_primitive
def is_nan(a: Any) -> Any:
    """Whether it is no number."""
    return np.isnan(a)


@_primitive
def round_down(a: Any) -> Any:
    """The integer at or below."""
    return np.floor(a)


@_primitive
def round_up(a: Any) -> Any:
    """The integer at or above."""
    return np.ceil(a)


@_primitive
def towards_zero(a: Any) -> Any:
    """The integer without the fraction."""
    return np.trunc(a)


@_primitive
def nearest(a: Any) -> Any:
    """The nearest integer, even of two."""
    return np.rint(a)


def _widely(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function taken in double precision and rounded once."""

    def call(a: Any) -> Any:
        return function(a.astype(np.float64)).astype(a.dtype)

    return call


@_primitive
def square_root(a: Any) -> Any:
    """The root, rightly rounded."""
    return np.sqrt(a)


@_primitive
def invert(a: Any) -> Any:
    """1 / a, rightly rounded."""
    return _widely(lambda x: 1 / x)(a) if a.dtype != np.float64 else 1 / a


@_primitive
def power(a: Any) -> Any:
    """2 to the a."""
    return _widely(np.exp2)(a)


@_primitive
def logarithm(a: Any) -> Any:
    """The logarithm to base 2."""
    return _widely(np.log2)(a)


@_primitive
def sine(a: Any) -> Any:
    """The sine of a whole turns: exact at quarters, and 0 at halves, but for -0, which it keeps."""

    def wide(x: Any) -> Any:
        turn = np.abs(x) - np.floor(np.abs(x))
        half = np.where(turn >= 0.5, turn - 0.5, turn)
        size = np.sin(2 * np.pi * np.minimum(half, 0.5 - half))
        found = np.where((turn >= 0.5) != (x < 0), -size, size)
        return np.where(x == 0, x, found + 0.0)

    return _widely(wide)(a)


@_primitive
def cosine(a: Any) -> Any:
    """The cosine of a whole turns, exact at quarters."""
    return _widely(lambda x: np.sin(2 * np.pi * (np.abs(np.abs(x) - np.floor(np.abs(x)) - 0.5) - 0.25)))(a)


@_primitive
def hyperbolic(a: Any) -> Any:
    """The hyperbolic tangent."""
    return _widely(np.tanh)(a)


@lru_cache(maxsize=1)
def turns_in_bits() -> int:
    """The 1,201 bits behind the point of 2 / pi."""
    room = 1280
    one = 1 << room

    def inverse_tangent(of: int) -> int:
        """The inverse tangent of 1 / of, by its series, in units of 2 ** -room."""
        total, term, divisor, sign = 0, one // of, 1, 1
        while term:
            total += sign * (term // divisor)
            term, divisor, sign = term // (of * of), divisor + 2, -sign
        return total

    pi = 4 * (4 * inverse_tangent(5) - inverse_tangent(239))  # Machin's formula
    return ((2 * one * one // pi) >> (room - 1201)) & ((1 << 1201) - 1)


@_primitive
def segment(a: Any, which: Any) -> Any:
    """53 bits of 2 / pi, for the remainder by pi / 2: `which` counts segments, and large numbers skip bits."""

    def one(power: int, place: int) -> float:
        shift = 53 * (int(place) & 31) + max(int(power) - 1077, 0)
        found = (
            turns_in_bits() >> (1201 - 53 - shift) if shift <= 1201 - 53 else turns_in_bits() << (shift - 1148)
        ) & ((1 << 53) - 1)
        return float(np.ldexp(float(found), -53 - shift + (128 if power >= 1968 else 0)))

    powers = (a.view(np.uint64) >> np.uint64(52)).astype(np.int64) & 0x7FF
    return np.asarray(np.frompyfunc(one, 2, 1)(powers, which), np.float64)


@_primitive
def scale(a: Any, by: Any) -> Any:
    """a times 2 to the integer `by`, rounded once."""
    return np.ldexp(a, np.clip(np.asarray(by, np.int32), -5000, 5000)).astype(a.dtype)


@_primitive
def mantissa(a: Any) -> Any:
    """The fraction of magnitude 0.5 to 1; infinities and NaN as they are."""
    return np.where(np.isfinite(a), np.frexp(a)[0], a).astype(a.dtype)


@_primitive
def exponent(a: Any) -> Any:
    """The exponent that goes with `mantissa`, an int32; 0 for infinities and NaN."""
    return np.where(np.isfinite(a), np.frexp(a)[1], 0).astype(np.int32)


@_primitive
def next_power(a: Any) -> Any:
    """The biased exponent, as its bits hold it; an int32."""
    if a.dtype == np.float64:
        return ((a.view(np.uint64) >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int32)
    return ((a.view(np.uint32) >> 23) & 0xFF).astype(np.int32)


@_primitive
def truncated_half(a: Any) -> Any:
    """A float32 as a float16, towards zero; too large a one is the greatest finite."""
    near = _quiet(a.astype(np.float16))
    over = np.isfinite(a) & (np.abs(near.astype(np.float32)) > np.abs(a))
    return np.where(over, (near.view(np.uint16) - over.astype(np.uint16)).view(np.float16), near)


@_primitive
def count_ones(a: Any) -> Any:
    """How many bits are set; a uint32."""
    return np.bitwise_count(a).astype(np.uint32)


@_primitive
def count_trailing(a: Any) -> Any:
    """The place of the lowest bit set; all ones where none is. A uint32."""
    one = a.dtype.type(1)
    low = a & (~a + one)
    return np.where(a == 0, np.uint32(0xFFFFFFFF), np.bitwise_count(low - one).astype(np.uint32)).astype(np.uint32)


@_primitive
def count_leading(a: Any) -> Any:
    """How many bits above the highest one set are clear; all ones where none is set. A uint32."""
    size = a.dtype.itemsize * 8
    filled = a
    shift = 1
    while shift < size:
        filled = filled | (filled >> a.dtype.type(shift))
        shift *= 2
    return np.where(a == 0, np.uint32(0xFFFFFFFF), size - np.bitwise_count(filled).astype(np.uint32)).astype(np.uint32)


@_primitive
def reverse(a: Any) -> Any:
    """The bits in reverse."""
    size = a.dtype.itemsize
    swapped = a.byteswap()
    every = a.dtype.type
    for mask, shift in ((0x0F, 4), (0x33, 2), (0x55, 1)):
        wide = every(int.from_bytes(bytes([mask]) * size, "little"))
        swapped = ((swapped & wide) << every(shift)) | ((swapped >> every(shift)) & wide)
    return swapped
