"""The normalise phase on random programs: the same results, in valid programs, and no less at a second go."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.errors import ArgosyError
from argosy.ir import Module
from argosy.ir.types import type_symbols
from argosy.ir.validate import validate
from argosy.passes import NORMALISE
from argosy.passes.bind_dims import BindDims
from argosy.passes.manager import PassManager, Phase
from tests.rewrite.sampling import SIZES, Program, Sampler, run, same_bits

PIPELINE = PassManager((NORMALISE,))


def random_program(random: Random, *, symbolic: bool) -> tuple[Program, tuple[np.ndarray, ...]] | None:
    """A random program with its results, or None where it has no meaning for its inputs."""
    program = Sampler(random, symbolic).anything(random.randint(1, 14))
    try:
        return program, run(program)
    except ArgosyError:
        return None


def check(program: Program, module: Module, expected: tuple[np.ndarray, ...]) -> None:
    validate(module)
    assert module.result_names == program.module.result_names
    for before, after in zip(expected, run(program, module), strict=True):
        assert same_bits(before, after) or close(before, after)


def close(before: np.ndarray, after: np.ndarray) -> bool:
    """Equal but for the order of a float sum: softmax of a transposed tensor adds in another order."""
    if before.dtype.kind != "f" or before.dtype != after.dtype or before.shape != after.shape:
        return False
    return bool(np.allclose(before, after, rtol=1e-6, atol=0, equal_nan=True))


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "symbols"])
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_results_stay(symbolic: bool, random: Random) -> None:
    made = random_program(random, symbolic=symbolic)
    if made is None:
        return
    program, expected = made
    after = PIPELINE.run(program.module)
    check(program, after, expected)
    assert PIPELINE.run(after) is after, "the phase is not at its end"


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_binding_keeps_results_and_leaves_no_bound_symbol(random: Random) -> None:
    made = random_program(random, symbolic=True)
    if made is None:
        return
    program, expected = made
    after = PassManager((Phase("bind", (BindDims.of(SIZES),)), NORMALISE)).run(program.module)
    check(program, after, expected)
    left = {symbol.name for instruction in after.walk() for kind in instruction.types for symbol in type_symbols(kind)}
    assert not left & SIZES.keys(), "only what depends on data may still be a symbol"
