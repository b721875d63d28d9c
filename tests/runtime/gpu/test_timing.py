"""Times of launches, by the clock of the device: a fake one, that takes a microsecond for each piece of work."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from msgspec.structs import replace

from argosy.artifact.plan import StraightBlock
from argosy.errors import DeviceError, UsageError
from argosy.profiling import launch_times, perf
from argosy.runtime.gpu import timing
from argosy.runtime.gpu.faults import FaultWords
from argosy.runtime.session import Session
from tests.profiling.trace_format import assert_is_trace
from tests.runtime.gpu.fakes import KINDS, Fake, artifact, faked, given, launch, numbers, plan, planned

KIND = "float32[4,8]"
BUFFERS = [given(KIND), given(KIND), planned(KIND), planned(KIND)]
ADD, SCALE = launch("add", [0, 1], [2], [32]), launch("scale", [2], [3], [32, 3], grid=(2, 1, 1))
RECORD = plan({"a": 0, "b": 1}, {"y": 3}, BUFFERS, [StraightBlock((ADD, SCALE))])


@pytest.fixture(params=KINDS)
def fake(request: pytest.FixtureRequest) -> Iterator[Fake]:
    with faked(request.param) as made:
        yield made


def test_each_launch_is_timed_and_named(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    inputs = {"a": numbers(4, 8), "b": numbers(4, 8)}
    times = launch_times(session, inputs, replays=6)
    assert [(each.entry, each.grid, each.source) for each in times.launches] == [
        ("add", (1, 1, 1), "node add"),
        ("scale", (2, 1, 1), "node scale"),
    ]
    # Between the marks lie the graph and the second mark.
    assert times.seconds == pytest.approx(2e-6)
    assert [each.seconds for each in times.launches] == pytest.approx([2e-6 / 20] * 2)
    np.testing.assert_array_equal(session.run(inputs)["y"], numbers(4, 8) * 6)
    del session
    gc.collect()
    assert not fake.alive


def test_launches_in_a_run_are_what_it_is_longer_by(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs to behind the first, second and third launch take 10, 9 and 14 us, 20 of the first alone 140."""
    steps = (ADD, SCALE, launch("scale", [3], [2], [32, 3], grid=(2, 1, 1)))
    record = plan({"a": 0, "b": 1}, {"y": 3}, BUFFERS, [StraightBlock(steps)])
    told = {1: 10e-6, 2: 9e-6, 3: 14e-6, 20: 140e-6}
    monkeypatch.setattr(timing, "_seconds", lambda _frame, bound, _replays: told[len(bound)])
    session = Session(artifact(record, fake.kind))
    times = launch_times(session, {"a": numbers(4, 8), "b": numbers(4, 8)}, in_run=True)
    assert times.seconds == 14e-6
    # The clock put the second launch's end before the first one's; 2 us are what a graph takes to start.
    assert [each.seconds for each in times.launches] == pytest.approx([7e-6, 0, 5e-6])


def test_perf_times_launches_by_the_clock_of_the_device(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    inputs = {"a": numbers(4, 8), "b": numbers(4, 8)}
    report = perf(session, inputs=inputs, iterations=3)
    assert report.device_seconds == pytest.approx(2e-6)
    assert [(each.op, each.node, each.share) for each in report.instructions] == [
        ("add", "node add", 1),
        ("scale", "node scale", 0),  # to the fake clock, a graph is one piece of work
    ]
    assert [each.seconds for each in report.instructions] == pytest.approx([2e-6 / 20, 0])
    assert report.ops[0].seconds == pytest.approx(2e-6 / 20)
    assert "by the device's clock" in str(report)
    assert "sum of instructions 0.000 ms, 0.002 ms (95.0%) less than the launches as one graph" in str(report)
    trace = report.to_trace()
    assert_is_trace(trace)
    row = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["tid"] == 3]
    assert [(event["name"], event["ts"]) for event in row] == [("node add", 0)], "scale took no time"
    assert row[0]["dur"] == pytest.approx(0.1), "microseconds"
    assert report.footprint.kernels == 2
    assert report.operations is None, "an older schema says nothing of kernels"
    del session
    gc.collect()
    assert not fake.alive


def test_launches_have_a_share_of_the_roofline_of_the_product(fake: Fake) -> None:
    told = replace(ADD, whole=True, operations={"float32": 10**6}), SCALE
    record = plan({"a": 0, "b": 1}, {"y": 3}, BUFFERS, [StraightBlock(told)])
    report = perf(Session(artifact(record, fake.kind)), inputs={"a": numbers(4, 8), "b": numbers(4, 8)}, iterations=3)
    add, scale = report.instructions
    assert (add.operations, add.bytes) == (10**6, 3 * 4 * 8 * 4)
    assert (scale.operations, scale.bytes, scale.least) == (None, None, None), "it may leave elements out"
    assert report.operations == 10**6
    if fake.kind == "cuda":
        assert (add.least, report.least) == (None, None), "its arch is no product's"
        return
    assert add.least is not None
    assert add.least == pytest.approx(10**6 / 163.4e12, rel=1e-3), "data sheet of MI300X"
    assert add.rates["roofline"] == pytest.approx(add.least / add.seconds)
    assert "GB/s  roofline  op" in str(report)
    assert f"  {add.rates['roofline']:.0%}      1 x add" in str(report)
    assert report.least == (add.least, "Instinct MI300X")


def test_perf_times_by_the_host_where_the_host_takes_part(fake: Fake) -> None:
    record = plan({"a": 0, "b": 1}, {"y": 3}, BUFFERS, [StraightBlock((ADD,)), StraightBlock((SCALE,))])
    report = perf(Session(artifact(record, fake.kind)), inputs={"a": numbers(4, 8), "b": numbers(4, 8)}, iterations=3)
    assert report.device_seconds is None
    assert [each.node for each in report.instructions] == ["node add", "node scale"]
    assert "observed runs" in str(report)


def test_who_watches_the_clock_alone_copies_nothing_back(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    inputs = {"a": numbers(4, 8), "b": numbers(4, 8)}
    session.observe(inputs, lambda *_: None)
    begin = fake.library.fake_calls()
    session.observe(inputs, lambda *_: None)
    watched = fake.library.fake_calls() - begin
    seen = {}
    begin = fake.library.fake_calls()
    session.observe(inputs, lambda instruction, results: seen.update({instruction.source: results[0]}))
    assert fake.library.fake_calls() - begin > watched
    np.testing.assert_array_equal(seen["node add"], numbers(4, 8) * 2)
    np.testing.assert_array_equal(seen["node scale"], numbers(4, 8) * 6)


def test_a_failure_leaves_nothing(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    inputs = {"a": numbers(4, 8), "b": numbers(4, 8)}
    for _ in range(2):
        launch_times(session, inputs)
    held = fake.alive
    fake.fail("elapsed", 1)
    with pytest.raises(DeviceError, match="elapsed"):
        launch_times(session, inputs)
    assert fake.alive == held
    np.testing.assert_array_equal(session.run(inputs)["y"], numbers(4, 8) * 6)


def test_launches_are_done_again_without_copies(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    with session.fixed_launches({"a": numbers(4, 8), "b": numbers(4, 8)}) as launches:
        before, calls = fake.library.fake_launches(), fake.library.fake_calls()
        for _ in range(3):
            launches.replay()
        launches.wait()
        assert fake.library.fake_launches() - before == 6
        capture = 6  # begin, two launches, end, instantiate, and the graph that it was made of
        assert fake.library.fake_calls() - calls == 3 + 1 + capture
    del session, launches
    gc.collect()
    assert not fake.alive


def test_launches_that_are_done_again_read_the_same_inputs(fake: Fake) -> None:
    kind = "float32[8]"
    steps = (
        launch("least", [0], [], fault=True),
        launch("add", [0, 1], [2], [8]),
        launch("scale", [2], [3], [8, 2]),  # its result lies where an input was
    )
    buffers = [given(kind), given(kind), planned(kind), planned(kind)]
    session = Session(artifact(plan({"a": 0, "b": 1}, {"y": 3}, buffers, [StraightBlock(steps)]), fake.kind))
    inputs = {"a": np.full(8, 3, np.float32), "b": np.full(8, -5, np.float32)}
    for _ in range(2):
        with mock.patch.object(FaultWords, "clear"), session.fixed_launches(inputs) as launches:
            for _ in range(3):
                launches.replay()
            launches.wait()  # had one read what is no input any more, the next run would report it
        np.testing.assert_array_equal(session.run(inputs)["y"], np.full(8, -4, np.float32))


def test_what_the_host_takes_part_in_has_no_such_times(fake: Fake) -> None:
    record = plan({"a": 0, "b": 1}, {"y": 3}, BUFFERS, [StraightBlock((ADD,)), StraightBlock((SCALE,))])
    session = Session(artifact(record, fake.kind))
    with (
        pytest.raises(UsageError, match="not one row of launches"),
        session.fixed_launches({"a": numbers(4, 8), "b": numbers(4, 8)}),
    ):
        pass
