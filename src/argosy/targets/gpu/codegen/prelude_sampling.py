"""Triton text of places between elements: reflections at borders, samples of regions."""

from __future__ import annotations

from typing import Final

__all__ = ["SAMPLING"]

SAMPLING: Final = """
@triton.jit
def cubic_weight(distance, a):
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return tl.where(distance <= 1, near, tl.where(distance < 2, far, near * 0))

@triton.jit
def reflected(place, low, high):
    width = high - low
    beyond = tl.where(place < low, low - place, place - high)
    turns = libdevice.floor(beyond / tl.where(width > 0, width, beyond * 0 + 1))
    rest = beyond - turns * width
    even = turns - 2 * libdevice.floor(turns / 2) == 0
    folded = tl.where((place < low) == even, low + rest, high - rest)
    bounded = tl.where((place < low) | (place > high), folded, place)
    return tl.where(width > 0, bounded, beyond * 0 + low)

@triton.jit
def region_sample(place, size):
    valid = (place >= -1.0) & (place <= size)
    held = tl.minimum(tl.maximum(place, 0.0), size - 1.0)
    lower = libdevice.floor(held).to(tl.int64)
    upper = tl.minimum(lower + 1, size - 1)
    fraction = held - lower
    return lower, upper, tl.where(valid, 1.0 - fraction, fraction * 0), tl.where(valid, fraction, fraction * 0)

@triton.jit
def round_away(x):
    return libdevice.copysign(libdevice.floor(tl.abs(x) + 0.5), x)
"""
