"""Memory of a device runs out, in runs and at load: the error is its own, nothing leaks, the session goes on.

The artifact is `squares`, whose runs take two matrices of N x N floats for N numbers in and N out.
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import argosy
from argosy.comparison import AllClose, compare
from argosy.drivers.api import DriverError
from argosy.errors import DeviceError
from argosy.runtime.gpu.device import DeviceMemoryError
from tests.conformance.judge import explain
from tests.hardware.device_memory import DeviceMemory
from tests.hardware.pack_checks import squares_outputs

__all__ = ["CHECKS_OF_MEMORY", "at_load", "in_runs", "in_threads", "large_buffers"]

_NEAR: Final = AllClose(1e-4, 0)
_SMALL: Final = 100
_SLACK: Final = 4 << 20
"""Bytes that a driver may keep: it takes memory in pages of 2 MiB."""
_CYCLES: Final = 20
_THREADS: Final = 8
_ROWS: Final = 2048
"""N of the runs of which three have room, and `_THREADS` have not."""
_WIDE: Final = 30_000
"""N at which a matrix has more than 2^31 bytes."""


def _numbers(count: int) -> NDArray[np.float32]:
    """Numbers whose sums don't vanish."""
    return np.random.default_rng(count).random(count, np.float32)


def _wrong(session: argosy.Session, count: int = 0) -> list[str]:
    """What is wrong with a run of `count` numbers, by default a few."""
    x = _numbers(count or _SMALL)
    return [f"a run of {x.size}: {each}" for each in compare(squares_outputs(x), session.run({"x": x}), _NEAR)]


def _needing(memory: int) -> int:
    """N at which a run needs more than that."""
    return int((memory / 8) ** 0.5 * 1.05) + 1


def _is_short(error: DeviceError) -> bool:
    """Whether an error tells that there is too little memory."""
    return isinstance(error, DeviceMemoryError) or (isinstance(error, DriverError) and error.is_out_of_memory)


def _outcome(action: Callable[[], Any]) -> str:
    """What is wrong with what an action raises, which must find too little memory."""
    try:
        action()
    except DeviceError as error:
        return "" if _is_short(error) else explain(error)
    return "there was memory enough"


def in_runs(artifact: bytes) -> list[str]:
    """A run that needs more than the device has, again and again, between runs that don't."""
    memory = DeviceMemory.of_first_device()
    session = argosy.Session(artifact, device="cuda")
    found = _wrong(session)
    x = _numbers(_needing(memory.total))
    free = 0
    for cycle in range(_CYCLES):
        if what := _outcome(lambda: session.run({"x": x})):
            found.append(what)
        found += _wrong(session)
        if cycle == 0:
            free = memory.free()
    if memory.free() < free - _SLACK:
        found.append(f"{free - memory.free()} bytes leaked in {_CYCLES} cycles")
    return found


def large_buffers(artifact: bytes) -> list[str]:
    """A run whose matrices have more than 2^31 bytes is right."""
    return _wrong(argosy.Session(artifact, device="cuda"), _WIDE)


def at_load(artifact: bytes) -> list[str]:
    """A session that finds no memory at load; another that has its own goes on, before, meanwhile and afterwards."""
    memory = DeviceMemory.of_first_device()
    argosy.Session(artifact, device="cuda")
    session = argosy.Session(artifact, device="cuda")
    found = _wrong(session)
    gc.collect()
    free = memory.free()
    x = _numbers(_ROWS)
    with memory.scarce(0):
        for action in (lambda: argosy.Session(artifact, device="cuda"), lambda: session.run({"x": x})):
            if what := _outcome(action):
                found.append(what)
        try:
            found += _wrong(session)
        except DeviceError as error:  # what it had may have gone to where it was asked for
            found += [] if _is_short(error) else [explain(error)]
    gc.collect()
    if memory.free() < free - _SLACK:
        found.append(f"{free - memory.free()} bytes leaked")
    return found + _wrong(session) + _wrong(session, _ROWS) + _wrong(argosy.Session(artifact, device="cuda"))


def in_threads(artifact: bytes) -> list[str]:
    """More runs at once than have room: each is right or finds no memory, and some are right."""
    memory = DeviceMemory.of_first_device()
    session = argosy.Session(artifact, device="cuda")
    found = _wrong(session)
    x = _numbers(_ROWS)
    expected = squares_outputs(x)
    counts: Counter[str] = Counter()

    def work() -> None:
        for _ in range(_CYCLES):
            try:
                wrong = compare(expected, session.run({"x": x}), _NEAR)
                counts["; ".join(map(str, wrong)) or "right"] += 1
            except DeviceError as error:
                counts["short" if _is_short(error) else explain(error)] += 1

    with memory.scarce(3 * 8 * _ROWS * _ROWS):
        crew = [threading.Thread(target=work) for _ in range(_THREADS)]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
    found += [f"{count} runs: {what}" for what, count in counts.items() if what not in ("right", "short")]
    if not counts["right"]:
        found.append("no run was right")
    return found + _wrong(session) + _wrong(session, _ROWS)


CHECKS_OF_MEMORY: Final = (
    ("memory that runs out in runs", in_runs),
    ("buffers of more than 2 GiB", large_buffers),
    ("no memory at load", at_load),
    ("more runs at once than have room", in_threads),
)
"""The checks, by what they are about."""
