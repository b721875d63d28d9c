"""The functions that normal numbers are made of, against 80-bit arithmetic and at the ends of their range."""

from __future__ import annotations

import numpy as np

from argosy.ops.box_muller import cosine_of_turn, log_of_fraction, normal_numbers

EDGES = [0, 1, 2, 3, *(place + off for place in range(1 << 29, 1 << 32, 1 << 29) for off in (-1, 0, 1)), (1 << 32) - 1]
WORDS = np.concatenate([np.array(EDGES, np.uint64), np.random.default_rng(1).integers(0, 1 << 32, 200_000, np.uint64)])
PI = np.arccos(np.longdouble(-1))


def test_the_logarithm() -> None:
    expected = np.log((WORDS.astype(np.longdouble) + 1) / np.longdouble(2) ** 32)
    units = np.abs(log_of_fraction(WORDS) - expected) / np.spacing(np.abs(expected.astype(np.float64)))
    assert units.max() < 3
    assert log_of_fraction(np.array([(1 << 32) - 1], np.uint64)) == 0.0


def test_the_cosine() -> None:
    expected = np.cos(2 * PI * WORDS.astype(np.longdouble) / np.longdouble(2) ** 32)
    assert np.abs(cosine_of_turn(WORDS) - expected).max() < 2.0**-52
    quarters = np.array([0, 1 << 30, 1 << 31, 3 << 30], np.uint64)
    np.testing.assert_array_equal(cosine_of_turn(quarters), [1.0, 0.0, -1.0, 0.0])


def test_the_largest_number() -> None:
    """The radius ends at u = 2^-32."""
    found = normal_numbers(np.zeros(1, np.uint64), np.zeros(1, np.uint64))
    np.testing.assert_allclose(found, np.sqrt(64 * np.log(2.0)), rtol=1e-15)
