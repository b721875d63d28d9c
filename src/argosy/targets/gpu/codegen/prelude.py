"""Functions that kernels use, as Triton text: the edge rules of `ir.scalar`, and conversions of short floats.

`prelude_for(text)` gives those that a kernel needs, each behind what it needs itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from argosy.targets.gpu.codegen.prelude_sampling import SAMPLING
from argosy.targets.gpu.codegen.prelude_sizes import SIZES
from argosy.targets.gpu.codegen.prelude_storage import STORAGE

__all__ = ["prelude_for"]

_TEXT: Final = """
@triton.jit
def floor_div(a, b):
    whole = a // b
    return tl.where((a - whole * b != 0) & ((a < 0) != (b < 0)), whole - 1, whole)

@triton.jit
def ceil_div(a, b):
    return -floor_div(-a, b)

@triton.jit
def floor_mod(a, b):
    return a - floor_div(a, b) * b

@triton.jit
def sign_float(x):
    return tl.where(x != x, x, (x > 0).to(x.dtype) - (x < 0).to(x.dtype))

@triton.jit
def min_nan(a, b):
    return tl.where(a != a, a, tl.where(b != b, b, tl.minimum(a, b)))

@triton.jit
def max_nan(a, b):
    return tl.where(a != a, a, tl.where(b != b, b, tl.maximum(a, b)))

@triton.jit
def erf_short(x):
    # 1 - exp2 of a polynomial, fitted to log2 of the complement; 3e-7 off at most, and near 0 a line.
    t = tl.abs(x)
    p = tl.fma(t, -1.008924391499022e-05, 0.00012763150152750313)
    p = tl.fma(p, t, -0.0003714351914823055)
    p = tl.fma(p, t, -0.0027216128073632717)
    p = tl.fma(p, t, 0.030024906620383263)
    p = tl.fma(p, t, -0.14929793775081635)
    p = tl.fma(p, t, -0.9182479381561279)
    p = tl.fma(p, t, -1.6279196739196777)
    far = 1.0 - tl.exp2(p * t)
    return tl.where(t < 0.01, x * 1.1283791670955126, tl.where(x < 0, -far, far))

@triton.jit
def divide_signed(a, b):
    safe = tl.where((b == 0) | (b == -1), b * 0 + 1, b)
    return tl.where(b == 0, a * 0, tl.where(b == -1, -a, a // safe)).to(a.dtype)

@triton.jit
def divide_unsigned(a, b):
    return tl.where(b == 0, a * 0, a // tl.where(b == 0, b * 0 + 1, b)).to(a.dtype)

@triton.jit
def remainder_signed(a, b):
    safe = tl.where((b == 0) | (b == -1), b * 0 + 1, b)
    return tl.where((b == 0) | (b == -1), a * 0, a % safe).to(a.dtype)

@triton.jit
def remainder_unsigned(a, b):
    return tl.where(b == 0, a * 0, a % tl.where(b == 0, b * 0 + 1, b)).to(a.dtype)

@triton.jit
def modulo_signed(a, b):
    rest = remainder_signed(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest).to(a.dtype)

@triton.jit
def modulo_unsigned(a, b):
    return remainder_unsigned(a, b)

@triton.jit
def floor_mod_float(a, b):
    rest = libdevice.fmod(a, b)
    signed = tl.where(rest == 0, libdevice.copysign(rest, b), rest)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, signed)

@triton.jit
def shift_left(a, b, bits: tl.constexpr):
    inside = (b >= 0) & (b < bits)
    return tl.where(inside, a << tl.where(inside, b, b * 0), a * 0).to(a.dtype)

@triton.jit
def shift_right(a, b, bits: tl.constexpr):
    inside = (b >= 0) & (b < bits)
    return tl.where(inside, a >> tl.where(inside, b, b * 0), a * 0).to(a.dtype)

@triton.jit
def shift_right_signed(a, b, bits: tl.constexpr):
    inside = (b >= 0) & (b < bits)
    return (a >> tl.where(inside, b, b * 0 + (bits - 1))).to(a.dtype)

@triton.jit
def power_integer(base, exponent):
    factor = base.to(tl.int64)
    left = tl.where(exponent < 0, exponent * 0, exponent)
    result = factor * 0 + left * 0 + 1
    for _ in range(64):
        result = tl.where((left & 1) != 0, result * factor, result)
        factor = factor * factor
        left = left >> 1
    odd = (exponent & 1) != 0
    one = result * 0 + 1
    alternating = tl.where(odd, -one, one)
    minus = tl.where(base == 1, one, tl.where(base.to(tl.int64) == -1, alternating, one * 0))
    return tl.where(exponent < 0, minus, result)

@triton.jit
def round_to_odd(x):
    near = x.to(tl.float32)
    back = near.to(tl.float64)
    bits = near.to(tl.int32, bitcast=True)
    inner = tl.where(tl.abs(back) > tl.abs(x), bits - 1, bits) | 1
    return tl.where((back != x) & (x == x), inner, bits).to(tl.float32, bitcast=True)

@triton.jit
def wrap_32(x):
    wide = x.to(tl.float64)
    whole = libdevice.trunc(tl.where(wide - wide == 0, wide, tl.zeros_like(wide)))
    low = whole - libdevice.floor(whole * 2.3283064365386963e-10) * 4294967296.0
    return tl.where(low >= 2147483648.0, low - 4294967296.0, low).to(tl.int32)

@triton.jit
def wrap_64(x):
    wide = x.to(tl.float64)
    size = libdevice.trunc(tl.abs(tl.where(wide - wide == 0, wide, tl.zeros_like(wide))))
    low = size - libdevice.floor(size * 5.421010862427522e-20) * 18446744073709551616.0
    whole = tl.where(low >= 9223372036854775808.0, low - 18446744073709551616.0, low).to(tl.int64)
    return tl.where(wide < 0, -whole, whole)

@triton.jit
def less_float(a, b):
    return (a < b) | ((b != b) & (a == a))

@triton.jit
def less_integer(a, b):
    return a < b

@triton.jit
def order_float(x):
    bits = (x + 0.0).to(tl.int32, bitcast=True).to(tl.int64)
    key = tl.where(bits < 0, -1 - bits, bits + 2147483648)
    return tl.where(x != x, 4294967295, key)

@triton.jit
def order_double(x):
    # As a signed integer whose unsigned meaning is the order.
    bits = (x + 0.0).to(tl.int64, bitcast=True)
    return tl.where(x != x, -1, bits ^ ((bits >> 63) | -9223372036854775808))

@triton.jit
def add_any(a, b):
    return a + b

@triton.jit
def mul_any(a, b):
    return a * b

@triton.jit
def or_any(a, b):
    return a | b

@triton.jit
def and_any(a, b):
    return a & b

@triton.jit
def min_any(a, b):
    return tl.minimum(a, b)

@triton.jit
def max_any(a, b):
    return tl.maximum(a, b)

@triton.jit
def better_max(a, i, b, j, last: tl.constexpr):
    beats = (a > b) | ((a != a) & (b == b))
    same = (a == b) | ((a != a) & (b != b))
    earlier = (i > j) if last else (i < j)
    return (i >= 0) & ((j < 0) | beats | (same & earlier & ((a == a) | (i < j))))

@triton.jit
def better_min(a, i, b, j, last: tl.constexpr):
    beats = (a < b) | ((a != a) & (b == b))
    same = (a == b) | ((a != a) & (b != b))
    earlier = (i > j) if last else (i < j)
    return (i >= 0) & ((j < 0) | beats | (same & earlier & ((a == a) | (i < j))))

@triton.jit
def best_max(a, i, b, j):
    take = better_max(b, j, a, i, False)
    return tl.where(take, b, a), tl.where(take, j, i)

@triton.jit
def best_max_last(a, i, b, j):
    take = better_max(b, j, a, i, True)
    return tl.where(take, b, a), tl.where(take, j, i)

@triton.jit
def best_min(a, i, b, j):
    take = better_min(b, j, a, i, False)
    return tl.where(take, b, a), tl.where(take, j, i)

@triton.jit
def best_min_last(a, i, b, j):
    take = better_min(b, j, a, i, True)
    return tl.where(take, b, a), tl.where(take, j, i)
"""


@lru_cache(maxsize=1)
def _functions() -> dict[str, str]:
    """Each function by name, in the order of the text."""
    parts = [part.strip() for part in (_TEXT + SIZES + SAMPLING + STORAGE).split("@triton.jit") if part.strip()]
    return {re.match(r"def (\w+)", part)[1]: f"@triton.jit\n{part}\n" for part in parts}  # type: ignore[index]


def prelude_for(text: str) -> str:
    """The functions that `text` calls, and those that they call."""
    functions = _functions()
    needed: set[str] = set()
    pending = [text]
    while pending:
        for name in re.findall(r"\b(\w+)\b", pending.pop()):
            if name in functions and name not in needed:
                needed.add(name)
                pending.append(functions[name])
    return "\n".join(functions[name] for name in functions if name in needed)
