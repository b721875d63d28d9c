"""How long the launches of a run take on the device, by its own clock: the whole as one graph, and each alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final

import msgspec

from argosy.artifact.plan import LaunchStep
from argosy.runtime.gpu.layout import Bound, DeviceFrame

__all__ = ["FixedLaunches", "LaunchTime", "RunTimes", "fixed_launches"]

_COPIES: Final = 20
"""Launches of one kernel in a graph, so that what a graph itself takes does not count."""
_WARM: Final = 3


class LaunchTime(msgspec.Struct, frozen=True):
    """Seconds of one launch: the kernel's entry, its programs by axis, the nodes of the model that it is for."""

    entry: str
    grid: tuple[int, int, int]
    source: str
    seconds: float


class RunTimes(msgspec.Struct, frozen=True):
    """Seconds of a run's launches as one graph, and of each alone, in the order of the run. Copies don't count."""

    seconds: float
    launches: tuple[LaunchTime, ...]


class FixedLaunches:
    """The launches of a run, known beforehand, on the places of a frame that has done them.

    They may be done again any number of times, as one graph without the copies of a run. For as long as the context
    that gave it lasts.
    """

    def __init__(self, frame: DeviceFrame, steps: Sequence[LaunchStep], bound: Sequence[Sequence[Bound]]) -> None:
        self._frame = frame
        self._steps = steps
        self._each = bound
        self._all = [launch for each in bound for launch in each]
        self._graph: int | None = None

    def replay(self) -> None:
        """Start the launches, as one graph, on a stream of their own."""
        if self._graph is None:
            self._graph = self._frame.captured(lambda: self._frame.start(self._all))
        self._frame.device.launch_graph(self._graph, self._frame.stream)

    def wait(self) -> None:
        """Wait for what was started."""
        self._frame.device.synchronize(self._frame.stream)

    def times(self, replays: int = 30) -> RunTimes:
        """How long they take by the device's clock: medians of `replays`, fewer for each alone."""
        found = []
        for step, each in zip(self._steps, self._each, strict=True):
            if each:  # else it has nothing to do
                seconds = _seconds(self._frame, [*each] * _COPIES, max(replays // 6, 1)) / _COPIES
                found.append(LaunchTime(step.entry, each[0].grid, step.source, seconds))
        return RunTimes(_seconds(self._frame, self._all, replays), tuple(found))

    def end(self) -> None:
        """Give the graph back."""
        if self._graph is not None:
            self.wait()
            self._frame.device.destroy_graph(self._graph)


@contextmanager
def fixed_launches(
    frame: DeviceFrame, steps: Sequence[LaunchStep], places: Mapping[int, int]
) -> Iterator[FixedLaunches]:
    """Launches that a frame has done, to be done again; roots in `places` lie there."""
    found = FixedLaunches(frame, steps, [frame.bind([step], places) for step in steps])
    try:
        yield found
    finally:
        found.end()


def _seconds(frame: DeviceFrame, bound: Sequence[Bound], replays: int) -> float:
    device, stream = frame.device, frame.stream
    graph = frame.captured(lambda: frame.start(bound))
    first, last = device.create_event(timed=True), device.create_event(timed=True)
    found = []
    try:
        for _ in range(_WARM + replays):
            device.record(first, stream)
            device.launch_graph(graph, stream)
            device.record(last, stream)
            device.synchronize(stream)
            found.append(device.elapsed(first, last))
    finally:
        device.destroy_event(first)
        device.destroy_event(last)
        device.destroy_graph(graph)
    return median(found[_WARM:])
