"""Delta debugging itself: what comes out is enough, minimal, and found in few tries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.debugging.reduction.ddmin import minimise

steady = settings(deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize("count", [2, 7, 64, 1000])
def test_one_cause_takes_a_logarithm_of_tries(count: int) -> None:
    for cause in range(0, count, max(count // 50, 1)):
        tried: list[Sequence[int]] = []

        def holds(part: Sequence[int], cause: int = cause, tried: list[Sequence[int]] = tried) -> bool:
            tried.append(part)
            return cause in part

        assert list(minimise(range(count), holds)) == [cause]
        assert len(tried) <= 2 * math.ceil(math.log2(count))


def test_neighbours_across_a_cut_take_a_logarithm_of_tries_too() -> None:
    for first in range(63):
        tried: list[Sequence[int]] = []

        def holds(part: Sequence[int], first: int = first, tried: list[Sequence[int]] = tried) -> bool:
            tried.append(part)
            return {first, first + 1} <= set(part)

        assert list(minimise(range(64), holds)) == [first, first + 1]
        assert len(tried) <= 30


@steady
@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_what_remains_is_the_causes_in_their_order(problem: tuple[int, set[int]]) -> None:
    count, causes = problem
    found = list(minimise(range(count), lambda part: causes <= set(part)))
    assert found == sorted(causes) if causes else len(found) == 1


@steady
@given(st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=1, max_size=4))
def test_no_item_can_be_left_out(ways: list[set[int]]) -> None:
    def holds(part: Sequence[int]) -> bool:
        return any(way <= set(part) for way in ways)

    found = list(minimise(range(12), holds))
    assert holds(found)
    assert len(found) == 1 or not any(holds([item for item in found if item != left]) for left in found)
