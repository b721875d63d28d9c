"""Runs that are watched, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from argosy.ir.interpreter import Watcher
from argosy.ir.module import Constant, Instruction
from argosy.runtime.session import Session

__all__ = ["Clock", "Execution", "Watched", "watch"]

Clock: TypeAlias = Callable[[], float]
"""Gives seconds."""
Execution: TypeAlias = tuple[Instruction, float, float]
"""An instruction, when it began and when it ended."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What each run executed, in order, constants aside, and the bytes that the last one copied in and out."""

    runs: Sequence[Sequence[Execution]]
    copied_in: int
    copied_out: int


def watch(session: Session, values: Mapping[str, Any], runs: int, clock: Clock) -> Watched:
    """Watch that many runs of a session."""
    found = []
    for _ in range(runs):
        seen = _Watch(clock)
        session.observe(values, seen)
        found.append(seen)
    return Watched([seen.spent for seen in found], found[-1].copied[True], found[-1].copied[False])


class _Watch(Watcher):
    """Reads the clock where an instruction begins and where it ends."""

    def __init__(self, clock: Clock) -> None:
        self.spent: list[Execution] = []
        self.copied = {True: 0, False: 0}
        self._clock = clock
        self._begin = 0.0

    def begins(self, instruction: Instruction) -> None:
        del instruction
        self._begin = self._clock()

    def copies(self, count: int, *, inwards: bool) -> None:
        self.copied[inwards] += count

    def __call__(self, instruction: Instruction, results: Sequence[Any]) -> None:
        end = self._clock()
        if not isinstance(instruction.op, Constant):
            self.spent.append((instruction, self._begin, end))
