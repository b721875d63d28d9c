"""What is drawn is distributed as it should be, and independent of everything else that is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from argosy.ir import Env
from argosy.ir.dtype import DTYPES, FLOAT64
from argosy.ops.numpy_scalar import convert
from argosy.ops.random import Random
from tests.goodness import ALARM, chi_square, independent, kolmogorov_smirnov, mean_and_variance, normal_cdf

SIZE: Final = 90_000
TYPES: Final = ("float16", "bfloat16", "float32", "float64")
LOW, HIGH = -1.0, 3.0
MEAN, DEVIATION = 2.0, 0.5


def draw(distribution: str, first: float, second: float, dtype: str = "float64", **where: Any) -> Any:
    """`SIZE` draws; `where` may give seed, node, run, iterations and size."""
    env = Env(run=where.pop("run", 0), iterations=where.pop("iterations", ()))
    key = {"seed": where.pop("seed", 7), "node": where.pop("node", 0)}
    op = Random(distribution, DTYPES[dtype], first, second, dims=(where.pop("size", SIZE),), **key)
    assert not where
    return op.evaluate_in(env)[0]


def uniform(**where: Any) -> Any:
    return draw("uniform", 0.0, 1.0, **where)


def uniform_cdf(x: float) -> float:
    return min(max((x - LOW) / (HIGH - LOW), 0.0), 1.0)


def shifted_cdf(x: float) -> float:
    return normal_cdf((x - MEAN) / DEVIATION)


CASES: Final[dict[str, tuple[float, float, Callable[[float], float], tuple[float, float, float]]]] = {
    "uniform": (LOW, HIGH, uniform_cdf, (1.0, 16 / 12, 256 / 80)),
    "normal": (MEAN, DEVIATION, shifted_cdf, (MEAN, DEVIATION**2, 3 * DEVIATION**4)),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("distribution", CASES)
def test_moments(distribution: str, dtype: str) -> None:
    first, second, _, moments = CASES[distribution]
    assert mean_and_variance(draw(distribution, first, second, dtype), *moments) > ALARM


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("distribution", CASES)
def test_the_distribution_function(distribution: str, dtype: str) -> None:
    first, second, cdf, _ = CASES[distribution]
    assert kolmogorov_smirnov(draw(distribution, first, second, dtype), cdf) > ALARM


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("distribution", CASES)
def test_classes_of_rounded_numbers(distribution: str, dtype: str) -> None:
    """Short floats round what is drawn: classes end half-way between two of them, and their chances are exact."""
    first, second, cdf, _ = CASES[distribution]
    x = draw(distribution, first, second, dtype)
    places = np.linspace(LOW, HIGH, 26)[1:-1] if distribution == "uniform" else np.linspace(0.6, 3.4, 24)
    ends = convert(places, DTYPES[dtype])
    above = np.nextafter(ends, np.asarray(np.inf, ends.dtype))
    middles = (ends.astype(np.float64) + above.astype(np.float64)) / 2
    counts = np.bincount(np.searchsorted(ends.astype(np.float64), x.astype(np.float64)), minlength=len(ends) + 1)
    reached = np.array([0.0, *(cdf(middle) for middle in middles), 1.0])
    assert chi_square(counts, np.diff(reached)) > ALARM


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 5, 8, 64, 1000, 4096])
def test_elements_are_independent(distance: int) -> None:
    x = uniform()
    assert independent(x[:-distance], x[distance:]) > ALARM
    normal = draw("normal", 0.0, 1.0)
    product = normal[:-distance] * normal[distance:]
    assert mean_and_variance(product, 0.0, 1.0, 9.0) > ALARM


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"node": 1}),
        ({}, {"seed": 8}),
        ({"seed": 3, "node": 5}, {"seed": 5, "node": 3}),
        ({}, {"run": 1}),
        ({}, {"run": 1 << 32}),
        ({}, {"iterations": (0,)}),
        ({"iterations": (0,)}, {"iterations": (1,)}),
        ({"iterations": (1 << 32,)}, {"iterations": (0,)}),
        ({"iterations": (0, 1)}, {"iterations": (1, 0)}),
        ({"iterations": (1,)}, {"iterations": (0, 1)}),
        ({"iterations": (1,)}, {"run": 1}),
        ({"iterations": (1,)}, {"run": 1, "iterations": (0,)}),
    ],
    ids=str,
)
def test_draws_elsewhere_are_independent(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert independent(uniform(**one), uniform(**other)) > ALARM


@pytest.mark.parametrize("what", ["run", "node", "seed", "iteration", "inner iteration"])
def test_the_first_numbers_of_many_draws(what: str) -> None:
    """Of 6,000 draws that differ in one number; from one to the next they are independent."""
    places: dict[str, Callable[[int], dict[str, Any]]] = {
        "iteration": lambda number: {"iterations": (number,)},
        "inner iteration": lambda number: {"iterations": (3, number)},
    }
    make = places.get(what)
    wheres = [make(number) if make else {what: number} for number in range(6000)]
    x = np.array([uniform(size=1, **where)[0] for where in wheres])
    assert kolmogorov_smirnov(x, lambda value: min(max(value, 0.0), 1.0)) > ALARM
    assert independent(x[:-1], x[1:]) > ALARM
    assert len(np.unique(x)) == len(x)


def test_all_bits_of_the_fraction_are_drawn() -> None:
    """Each of the 53 bits is set in half of the numbers, and no two bits agree more or less often than not."""
    whole = (uniform() * 2.0**53).astype(np.int64)
    bits = (whole[:, None] >> np.arange(53)) & 1
    signs = (2 * bits - 1).astype(np.float64)
    agreement = signs.T @ signs / math.sqrt(SIZE)
    pairs = agreement[np.triu_indices(53, 1)]
    scores = np.concatenate([signs.sum(axis=0) / math.sqrt(SIZE), pairs])
    assert math.erfc(float(np.abs(scores).max()) / math.sqrt(2.0)) > ALARM / len(scores)


def test_uniform_numbers_keep_to_their_interval() -> None:
    for name in (*TYPES, "float8_e4m3fn", "float8_e5m2"):
        for first, second in ((0.0, 1.0), (-1.0, 3.0), (1.0, 1.0 + 2.0**-5)):
            x = draw("uniform", first, second, name).astype(np.float64)
            low = float(convert(np.asarray(first), DTYPES[name]))
            assert x.min() >= low
            assert x.max() < second


def test_normal_numbers_reach_their_tails() -> None:
    """Beyond 3 deviations lie 0.27% of the numbers, beyond 4 one in 15,787."""
    x = np.abs(draw("normal", 0.0, 1.0, size=1_000_000))
    for limit in (3.0, 4.0):
        share = 2.0 * normal_cdf(-limit)
        score = ((x > limit).sum() - len(x) * share) / math.sqrt(len(x) * share)
        assert math.erfc(abs(score) / math.sqrt(2.0)) > ALARM
    assert FLOAT64.numpy == x.dtype
