"""The worker pool: the same bits whoever does the work, side by side, after a fork, and with faults."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from argosy.artifact.plan import BufferRecord, PlanRecord
from argosy.errors import UsageError
from argosy.runtime.devices.cpu_pool import POOL
from tests.runtime.kernels import call, executor, plan, planned, run, straight

SIZE = 4096


@pytest.fixture(autouse=True)
def workers() -> Iterator[None]:
    """Every test starts and ends without workers."""
    POOL.stop()
    yield
    POOL.stop()


def chain(steps: int = 12, chunks: int = 8, rounds: int = 3) -> PlanRecord:
    """Many steps, each on the result of the one before, through scratch."""
    buffers = [BufferRecord("input", f"float32[{SIZE}]"), *(planned(f"float32[{SIZE}]") for _ in range(steps))]
    calls = []
    for step in range(steps):
        if step % 3 == 0:
            calls.append(call("spin", (step,), (step + 1,), (SIZE, rounds), chunks=chunks))
        else:
            calls.append(call("scale", (step,), (step + 1,), (SIZE, 2), chunks=chunks, scratch=4 * SIZE))
    return plan({"x": 0}, {"y": steps}, buffers, straight(*calls))


def expected(x: np.ndarray[Any, Any], steps: int = 12, rounds: int = 3) -> np.ndarray[Any, Any]:
    for step in range(steps):
        if step % 3 == 0:
            for _ in range(rounds):
                x = x * np.float32(0.5) + np.float32(1)
        else:
            x = x * np.float32(2)
    return x


def feed(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(SIZE).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_number_of_threads_gives_the_same_bits(threads: int) -> None:
    made = executor(chain(), threads=threads)
    assert POOL.workers == threads - 1
    for seed in range(60):
        assert run(made, feed(seed))[0].tobytes() == expected(feed(seed)).tobytes()


def test_workers_take_part() -> None:
    """The scratch of the second worker is written to, sooner or later."""
    slow = executor(chain(steps=2, chunks=64, rounds=500), threads=2)
    for seed in range(200):
        run(slow, feed(seed))
        place = slow._body.take()
        slow._body.give(place)
        if place._scratch[place._stride + 64 : 2 * place._stride].any():
            return
    pytest.fail("the worker never did a chunk")


def test_sixteen_callers_share_the_workers() -> None:
    made = executor(chain(), threads=3)
    wanted = [expected(feed(seed)).tobytes() for seed in range(16)]
    faults: list[int] = []

    def work(index: int) -> None:
        x = feed(index)
        faults.extend(index for _ in range(200) if run(made, x)[0].tobytes() != wanted[index])

    callers = [threading.Thread(target=work, args=(index,)) for index in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not faults
    assert POOL.workers == 2


def test_the_first_chunk_that_fails_is_told_whoever_did_it() -> None:
    record = plan(
        {"x": 0, "i": 1}, {"y": 2},
        [BufferRecord("input", "float32[8]"), BufferRecord("input", "int64[64]"), planned("float32[64]")],
        straight(call("gather", (0, 1), (2,), (8, 64), chunks=64)),
    )  # fmt: skip
    made = executor(record, threads=3)
    x = np.arange(8, dtype=np.float32)
    index = np.arange(64) % 8
    index[[20, 40, 60]] = 100, 200, 300
    for _ in range(100):
        with pytest.raises(UsageError, match="the index 100 is out of range"):
            run(made, x, index)
    assert run(made, x, np.arange(64) % 8)[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7] * 8


def in_child(work: Callable[[], bool]) -> bool:
    """Whether `work` succeeds in a forked child."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_workers_of_its_own() -> None:
    made = executor(chain(), threads=3)
    x = feed(0)
    wanted = expected(x).tobytes()
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            run(made, x)

    def work() -> bool:
        good = all(run(made, x)[0].tobytes() == wanted for _ in range(50))
        fresh = executor(chain(), threads=4)
        return good and run(fresh, x)[0].tobytes() == wanted and POOL.workers == 3

    others = [threading.Thread(target=keep_busy) for _ in range(2)]
    for other in others:
        other.start()
    try:
        assert all(in_child(work) for _ in range(5))
    finally:
        stop.set()
        for other in others:
            other.join()
    assert run(made, x)[0].tobytes() == wanted
