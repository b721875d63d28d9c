"""Runs cases in worker processes, each case under a time limit; a worker that hangs or dies costs one case."""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeVar

from tests.conformance.judge import Outcome

__all__ = ["HasId", "Named", "run_cases"]


class HasId(Protocol):
    """Anything that can be judged."""

    @property
    def id(self) -> str:
        """Its name, unique in its suite."""
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """A case that is nothing but its name."""

    id: str


C = TypeVar("C", bound=HasId)

# Workers are forked, so that they share the cases, which are costly to build and hold no threads or devices.
_CONTEXT = multiprocessing.get_context("fork")


class _Worker:
    """A process that judges one case after another, and what it is doing now."""

    def __init__(self, cases: Sequence[C], judge: Callable[[C], Outcome]) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process: Any = _CONTEXT.Process(target=_work, args=(theirs, cases, judge), daemon=True)
        self._process.start()
        theirs.close()
        self.index: int | None = None
        self.deadline = 0.0

    def give(self, index: int, limit: float) -> None:
        """Start case `index`."""
        self.index = index
        self.deadline = time.monotonic() + limit
        self.connection.send(index)

    def end(self) -> None:
        """Stop the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def _work(connection: Connection, cases: Sequence[C], judge: Callable[[C], Outcome]) -> None:
    while True:
        try:
            index = connection.recv()
        except EOFError:
            return
        connection.send(judge(cases[index]))


def run_cases(
    cases: Sequence[C], judge: Callable[[C], Outcome], *, workers: int = 2, limit: float = 120.0, alone: bool = False
) -> Iterator[Outcome]:
    """The outcomes of all cases, as they come. A case that takes longer than `limit` seconds has failed.

    With `alone` each case has a process of its own, which no other case can have left in a bad state.
    """
    waiting = deque(range(len(cases)))
    crew = [_Worker(cases, judge) for _ in range(min(workers, len(cases)))]
    try:
        for worker in crew:
            worker.give(waiting.popleft(), limit)
        while crew:
            nearest = min(worker.deadline for worker in crew)
            ready = wait([worker.connection for worker in crew], max(0.0, nearest - time.monotonic()))
            for position in range(len(crew)):
                outcome = _collect(crew[position], cases, limit, heard=crew[position].connection in ready)
                if outcome is None:
                    continue
                yield outcome
                if crew[position].index is not None or (alone and waiting):  # it hangs or is dead, or was for one case
                    crew[position].end()
                    crew[position] = _Worker(cases, judge)
                if waiting:
                    crew[position].give(waiting.popleft(), limit)
            idle = [worker for worker in crew if worker.index is None]
            crew = [worker for worker in crew if worker.index is not None]
            for worker in idle:
                worker.end()
    finally:
        for worker in crew:
            worker.end()


def _collect(worker: _Worker, cases: Sequence[HasId], limit: float, *, heard: bool) -> Outcome | None:
    """The outcome of the worker's case if there is one; the worker is free then, unless it hangs or died."""
    case = cases[worker.index or 0]
    if heard:
        try:
            outcome: Outcome = worker.connection.recv()
        except EOFError:
            return Outcome(case.id, "the process died", 0.0)
        worker.index = None
        return outcome
    if time.monotonic() >= worker.deadline:
        return Outcome(case.id, f"took longer than {limit:g} s", limit)
    return None
