"""How long the launches of a run take on the device, by its own clock: the whole as one graph, and each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
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
    """Seconds of one launch: the kernel's entry, its programs by axis, the nodes of the model that it is for.

    They are those of the launch alone, or what the run is longer by for it, as was asked.
    """

    entry: str
    grid: tuple[int, int, int]
    source: str
    seconds: float


class RunTimes(msgspec.Struct, frozen=True):
    """Seconds of a run's launches as one graph, and of each, in the order of the run. Copies don't count."""

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

    def times(self, replays: int = 30, *, in_run: bool = False) -> RunTimes:
        """How long they take by the device's clock: medians of `replays`, fewer for each.

        A launch alone has its operands in the caches. With `in_run`, its seconds are what the run is longer by for it,
        behind all in front of it: what the device takes between two launches is in them, and their sum is the run's,
        less what a graph takes to start.
        """
        launched = [
            (step, each) for step, each in zip(self._steps, self._each, strict=True) if each
        ]  # others do nothing
        seconds = self._in_run(max(replays // 3, 1)) if in_run else [self._alone(each, replays) for _, each in launched]
        found = [
            LaunchTime(step.entry, each[0].grid, step.source, each_seconds)
            for (step, each), each_seconds in zip(launched, seconds, strict=True)
        ]
        return RunTimes(_seconds(self._frame, self._all, replays), tuple(found))

    def _alone(self, each: Sequence[Bound], replays: int) -> float:
        return _seconds(self._frame, [*each] * _COPIES, max(replays // 6, 1)) / _COPIES

    def _in_run(self, replays: int) -> list[float]:
        """The differences between runs that end behind each launch and behind the one in front of it.

        Where a longer run is the shorter one, something else kept the other one: it counts as no longer either.
        """
        parts = [each for each in self._each if each]
        if not parts:
            return []
        fronts = [[launch for each in parts[: last + 1] for launch in each] for last in range(len(parts))]
        ends = [*accumulate((_seconds(self._frame, front, replays) for front in reversed(fronts)), min)][::-1]
        return [min(ends[0], self._alone(parts[0], replays)), *(after - before for before, after in pairwise(ends))]

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
