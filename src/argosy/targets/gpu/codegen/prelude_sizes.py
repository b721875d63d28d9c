"""Functions of kernels that are steered by data, as Triton text: faults, sizes of results, and places.

One that gets the fault word reports what does not fit, and goes on with a size of 0.
"""

from __future__ import annotations

from typing import Final

__all__ = ["SIZES"]

SIZES: Final = """
@triton.jit
def index_within(raw, size):
    place = raw.to(tl.int64)
    place = tl.where(place < 0, place + size, place)
    return tl.minimum(tl.maximum(place, 0), tl.maximum(size - 1, 0))

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
def report(fault, bad, code: tl.constexpr, value):
    told = tl.where(bad, value, 0).to(tl.int64) & 0xFFFFFFFFFFFFFF
    word = tl.where(bad, told | (code << 56), 0).to(tl.int64)
    most = tl.max(word + tl.zeros([1], tl.int64))  # one atomic operation, and only where there is a fault
    if most != 0:
        tl.atomic_max(fault, most, sem="relaxed")

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
"""
