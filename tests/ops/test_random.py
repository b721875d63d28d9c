"""Random numbers: the published test vectors of Philox, repeatability, independence, distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir import Env
from argosy.ir.dtype import DTYPES, FLOAT32
from argosy.ir.philox import philox
from argosy.ops.random import Random
from tests.ops.agreement import apply, infer, tensor

VECTORS = [
    # Random123's kat_vectors: counter, key, result.
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_published_vectors(counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]) -> None:
    first, second, third, fourth = (np.array([word], np.uint64) for word in counter)
    found = philox((first, second, third, fourth), key)
    assert tuple(int(word[0]) for word in found) == expected


def draw(distribution: str, *, run: int = 0, dtype: Any = FLOAT32, size: int = 20000, **options: Any) -> Any:
    fields = {"first": 0.0, "second": 1.0, "seed": 7, "node": 0, **options}
    return Random(distribution, dtype, dims=(size,), **fields).evaluate_in(Env(run=run))[0]


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_draws_repeat_and_differ_by_run_seed_and_node(distribution: str) -> None:
    base = draw(distribution)
    np.testing.assert_array_equal(base, draw(distribution))
    np.testing.assert_array_equal(base[:100], draw(distribution, size=100))
    for other in (draw(distribution, run=1), draw(distribution, seed=8), draw(distribution, node=1)):
        assert (base != other).mean() > 0.99
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.03


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_uniform(name: str) -> None:
    x = draw("uniform", dtype=DTYPES[name], first=-1.0, second=3.0)
    assert x.dtype == DTYPES[name].numpy
    wide = x.astype(np.float64)
    assert wide.min() >= -1.0
    assert wide.max() < 3.0
    assert abs(wide.mean() - 1.0) < 0.03
    assert abs(wide.var() - 16 / 12) < 0.03


def test_normal() -> None:
    x = draw("normal", first=2.0, second=0.5).astype(np.float64)
    standard = np.sort((x - 2.0) / 0.5)
    normal = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in standard[::100]])
    places = np.arange(0, len(x), 100) / len(x)
    assert np.abs(normal - places).max() < 0.012  # Kolmogorov and Smirnov, 1% of 20,000


@pytest.mark.parametrize("size", [0, 3])
def test_the_shape_of_an_operand(size: int) -> None:
    op = Random("normal", FLOAT32, 0.0, 1.0, 0, 0)
    (found,) = apply(op, tensor("int64", "n", 2), feeds=[np.zeros((size, 2), np.int64)])
    assert found.shape == (size, 2)
    like = tensor("float32", "n", 2)
    (bound,) = apply(
        Random("normal", FLOAT32, 0.0, 1.0, 0, 0, like.dims), like, feeds=[np.zeros((size, 2), np.float32)]
    )
    np.testing.assert_array_equal(bound, found)


def test_other_distributions_are_refused() -> None:
    with pytest.raises(ModelError, match="no 'cauchy' random numbers"):
        infer(Random("cauchy", FLOAT32, 0.0, 1.0, 0, 0, (2,)))
