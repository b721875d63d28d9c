"""Functions that kernels use, as Triton text: the edge rules of `ir.scalar`, and conversions of short floats.

`prelude_for(text)` gives those that a kernel needs, each behind what it needs itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from argosy.targets.gpu.codegen.prelude_sampling import SAMPLING
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
    return tl.where(a != a, a, tl.where(b != b, b, tl.where(b < a, b, a)))

@triton.jit
def max_nan(a, b):
    return tl.where(a != a, a, tl.where(b != b, b, tl.where(a < b, b, a)))

@triton.jit
def erf_short(x):
    # A rational function in x squared, as XLA has it; 3e-7 off at most.
    near = tl.minimum(tl.maximum(x, -3.832506856900711), 3.832506856900711)
    y = near * near
    p = tl.fma(y, 0.00022905065861350646, 0.0034082910107109506)
    p = tl.fma(p, y, 0.050955695062380861)
    p = tl.fma(p, y, 0.18520832239976145)
    p = tl.fma(p, y, 1.128379143519084)
    q = tl.fma(y, -1.1791602954361697e-7, 0.000023547966471313185)
    q = tl.fma(q, y, 0.0010179625278914885)
    q = tl.fma(q, y, 0.014070470171167667)
    q = tl.fma(q, y, 0.11098505178285362)
    q = tl.fma(q, y, 0.49746925110067538)
    q = tl.fma(q, y, 1.0)
    return tl.where(x != x, x, near * p / q)

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
def index_within(raw, size):
    place = raw.to(tl.int64)
    place = tl.where(place < 0, place + size, place)
    return tl.minimum(tl.maximum(place, 0), tl.maximum(size - 1, 0))

@triton.jit
def cubic_weight(distance, a):
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return tl.where(distance <= 1, near, tl.where(distance < 2, far, 0.0))

@triton.jit
def box_corners(box, centred: tl.constexpr):
    a, b, c, d = tl.load(box), tl.load(box + 1), tl.load(box + 2), tl.load(box + 3)
    if centred:
        a, b, c, d = a - c / 2, b - d / 2, a + c / 2, b + d / 2
    return min_nan(a, c), min_nan(b, d), max_nan(a, c), max_nan(b, d)

@triton.jit
def box_overlap(a, b, c, d, e, f, g, h):
    height = max_nan(min_nan(c, g) - max_nan(a, e), 0.0)
    width = max_nan(min_nan(d, h) - max_nan(b, f), 0.0)
    shared = height * width
    both = (c - a) * (d - b) + (g - e) * (h - f) - shared
    return tl.where(both > 0, tl.math.div_rn(shared, tl.where(both > 0, both, 1.0)), 0.0)

@triton.jit
def scaled_size(size, scale):
    # A float32 scale that is the nearest one to a fraction with a small denominator means it: continued fractions.
    rest = scale
    above, below = tl.full([], 1, tl.int64), tl.full([], 0, tl.int64)
    before_above, before_below = tl.full([], 0, tl.int64), tl.full([], 1, tl.int64)
    found = tl.full([], -1, tl.int64)
    for _ in range(24):
        live = (found < 0) & (rest >= 0) & (rest < 1099511627776.0)
        whole = libdevice.floor(tl.where(live, rest, 0.0))
        next_above = whole.to(tl.int64) * above + before_above
        next_below = whole.to(tl.int64) * below + before_below
        live = live & (next_below <= 1000)
        before_above, before_below = tl.where(live, above, before_above), tl.where(live, below, before_below)
        above, below = tl.where(live, next_above, above), tl.where(live, next_below, below)
        safe = tl.where(below == 0, 1, below)
        near = (above.to(tl.float64) / safe.to(tl.float64)).to(tl.float32) == scale.to(tl.float32)
        found = tl.where(live & (below != 0) & near, floor_div(size * above, safe), found)
        gap = rest - whole
        rest = tl.where(live & (gap > 0), 1.0 / tl.where(gap > 0, gap, 1.0), -1.0)
    return tl.where(found >= 0, found, libdevice.floor(size.to(tl.float32) * scale.to(tl.float32)).to(tl.int64))

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
def report(fault, bad, code: tl.constexpr, value):
    told = tl.where(bad, value, 0).to(tl.int64) & 0xFFFFFFFFFFFFFF
    word = tl.where(bad, told | (code << 56), 0).to(tl.int64)
    tl.atomic_max(fault + word * 0, word, mask=word != 0, sem="relaxed")

@triton.jit
def outside(raw, size):
    place = raw.to(tl.int64)
    return (place < -size) | (place >= size)

@triton.jit
def slice_first(start, step, size):
    place = tl.where(start < 0, start + size, start)
    return tl.minimum(tl.maximum(place, 0), tl.where(step < 0, size - 1, size))

@triton.jit
def report_else(fault, good, code: tl.constexpr, value, result):
    report(fault, good == 0, code, value)
    return tl.where(good, result, 0)

@triton.jit
def checked_size(fault, size, most):
    return report_else(fault, (size >= 0) & (size <= most), 2, size, size)

@triton.jit
def slice_count(fault, start, end, step, size):
    first = slice_first(start, step, size)
    last = tl.where(end < 0, end + size, end)
    last = tl.minimum(tl.maximum(last, tl.where(step < 0, -1, 0)), tl.where(step < 0, size - 1, size))
    gap = tl.where(step < 0, first - last, last - first)
    # The least number is its own negative, so the gap is divided by it in two's complement without a sign.
    by = tl.where(step < 0, -step, step).to(tl.uint64, bitcast=True)
    by = tl.where(step == 0, by * 0 + 1, by)
    count = ((gap - 1).to(tl.uint64, bitcast=True) // by).to(tl.int64) + 1
    return report_else(fault, step != 0, 5, 0, tl.where(gap > 0, count, 0))

@triton.jit
def broadcast_size(fault, left, right, axis: tl.constexpr):
    fits = (left == right) | (right == 1) | (left == 1)
    return report_else(fault, fits, 3, axis, tl.where(left == 1, right, left))

@triton.jit
def range_count_int64(fault, start, limit, delta):
    up = (delta > 0).to(tl.int1)
    low, high = tl.where(up, start, limit), tl.where(up, limit, start)
    by = tl.where(up, delta, -delta).to(tl.uint64, bitcast=True)
    by = tl.where(delta == 0, by * 0 + 1, by)
    count = ((high - low - 1).to(tl.uint64, bitcast=True) // by).to(tl.int64) + 1
    return report_else(fault, delta != 0, 5, 0, tl.where(high > low, count, 0))

@triton.jit
def range_count_float64(fault, start, limit, delta):
    safe = tl.where(delta == 0, 1.0, delta)
    count = libdevice.ceil((limit - start) / safe)
    whole = tl.where((count > 0) & (count < 4611686018427387904.0), count, 0.0).to(tl.int64)
    report(fault, (delta != 0) & ((count < 4611686018427387904.0) == 0), 2, -1)
    return report_else(fault, delta != 0, 5, 0, whole)

@triton.jit
def remaining_size(fault, total, others):
    safe = tl.where(others == 0, 1, others)
    left = total // safe
    good = tl.where(others == 0, total == 0, total == left * others)
    return report_else(fault, good, 3, -1, tl.where(others == 0, 0, left))

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
    parts = [part.strip() for part in (_TEXT + SAMPLING + STORAGE).split("@triton.jit") if part.strip()]
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
