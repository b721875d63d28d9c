"""Tests of random numbers: how likely a sample as odd as this one is, where the numbers are what they claim to be.

Every function gives a probability, exact or an upper bound of it. A test that demands at least `ALARM` fails with that
chance for a good generator; seeds are fixed, so it fails always or never.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALARM", "chi_square", "independent", "kolmogorov_smirnov", "mean_and_variance", "normal_cdf"]

Array = NDArray[Any]

ALARM: Final = 1e-6
"""The chance of a false alarm for each test that uses it."""
_CLASSES: Final = 9
"""Classes of equal probability for each side of a test of independence."""


def normal_cdf(x: float) -> float:
    """The distribution function of the standard normal distribution."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def mean_and_variance(sample: Array, mean: float, variance: float, fourth: float) -> float:
    """The less likely of the sample's mean and its mean square distance from `mean`, by the central limit theorem.

    `fourth` is the fourth central moment.
    """
    off = sample.astype(np.float64) - mean
    size = len(off)
    scores = (
        off.mean() / math.sqrt(variance / size),
        ((off * off).mean() - variance) / math.sqrt((fourth - variance * variance) / size),
    )
    return min(math.erfc(abs(score) / math.sqrt(2.0)) for score in scores)


def chi_square(counts: Array, probabilities: Array) -> float:
    """Pearson's test of counts in an odd number of classes: the survival function has a closed form then."""
    assert len(counts) % 2 == 1
    assert abs(float(np.sum(probabilities)) - 1.0) < 1e-9
    expected = probabilities * counts.sum()
    assert expected.min() > 50, "too few for the limit"
    return _survival(float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1)


def _survival(statistic: float, freedom: int) -> float:
    """Chance of more than `statistic` with an even number of degrees of freedom: a Poisson sum."""
    half, term = statistic / 2.0, 1.0
    total = term
    for k in range(1, freedom // 2):
        term *= half / k
        total += term
    return math.exp(-half) * total


def kolmogorov_smirnov(sample: Array, cdf: Callable[[float], float]) -> float:
    """Largest distance between the sample's distribution and `cdf`: the bound of Dvoretzky, Kiefer and Wolfowitz.

    Its constant is Massart's.
    """
    ordered = np.sort(sample.astype(np.float64))
    expected = np.array([cdf(value) for value in ordered])
    places = np.arange(len(ordered)) / len(ordered)
    distance = max((expected - places).max(), (places + 1 / len(ordered) - expected).max())
    return min(2.0 * math.exp(-2.0 * len(ordered) * distance * distance), 1.0)


def independent(left: Array, right: Array) -> float:
    """Whether pairs of numbers, each uniform in [0, 1), fill the square evenly: 9 by 9 classes."""
    rows, columns = ((side * _CLASSES).astype(np.int64) for side in (left, right))
    counts = np.bincount(rows * _CLASSES + columns, minlength=_CLASSES**2)
    return chi_square(counts, np.full(_CLASSES**2, _CLASSES**-2.0))
