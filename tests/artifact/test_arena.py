"""Packing buffers: nothing overlaps, and little is wasted."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.artifact.arena import live_bytes, place
from argosy.artifact.lifetimes import Lifetime, lifetimes, root_of
from argosy.artifact.plan import (
    Block,
    BufferRecord,
    CarriedRecord,
    CollectedRecord,
    CopyStep,
    EvaluateStep,
    IfBlock,
    LoopBlock,
    ShapeStep,
    StraightBlock,
)

LIVES = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 12)), max_size=40)


@settings(max_examples=200, deadline=None)
@given(LIVES, st.sampled_from([1, 64]))
def test_buffers_needed_at_one_time_do_not_overlap(lives: list[tuple[int, int, int]], alignment: int) -> None:
    sizes = [size for size, _, _ in lives]
    starts = [start for _, start, _ in lives]
    ends = [start + span for _, start, span in lives]
    placed = place(sizes, starts, ends, alignment)
    assert placed.live == live_bytes(sizes, starts, ends)
    for left, right in itertools.combinations(range(len(lives)), 2):
        if starts[left] <= ends[right] and ends[left] >= starts[right] and sizes[left] and sizes[right]:
            low, high = sorted((left, right), key=lambda index: placed.offsets[index])
            assert placed.offsets[low] + sizes[low] <= placed.offsets[high]
    for offset, size in zip(placed.offsets, sizes, strict=True):
        assert offset % alignment == 0
        assert offset + size <= placed.size


@pytest.mark.parametrize("count", [40, 60, 120])
def test_mixed_sizes_and_lifetimes_waste_little(count: int) -> None:
    ratios = []
    for seed in range(20):
        draw = random.Random(seed)
        sizes = [
            draw.randrange(64, 4096) if draw.random() < 0.5 else draw.randrange(4096, 1 << 20) for _ in range(count)
        ]
        starts = [draw.randrange(count) for _ in range(count)]
        ends = [start + draw.choice([1, 1, 2, 3, 8, 30]) for start in starts]
        placed = place(sizes, starts, ends, 64)
        ratios.append(placed.size / placed.live)
    assert max(ratios) <= 1.12
    assert sum(ratios) / len(ratios) <= 1.03


def test_live_bytes_counts_both_ends() -> None:
    assert live_bytes([5, 7], [0, 1], [1, 2]) == 12
    assert live_bytes([5, 7], [0, 2], [1, 2]) == 7
    assert live_bytes([], [], []) == 0


def chain(count: int) -> tuple[list[int], list[int], list[int]]:
    """Layers of a network that shrinks, each with a shortcut over two."""
    sizes = [4_000_000 // (1 + index // 8) for index in range(count)]
    return sizes, list(range(count)), [index + (3 if index % 3 == 0 else 1) for index in range(count)]


def dense(count: int) -> tuple[list[int], list[int], list[int]]:
    """A dense block: what each layer makes is read until the block's end."""
    sizes = [100_000 + 37_000 * (index % 5) for index in range(count)]
    return sizes, list(range(count)), [((index // 12) + 1) * 12 for index in range(count)]


def scattered(seed: int) -> tuple[list[int], list[int], list[int]]:
    draw = random.Random(seed)
    starts = [draw.randrange(300) for _ in range(400)]
    spans = [draw.choice([1, 1, 2, 3]) if draw.random() < 0.9 else draw.randrange(100) for _ in starts]
    return [int(2 ** draw.uniform(6, 22)) for _ in starts], starts, [a + b for a, b in zip(starts, spans, strict=True)]


@pytest.mark.parametrize("problem", [chain(60), dense(120), *(scattered(seed) for seed in range(6))])
def test_the_arena_is_at_most_a_tenth_larger_than_what_is_live(problem: tuple[list[int], list[int], list[int]]) -> None:
    placed = place(*problem, 64)
    assert placed.live <= placed.size <= 1.10 * placed.live


# ------------------------------------------------------------------------------------------ lifetimes


def copies(*pairs: tuple[int, int]) -> StraightBlock:
    return StraightBlock(tuple(CopyStep(origin, destination) for origin, destination in pairs))


def lives(
    blocks: list[Block], *, count: int = 12, given: tuple[int, ...] = (), kept: tuple[int, ...] = ()
) -> dict[int, Lifetime]:
    return lifetimes([BufferRecord("planned", "float32[4]", arena=0)] * count, blocks, given, kept)


def test_a_buffer_lives_from_its_first_touch_to_its_last() -> None:
    found = lives([copies((0, 1), (1, 2)), StraightBlock((ShapeStep("N", 1),)), copies((2, 3))], given=(0,), kept=(3,))
    assert found == {0: Lifetime(0, 1), 1: Lifetime(1, 3), 2: Lifetime(2, 4), 3: Lifetime(4, 5)}


def test_views_count_for_what_they_are_a_part_of() -> None:
    buffers = [
        BufferRecord("planned", "float32[4]", arena=0),
        BufferRecord("view", "float32[2]", base=0),
        BufferRecord("view", "float32[1]", base=1, shift=4),
        BufferRecord("planned", "float32[1]", arena=0),
    ]
    assert root_of(buffers, 2) == 0
    found = lifetimes(buffers, [StraightBlock((EvaluateStep("x", 1, (1,)), CopyStep(2, 3)))])
    assert found == {0: Lifetime(1, 2), 3: Lifetime(2, 2)}


def test_what_lives_before_a_loop_lives_to_its_end() -> None:
    loop = LoopBlock(
        (copies((0, 4), (4, 5), (3, 6)),),
        trip_count=1,
        carried=(CarriedRecord(2, 3, 5, 7),),
        collected=(CollectedRecord(6, 8),),
    )
    found = lives([copies((9, 0)), loop, copies((8, 10))])
    head, tail = 2, 6
    assert found[0] == Lifetime(1, tail)  # read in the body: the next iteration reads it again
    assert found[1] == found[2] == Lifetime(head, head)
    assert found[3] == Lifetime(head, tail)
    assert found[4] == Lifetime(3, 4)  # within an iteration
    assert found[5] == Lifetime(4, tail)
    assert found[6] == Lifetime(5, tail)
    assert found[7] == Lifetime(tail, tail)
    assert found[8] == Lifetime(head, tail + 1)


def test_branches_follow_each_other() -> None:
    found = lives([IfBlock(0, (copies((1, 2)),), (copies((1, 3)),)), copies((2, 4))])
    assert found[0] == Lifetime(1, 1)
    assert found[1] == Lifetime(2, 3)
    assert found[2] == Lifetime(2, 4)
    assert found[3] == Lifetime(3, 3)


def test_planning_thousands_of_buffers_takes_no_time() -> None:
    starts = np.arange(3000)
    placed = place([64 * (1 + index % 97) for index in range(3000)], starts.tolist(), (starts + 4).tolist(), 64)
    assert placed.size <= 1.1 * placed.live
