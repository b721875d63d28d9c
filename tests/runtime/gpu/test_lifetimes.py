"""Order, sizes and lifetimes of everything that the runtime asks of a driver, against drivers that check them."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.artifact.plan import InputDim, PlanRecord, StraightBlock
from argosy.artifact.program import SymbolRecord
from argosy.errors import DeviceError, UsageError
from argosy.ir.op import Env
from argosy.runtime.gpu.device import DeviceMemoryError
from argosy.runtime.session import Session
from tests.runtime.gpu.fakes import KINDS, Fake, artifact, executor, faked, given, launch, numbers, plan, planned


@pytest.fixture(params=KINDS)
def fake(request: pytest.FixtureRequest) -> Iterator[Fake]:
    with faked(request.param) as made:
        yield made


def sums(size: int = 1000, **more: Any) -> PlanRecord:
    """y = (a + b) * 3, on the device throughout."""
    kind = f"float32[{size}]"
    body = [StraightBlock((launch("add", [0, 1], [2], [size], **more), launch("scale", [2], [3], [size, 3])))]
    return plan({"a": 0, "b": 1}, {"y": 3}, [given(kind), given(kind), planned(kind), planned(kind)], body)


def test_runs_one_by_one_and_as_one_graph_give_the_same_and_leave_nothing(fake: Fake) -> None:
    made = executor(sums())
    a, b = numbers(1000), numbers(1000) * 2
    for scale in range(1, 5):
        (y,) = made.run([a * scale, b], Env())
        np.testing.assert_array_equal(y, (a * scale + b) * 3)
    assert fake.library.fake_launches() == 8
    assert fake.alive["executable"] == 1
    assert made.memory >= 3 * 4000
    del made
    gc.collect()
    assert not fake.alive


def test_kernels_may_start_before_those_in_front_of_them_have_ended() -> None:
    with faked("cuda") as fake:
        plan_ = sums()
        (block,) = plan_.body
        assert isinstance(block, StraightBlock)
        early = [msgspec.structs.replace(step, programmatic=True) for step in block.steps]
        made = executor(msgspec.structs.replace(plan_, body=(StraightBlock(tuple(early)),)))
        fake.fail("launch_with", 1)
        with pytest.raises(DeviceError, match="launch_with"):
            made.run([numbers(1000), numbers(1000)], Env())
        for _ in range(3):
            (y,) = made.run([numbers(1000), numbers(1000)], Env())
            np.testing.assert_array_equal(y, numbers(1000) * 6)


@pytest.mark.parametrize(
    ("programs", "threads", "early"), [(4, 1024, True), (5, 128, False), (16, 32, True), (17, 32, False)]
)
def test_only_small_launches_start_early(programs: int, threads: int, early: bool) -> None:
    with faked("cuda") as fake:  # of 4 units
        plan_ = sums()
        (block,) = plan_.body
        assert isinstance(block, StraightBlock)
        changes = {"programmatic": True, "grid": (programs, 1, 1), "block": (threads, 1, 1)}
        steps = tuple(msgspec.structs.replace(step, **changes) for step in block.steps)
        made = executor(msgspec.structs.replace(plan_, body=(StraightBlock(steps),)))
        fake.fail("launch_with", 1)
        if early:
            with pytest.raises(DeviceError, match="launch_with"):
                made.run([numbers(1000), numbers(1000)], Env())
        else:
            made.run([numbers(1000), numbers(1000)], Env())


def test_a_run_after_the_second_is_a_single_call_for_all_of_its_work(fake: Fake) -> None:
    made = executor(sums())
    arguments = [numbers(1000), numbers(1000)]
    for _ in range(2):
        made.run(arguments, Env())
    before = fake.library.fake_calls()
    made.run(arguments, Env())
    assert fake.library.fake_calls() - before == 2, "a launch of a graph, and waiting for it"


def test_results_are_the_callers_own(fake: Fake) -> None:
    made = executor(sums())
    arguments = [numbers(1000), numbers(1000)]
    results = [made.run([arguments[0] * scale, arguments[1]], Env())[0] for scale in range(4)]
    for scale, result in enumerate(results):
        np.testing.assert_array_equal(result, (arguments[0] * scale + arguments[1]) * 3)


def test_many_threads_get_equal_bits_in_as_many_arenas_as_may_run(fake: Fake) -> None:
    session = Session(artifact(sums(), fake.kind), max_concurrency=3)
    feeds = {"a": numbers(1000), "b": numbers(1000)}
    expected = (feeds["a"] + feeds["b"]) * 3
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(200):
                assert session.run(feeds)["y"].tobytes() == expected.tobytes()
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert fake.alive["stream"] <= 3
    assert fake.alive["memory"] <= 3


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize(
    "function", ["allocate", "allocate_host", "create_stream", "load_module", "function", "upload"]
)
def test_nothing_leaks_when_loading_or_the_first_runs_fail(fake: Fake, function: str, after: int) -> None:
    fake.fail(function, 2, after)
    a, b = numbers(1000), numbers(1000)
    try:
        made = executor(sums())
    except DeviceError:
        gc.collect()
        assert not fake.alive
        return
    for _ in range(4):  # whatever failed, the next run is good
        try:
            made.run([a, b], Env())
        except DeviceError:
            continue
    np.testing.assert_array_equal(made.run([a, b], Env())[0], (a + b) * 3)
    del made
    gc.collect()
    assert not fake.alive


def test_an_error_at_load_says_where_and_what_to_do(fake: Fake) -> None:
    fake.fail("load_module", 2)
    with pytest.raises(DeviceError, match=r"(?s)^plan: the driver's load_module: .*\(error 2\)\n.*free memory there"):
        executor(sums())


def test_out_of_memory_names_the_bytes_and_the_session_stays_usable(fake: Fake) -> None:
    symbolic = plan(
        {"a": 0, "b": 1},
        {"y": 2},
        [given("float32[N]"), given("float32[N]"), planned("float32[N]")],
        [StraightBlock((launch("add", [0, 1], [2], ["N"]),))],
        symbols=(SymbolRecord("N"),),
        shapes=(InputDim("N", 0, 0),),
    )
    fake.library.fake_limit(1 << 20)
    made = executor(symbolic)
    small, large = numbers(1000), numbers(1 << 20)
    made.run([small, small], Env())
    with pytest.raises(DeviceMemoryError, match=r"plan: 12582912 bytes of memory were asked for on .*, \d+ are free"):
        made.run([large, large], Env())
    np.testing.assert_array_equal(made.run([small, small], Env())[0], small + small)
    fake.library.fake_limit(1 << 26)
    np.testing.assert_array_equal(made.run([large, large], Env())[0], large + large)


def test_memory_that_waits_for_the_next_run_is_given_back_for_one_that_needs_it(fake: Fake) -> None:
    made = executor(sums(1 << 16))
    arguments = [numbers(1 << 16), numbers(1 << 16)]
    made.run(arguments, Env())
    fake.library.fake_limit(made.memory + 1024)
    before = made._device.enter()
    waiting, new = made._taken(), made._taken()
    made._device.leave(before)
    made._workspaces.extend((waiting, new))  # the next run takes the new one, which has no arena yet
    np.testing.assert_array_equal(made.run(arguments, Env())[0], (arguments[0] + arguments[1]) * 3)
    assert not waiting.staging.size


def test_a_refused_launch_names_its_node(fake: Fake) -> None:
    made = executor(sums())
    fake.fail("launch", 1)
    with pytest.raises(DeviceError, match=r"node add.*launch: invalid argument"):
        made.run([numbers(1000), numbers(1000)], Env())
    made.run([numbers(1000), numbers(1000)], Env())
    fake.fail("launch", 1, 1)  # of the launches that are captured
    with pytest.raises(DeviceError, match=r"node scale.*launch: invalid argument"):
        made.run([numbers(1000), numbers(1000)], Env())
    np.testing.assert_array_equal(made.run([numbers(1000), numbers(1000)], Env())[0], numbers(1000) * 6)


@pytest.mark.parametrize("grid", [(1, 65536, 1), (1, 1, 65536), (2**31, 1, 1)])
def test_a_grid_that_no_device_takes_is_refused_before_it_is_launched(fake: Fake, grid: tuple[int, int, int]) -> None:
    made = executor(sums(grid=grid))
    with pytest.raises(DeviceError, match="node add.*more than a device takes"):
        made.run([numbers(1000), numbers(1000)], Env())


def test_a_fault_of_a_kernel_ends_the_run_in_a_graph_too(fake: Fake) -> None:
    record = plan(
        {"x": 0},
        {"y": 1},
        [given("float32[8]"), planned("float32[8]")],
        [StraightBlock((launch("least", [0], [], fault=True), launch("scale", [0], [1], [8, 2])))],
    )
    made = executor(record)
    good, bad = np.ones(8, np.float32), np.full(8, -3, np.float32)
    for arguments in (good, bad, good, bad, good, bad):
        if arguments is good:
            np.testing.assert_array_equal(made.run([good], Env())[0], good * 2)
        else:
            with pytest.raises(UsageError, match="node least"):
                made.run([bad], Env())
    del made
    gc.collect()
    assert not fake.alive


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_refused_and_frees_nothing(fake: Fake) -> None:
    session = Session(artifact(sums(), fake.kind))
    feeds = {"a": numbers(1000), "b": numbers(1000)}
    session.run(feeds)
    calls = fake.library.fake_calls()
    child = os.fork()
    if not child:
        code = 1
        try:
            session.run(feeds)
        except DeviceError as error:
            del session
            gc.collect()
            code = 0 if "forked" in str(error) and fake.library.fake_calls() == calls else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(session.run(feeds)["y"], numbers(1000) * 6)


def test_the_thread_keeps_the_context_that_it_had(fake: Fake) -> None:
    made = executor(sums())
    context = made._device._device._api.made  # type: ignore[attr-defined]
    assert context("context") == 0
    made.run([numbers(1000), numbers(1000)], Env())
    assert context("context") == 0
