"""Kernels read large inputs where the caller has them; whatever lies otherwise is copied. The bits are the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from argosy.artifact.plan import BufferRecord, InputDim
from argosy.artifact.program import SymbolRecord
from argosy.runtime.executor import Executor
from tests.runtime.kernels import call, executor, plan, planned, run, straight

RNG = np.random.default_rng(8)
MANY = 5000


def made() -> Executor:
    """y = a + b over `N` numbers each."""
    kind = "float32[N]"
    return executor(
        plan(
            {"a": 0, "b": 1},
            {"y": 2},
            [BufferRecord("input", kind), BufferRecord("input", kind), planned(kind)],
            straight(call("add", (0, 1), (2,), ("N",), chunks="N")),
            symbols=(SymbolRecord("N", 0, None),),
            shapes=(InputDim("N", 0, 0),),
        )
    )


def floats(count: int) -> Any:
    return RNG.standard_normal(count).astype(np.float32)


def off_by_a_byte(values: Any) -> Any:
    raw = np.zeros(values.nbytes + 1, np.uint8)
    raw[1:] = values.view(np.uint8)
    return raw[1:].view(np.float32)


FORMS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "off by an element": lambda x: np.concatenate([x[:1], x])[1:],
    "off by a byte": off_by_a_byte,
    "every second": lambda x: np.repeat(x, 2)[::2],
    "from behind": lambda x: x[::-1].copy()[::-1],
    "read-only": lambda x: np.frombuffer(x.tobytes(), np.float32),
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
}


def holds(program: Executor, values: Any) -> bool:
    """Whether the memory of the last run holds a copy of these values."""
    workspace = program._body.take()
    found = values.tobytes() in workspace.arena.tobytes()
    program._body.give(workspace)
    return found


def test_a_large_input_is_not_copied() -> None:
    program, a, b = made(), floats(MANY), floats(MANY)
    np.testing.assert_array_equal(run(program, a, b)[0], a + b)
    assert not holds(program, a)
    assert not holds(program, b)
    run(program, a[::-1], b)
    assert holds(program, a[::-1])


@pytest.mark.parametrize("count", [0, 1, 3, MANY])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", FORMS)
def test_every_form_gives_the_same(form: str, other: str, count: int) -> None:
    """In turn with others in the same memory, so that no run reads where the one before did."""
    program, a, b = made(), floats(count), floats(count)
    for first, second in ((a, b), (b, a), (a, a), (b, b)):
        x, y = FORMS[form](first), FORMS[other](second)
        np.testing.assert_array_equal(run(program, x, y)[0], np.array(x) + np.array(y))
        np.testing.assert_array_equal(run(program, y, y)[0], np.array(y) + np.array(y))


def test_a_result_may_be_an_input_of_the_next_run() -> None:
    program, b = made(), floats(MANY)
    total = expected = np.zeros(MANY, np.float32)
    for _ in range(4):
        total, expected = run(program, total, b)[0], expected + b
        np.testing.assert_array_equal(total, expected)


def test_what_is_read_is_what_the_array_holds_now() -> None:
    program, a, b = made(), floats(MANY), floats(MANY)
    run(program, a, b)
    a += 1
    np.testing.assert_array_equal(run(program, a, b)[0], a + b)


def test_runs_side_by_side_read_their_own() -> None:
    program = made()
    pairs = [(floats(MANY), floats(MANY)) for _ in range(40)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: run(program, *pair)[0], pairs))
    for (a, b), result in zip(pairs, found, strict=True):
        np.testing.assert_array_equal(result, a + b)
