"""Triton text of element types that are stored otherwise than computed: floats and integers of 8 bits and less.

A short float is known by its exponent and fraction widths, its bias, and what becomes of values beyond its range.
Widening is exact; narrowing rounds to nearest even and agrees with ml_dtypes in every code. The ways are those of the
CPU target's `prelude_storage.h`. Memory holds one code to a byte; `unpack` and `pack` take several to a byte.
"""

from __future__ import annotations

from typing import Final

__all__ = ["STORAGE"]

STORAGE: Final = """
@triton.jit
def widen_magnitude(magnitude, fraction: tl.constexpr, bias: tl.constexpr):
    bits = (magnitude << (23 - fraction)) + ((127 - bias) << 23)
    one = ((128 - bias) << 23) + magnitude * 0
    subnormal = (bits + (1 << 23)).to(tl.float32, bitcast=True) - one.to(tl.float32, bitcast=True)
    return tl.where(magnitude < (1 << fraction), subnormal, bits.to(tl.float32, bitcast=True))

@triton.jit
def signed_float(magnitude, negative):
    return tl.where(negative != 0, -magnitude, magnitude)

@triton.jit
def narrow_magnitude(x, fraction: tl.constexpr, bias: tl.constexpr):
    bits = tl.abs(x).to(tl.int32, bitcast=True)
    shift: tl.constexpr = 23 - fraction
    rounded = bits + ((1 << (shift - 1)) - 1) + ((bits >> shift) & 1)
    normal = (rounded >> shift) - ((127 - bias) << fraction)
    anchor = ((127 + shift + 1 - bias) << 23) + bits * 0
    raised = bits.to(tl.float32, bitcast=True) + anchor.to(tl.float32, bitcast=True)
    return tl.where(bits < ((128 - bias) << 23), raised.to(tl.int32, bitcast=True) - anchor, normal)

@triton.jit
def sign_code(x, width: tl.constexpr):
    return tl.where(x.to(tl.int32, bitcast=True) < 0, 1 << (width - 1), 0)

@triton.jit
def no_number(x):
    return tl.where(x == x, float("nan"), float("nan")).to(tl.float32)

@triton.jit
def from_float8_e4m3fn(raw):
    code = raw.to(tl.int32) & 255
    wide = widen_magnitude(code & 127, 3, 7)
    return signed_float(tl.where((code & 127) == 127, no_number(wide), wide), code & 128)

@triton.jit
def from_float8_e5m2(raw):
    code = raw.to(tl.int32) & 255
    size = code & 127
    wide = widen_magnitude(size, 2, 15)
    special = tl.where(size == 124, float("inf"), no_number(wide))
    return signed_float(tl.where(size >= 124, special, wide), code & 128)

@triton.jit
def from_float8_e4m3fnuz(raw):
    code = raw.to(tl.int32) & 255
    wide = signed_float(widen_magnitude(code & 127, 3, 8), code & 128)
    return tl.where(code == 128, no_number(wide), wide)

@triton.jit
def from_float8_e5m2fnuz(raw):
    code = raw.to(tl.int32) & 255
    wide = signed_float(widen_magnitude(code & 127, 2, 16), code & 128)
    return tl.where(code == 128, no_number(wide), wide)

@triton.jit
def from_float8_e8m0fnu(raw):
    code = raw.to(tl.int32) & 255
    bits = tl.where(code == 0, 1 << 22, code << 23)
    return tl.where(code == 255, 0x7FC00000, bits).to(tl.float32, bitcast=True)

@triton.jit
def from_float6_e2m3fn(raw):
    code = raw.to(tl.int32)
    return signed_float(widen_magnitude(code & 31, 3, 1), code & 32)

@triton.jit
def from_float6_e3m2fn(raw):
    code = raw.to(tl.int32)
    return signed_float(widen_magnitude(code & 31, 2, 3), code & 32)

@triton.jit
def from_float4_e2m1fn(raw):
    code = raw.to(tl.int32)
    return signed_float(widen_magnitude(code & 7, 1, 1), code & 8)

@triton.jit
def to_float8_e4m3fn(x):
    code = tl.minimum(narrow_magnitude(x, 3, 7), 127)
    return (tl.where(x != x, 127, code) | sign_code(x, 8)).to(tl.uint8)

@triton.jit
def to_float8_e5m2(x):
    code = tl.minimum(narrow_magnitude(x, 2, 15), 124)
    return (tl.where(x != x, 126, code) | sign_code(x, 8)).to(tl.uint8)

@triton.jit
def narrow_fnuz(x, fraction: tl.constexpr, bias: tl.constexpr):
    code = narrow_magnitude(x, fraction, bias)
    whole = code | tl.where(code == 0, 0, sign_code(x, 8))
    return tl.where((code > 127) | (x != x), 128, whole).to(tl.uint8)

@triton.jit
def to_float8_e4m3fnuz(x):
    return narrow_fnuz(x, 3, 8)

@triton.jit
def to_float8_e5m2fnuz(x):
    return narrow_fnuz(x, 2, 16)

@triton.jit
def to_float8_e8m0fnu(x):
    bits = x.to(tl.int32, bitcast=True)
    small = (bits >= (3 << 21)).to(tl.int32)
    code = tl.where(bits < (1 << 23), small, (bits + (1 << 22)) >> 23)
    return tl.where((bits <= 0) | (bits > 0x7F800000), 255, code).to(tl.uint8)

@triton.jit
def narrow_finite(x, fraction: tl.constexpr, bias: tl.constexpr, width: tl.constexpr):
    code = tl.minimum(narrow_magnitude(x, fraction, bias), (1 << (width - 1)) - 1)
    sign = sign_code(x, width)
    return tl.where(x != x, (1 << (width - 1)) ^ sign, code | sign).to(tl.uint8)

@triton.jit
def to_float6_e2m3fn(x):
    return narrow_finite(x, 3, 1, 6)

@triton.jit
def to_float6_e3m2fn(x):
    return narrow_finite(x, 2, 3, 6)

@triton.jit
def to_float4_e2m1fn(x):
    return narrow_finite(x, 1, 1, 4)

@triton.jit
def from_int4(raw):
    return (((raw.to(tl.int32) & 15) ^ 8) - 8).to(tl.int8)

@triton.jit
def from_int2(raw):
    return (((raw.to(tl.int32) & 3) ^ 2) - 2).to(tl.int8)

@triton.jit
def from_uint4(raw):
    return (raw.to(tl.int32) & 15).to(tl.uint8)

@triton.jit
def from_uint2(raw):
    return (raw.to(tl.int32) & 3).to(tl.uint8)

@triton.jit
def to_int4(x):
    return (x.to(tl.int32) & 15).to(tl.uint8)

@triton.jit
def to_int2(x):
    return (x.to(tl.int32) & 3).to(tl.uint8)

@triton.jit
def to_uint4(x):
    return (x.to(tl.int32) & 15).to(tl.uint8)

@triton.jit
def to_uint2(x):
    return (x.to(tl.int32) & 3).to(tl.uint8)
"""
