"""Plans in which the host takes part: evaluate steps between launches, loops that the host's word ends, weights."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from argosy.artifact.plan import BufferRecord, CarriedRecord, LoopBlock, PrepareRecord, StraightBlock
from argosy.artifact.program import LiteralRef, SplatLiteral
from argosy.ir.formula import Formula
from argosy.ir.literal import Literal
from argosy.ir.op import Env
from argosy.ops.pointwise import Pointwise
from tests.runtime.gpu.fakes import KINDS, Fake, executor, faked, given, launch, numbers, plan, planned
from tests.runtime.kernels import evaluate


@pytest.fixture(params=KINDS)
def fake(request: pytest.FixtureRequest) -> Iterator[Fake]:
    with faked(request.param) as made:
        yield made


def test_host_steps_between_launches(fake: Fake) -> None:
    record = plan(
        {"a": 0}, {"y": 3, "square": 2},
        [given("float32[100]"), planned("float32[100]"), planned("float32[100]"), planned("float32[100]")],
        [StraightBlock((
            launch("scale", [0], [1], [100, 2]),
            evaluate(Pointwise(Formula.of("mul")), (1, 1), (2,)),
            launch("add", [1, 2], [3], [100]),
        ))],
    )  # fmt: skip
    made = executor(record)
    for scale in range(1, 5):
        a = numbers(100) * scale
        y, square = made.run([a], Env())
        np.testing.assert_array_equal(square, 4 * a * a)
        np.testing.assert_array_equal(y, 4 * a * a + 2 * a)
    del made
    gc.collect()
    assert not fake.alive


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_a_loop_whose_trips_the_host_reads(fake: Fake, trips: int) -> None:
    record = plan(
        {"a": 0, "n": 1}, {"y": 4},
        [given("float32[100]"), given("int64[]"), planned("float32[100]"), planned("float32[100]"),
         planned("float32[100]")],
        [LoopBlock((StraightBlock((launch("add", [2, 0], [3], [100]),)),), trip_count=1,
                   carried=(CarriedRecord(0, 2, 3, 4),))],
    )  # fmt: skip
    made = executor(record)
    a = numbers(100)
    for _ in range(3):
        np.testing.assert_array_equal(made.run([a, np.int64(trips)], Env())[0], a * (trips + 1))


def test_weights_and_what_is_prepared_of_them(fake: Fake) -> None:
    weight = numbers(1000)
    literal = Literal.of(weight)
    ref = LiteralRef(literal.digest, "float32", (1000,))
    splat = SplatLiteral("float32", np.float32(1.5).tobytes(), (1000,))
    record = plan(
        {"x": 0}, {"y": 5},
        [given("float32[1000]"), BufferRecord("weight", "float32[1000]", ref),
         BufferRecord("weight", "float32[1000]", splat), planned("float32[1000]"),
         BufferRecord("prepared", "float32[1000]"), planned("float32[1000]")],
        [StraightBlock((launch("add", [0, 4], [5], [1000]),))],
        prepare=(PrepareRecord("weights", (4,), (StraightBlock((
            launch("scale", [1], [3], [1000, 4]), launch("add", [3, 2], [4], [1000]),
        )),)),),
    )  # fmt: skip
    made = executor(record, {literal.digest: literal})
    assert made.memory == 3 * 4000
    for scale in range(1, 4):
        x = numbers(1000) * scale
        np.testing.assert_array_equal(made.run([x], Env())[0], x + 4 * weight + np.float32(1.5))
    del made
    gc.collect()
    assert not fake.alive


def test_each_launch_is_seen_by_who_watches(fake: Fake) -> None:
    record = plan(
        {"a": 0}, {"y": 2}, [given("float32[8]"), planned("float32[8]"), planned("float32[8]")],
        [StraightBlock((launch("scale", [0], [1], [8, 2]), launch("scale", [1], [2], [8, 5])))],
    )  # fmt: skip
    made = executor(record)
    seen: list[tuple[str, Any]] = []
    for _ in range(3):  # after captures, too
        made.run([numbers(8)], Env())
        seen.clear()
        made.run([numbers(8)], Env(), lambda instruction, values: seen.append((instruction.source, list(values))))
        assert [source for source, _ in seen] == ["node scale"] * 2
        np.testing.assert_array_equal(seen[0][1][0], numbers(8) * 2)
        np.testing.assert_array_equal(seen[1][1][0], numbers(8) * 10)
