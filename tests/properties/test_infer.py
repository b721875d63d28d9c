"""What `infer` says agrees with what `evaluate` gives, for every op of the registry.

Over random shapes and element types, absent operands, empty tensors, symbolic dims at two sizes, dims in numbers,
and an operand without a rank: the element types are the same, the dims are those that the symbols say, what is
known while compiling is what comes out, operands are not changed, and all ways of saying it give the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.ir.op import OPS
from tests.properties.generators import elements, values, views, windows
from tests.properties.sample import Draw, Sample, check

GENERATORS: dict[str, Callable[[Draw], Sample]] = {
    **views.GENERATORS,
    **elements.GENERATORS,
    **windows.GENERATORS,
    **values.GENERATORS,
}
EXEMPT = {
    "parameter": "the caller gives its value",
    "unknown": "a placeholder in programs that are only read",
    "require": "it has no results: tests/passes/test_split_ranks.py runs it",
}


def test_every_op_has_a_generator() -> None:
    assert {name for name, _ in OPS.items() if _.__module__.startswith("argosy.")} == GENERATORS.keys() | EXEMPT.keys()


@pytest.mark.parametrize("name", sorted(GENERATORS))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(rng=st.randoms(use_true_random=False))
def test_infer_agrees_with_evaluate(name: str, rng: random.Random) -> None:
    sample = GENERATORS[name](Draw(rng))
    check(sample, rng)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_infer_agrees_with_evaluate_more_often(name: str) -> None:
    for number in range(3000):
        rng = random.Random(number)
        try:
            check(GENERATORS[name](Draw(rng)), rng)
        except Exception as error:
            error.add_note(f"{name}, number {number}")
            raise
