"""Philox 4x32-10, the source of all random numbers, and how the counters of draws are laid out.

Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The generator is a function of
a counter of 128 bits and a key of 64: the key is (seed, node), the counter (element, draw); see docs/adr/0004.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from argosy.ir.dtype import Array

__all__ = ["MULTIPLIERS", "ROUNDS", "WEYL", "draw_number", "philox"]

MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
WEYL: Final = (0x9E3779B9, 0xBB67AE85)
ROUNDS: Final = 10
_WORD: Final = 0xFFFFFFFF
_ITERATIONS: Final = (0xFFFFFFFF, 0xFFFFFFFF)
"""The key under which iterations are mixed in; no node has such a number."""


Words = TypeVar("Words", int, Array)


def philox(counter: tuple[Words, Words, Words, Words], key: tuple[int, int]) -> tuple[Words, Words, Words, Words]:
    """Philox 4x32-10: four random words for each counter of four words; words are 32 bits, as int or in uint64."""
    first, second, third, fourth = counter
    low, high = key
    for _ in range(ROUNDS):
        left, right = first * MULTIPLIERS[0], third * MULTIPLIERS[1]
        first, second, third, fourth = (
            (right >> 32) ^ second ^ low,
            right & _WORD,
            (left >> 32) ^ fourth ^ high,
            left & _WORD,
        )
        low, high = (low + WEYL[0]) & _WORD, (high + WEYL[1]) & _WORD
    return first, second, third, fourth


def draw_number(run: int, iterations: Sequence[int]) -> int:
    """The number of a draw, 64 bits: the run's, with the iterations of the bodies around it mixed in, outermost first.

    Outside of loops it is the number of the run. Each iteration replaces the number n by the first 64 bits that
    Philox gives for the counter (iteration, n): two paths of iterations share a number with probability 2^-64.
    """
    number = run & 0xFFFFFFFFFFFFFFFF
    for iteration in iterations:
        counter = (iteration & _WORD, iteration >> 32, number & _WORD, number >> 32)
        low, high, _, _ = philox(counter, _ITERATIONS)
        number = high << 32 | low
    return number
