"""Runs on arrays of the device are one graph, which reads the caller's memory where it comes again, or a copy."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from argosy.artifact.plan import PlanRecord, StraightBlock
from argosy.drivers.discovery import devices
from argosy.errors import DeviceError, UsageError
from argosy.runtime.gpu.array import DeviceArray
from argosy.runtime.gpu.device import open_device
from argosy.runtime.session import Session
from tests.runtime.gpu.fakes import KINDS, Fake, artifact, faked, given, launch, numbers, plan, planned

KIND = "float32[4,8]"
SUM = plan(
    {"a": 0, "b": 1}, {"y": 3},
    [given(KIND), given(KIND), planned(KIND), planned(KIND)],
    [StraightBlock((launch("add", [0, 1], [2], [32]), launch("scale", [2], [3], [32, 3])))],
)  # fmt: skip


@pytest.fixture(params=KINDS)
def fake(request: pytest.FixtureRequest) -> Iterator[Fake]:
    with faked(request.param) as made:
        yield made


class Memory:
    """Device memory of a caller, with arrays in it."""

    def __init__(self, values: Sequence[np.ndarray[Any, Any]], shift: int = 0) -> None:
        self.device = open_device(devices()[0])
        before = self.device.enter()
        self._blocks = [self.device.allocate(value.nbytes + shift) for value in values]
        self.arrays = [
            DeviceArray(self.device, block + shift, value.shape, value.dtype, None)
            for block, value in zip(self._blocks, values, strict=True)
        ]
        for array, value in zip(self.arrays, values, strict=True):
            self.fill(array, value)
        self.device.leave(before)

    def fill(self, array: DeviceArray, value: np.ndarray[Any, Any]) -> None:
        """Put other values into an array."""
        before, stream = self.device.enter(), self.device.create_stream()
        self.device.upload(array.address, np.ascontiguousarray(value).reshape(-1).view(np.uint8), stream)
        self.device.synchronize(stream)
        self.device.destroy_stream(stream)
        self.device.leave(before)

    def free(self) -> None:
        before = self.device.enter()
        for block in self._blocks:
            self.device.free(block)
        self.device.leave(before)


def session_of(record: PlanRecord, fake: Fake) -> Session:
    return Session(artifact(record, fake.kind))


def test_a_run_on_memory_that_comes_again_copies_no_input(fake: Fake) -> None:
    session, memory = session_of(SUM, fake), Memory([numbers(4, 8), numbers(4, 8) * 2])
    a, b = memory.arrays
    for scale in range(1, 10):  # two blocks of results take turns, each of which comes again
        memory.fill(a, numbers(4, 8) * scale)
        before = fake.library.fake_calls()
        result = session.run({"a": a, "b": b})["y"]
        calls = fake.library.fake_calls() - before
        np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * (scale + 2) * 3)
    assert calls == 4, "what the default stream does (record, wait), the graph, the end: it writes the result"
    del session, result
    gc.collect()
    memory.free()
    assert not fake.alive


def test_memory_that_changes_is_read_all_the_same(fake: Fake) -> None:
    session, memory = session_of(SUM, fake), Memory([numbers(4, 8) * scale for scale in range(9)])
    for turn in range(4):
        for scale in range(1, 9):
            given_ = {"a": memory.arrays[scale], "b": memory.arrays[(scale + turn) % 9]}
            result = session.run(given_)["y"]
            np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * (scale + (scale + turn) % 9) * 3)
    assert fake.alive["executable"] <= 9
    for _ in range(3):
        session.run({"a": memory.arrays[1], "b": memory.arrays[1]})
    assert fake.alive["executable"] <= 9
    memory.free()


def test_memory_at_odd_places_is_copied(fake: Fake) -> None:
    session, memory = session_of(SUM, fake), Memory([numbers(4, 8), numbers(4, 8)], shift=4)
    a, b = memory.arrays
    for _ in range(4):
        before = fake.library.fake_calls()
        result = session.run({"a": a, "b": b})["y"]
        calls = fake.library.fake_calls() - before
        np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * 6)
    assert calls == 7
    memory.free()


def test_an_input_that_is_a_result_too_is_copied(fake: Fake) -> None:
    body = [StraightBlock((launch("scale", [0], [1], [32, 3]),))]
    record = plan({"a": 0}, {"y": 1, "same": 0}, [given(KIND), planned(KIND)], body)
    session, memory = session_of(record, fake), Memory([numbers(4, 8)])
    (a,) = memory.arrays
    for _ in range(4):
        results = session.run({"a": a})
        np.testing.assert_array_equal(results["y"].numpy(), numbers(4, 8) * 3)
        np.testing.assert_array_equal(results["same"].numpy(), numbers(4, 8))
        assert results["same"].address != a.address
    memory.free()


def test_what_kernels_report_ends_a_run_and_not_the_session(fake: Fake) -> None:
    kind = "float32[8]"
    steps = (launch("least", [0], [], fault=True), launch("scale", [0], [1], [8, 2]))
    record = plan({"a": 0}, {"y": 1}, [given(kind), planned(kind)], [StraightBlock(steps)])
    session, memory = session_of(record, fake), Memory([numbers(8)])
    (a,) = memory.arrays
    for turn in range(6):
        value = np.full(8, -3 if turn % 2 else 3, np.float32)
        memory.fill(a, value)
        if turn % 2:
            with pytest.raises(UsageError, match="node least"):
                session.run({"a": a})
        else:
            np.testing.assert_array_equal(session.run({"a": a})["y"].numpy(), value * 2)
    memory.free()


def test_a_failure_on_the_way_leaves_a_session_that_runs(fake: Fake) -> None:
    session, memory = session_of(SUM, fake), Memory([numbers(4, 8), numbers(4, 8)])
    a, b = memory.arrays
    for _ in range(8):
        session.run({"a": a, "b": b})
    for function in ("launch_graph", "copy", "record_event", "synchronize"):
        fake.fail(function, 1)
        held = session.run({"a": a, "b": b}) if function == "copy" else None  # a result at a new place is copied there
        with pytest.raises(DeviceError, match=function):
            session.run({"a": a, "b": b})
        del held
        for _ in range(4):
            np.testing.assert_array_equal(session.run({"a": a, "b": b})["y"].numpy(), numbers(4, 8) * 6)
    del session
    gc.collect()
    memory.free()
    assert not fake.alive


def test_results_that_are_kept_are_written_once_and_their_memory_comes_again(fake: Fake) -> None:
    session, memory = session_of(SUM, fake), Memory([numbers(4, 8), numbers(4, 8) * 2])
    a, b = memory.arrays
    kept = [session.run({"a": a, "b": b})["y"] for _ in range(12)]
    assert len({each.address for each in kept}) == 12
    for each in kept:
        np.testing.assert_array_equal(each.numpy(), numbers(4, 8) * 9)
    before = fake.alive["memory"]
    del kept, each
    for turn in range(12):
        memory.fill(a, numbers(4, 8) * turn)
        result = session.run({"a": a, "b": b})["y"]
        np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * (turn + 2) * 3)
    assert fake.alive["memory"] == before
    memory.free()


def test_two_results_in_one_place_are_two_arrays(fake: Fake) -> None:
    body = [StraightBlock((launch("scale", [0], [1], [32, 3]),))]
    record = plan({"a": 0}, {"y": 1, "same": 1}, [given(KIND), planned(KIND)], body)
    session, memory = session_of(record, fake), Memory([numbers(4, 8)])
    (a,) = memory.arrays
    for _ in range(6):
        results = session.run({"a": a})
        assert results["y"].address != results["same"].address
        for result in results.values():
            np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * 3)
    memory.free()
