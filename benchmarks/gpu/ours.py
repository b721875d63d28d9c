"""Times of an artifact on a device: the whole model as one captured graph, and each of its kernels alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import argosy
from argosy.artifact.plan import LaunchStep, steps_in
from argosy.runtime.gpu.executor import DeviceExecutor
from argosy.runtime.gpu.layout import Bound, DeviceFrame

__all__ = ["LaunchTimes", "Times", "executor_times", "graph_time", "measure"]

_REPLAYS: Final = 30
_COPIES: Final = 20
"""Launches of one kernel in a graph, so that what a graph itself takes does not count."""


@dataclass(frozen=True, slots=True)
class Times:
    """µs of the whole model by one graph, and in sum of each kind of kernel (label, grid) alone, with its number."""

    model: float
    kernels: dict[str, tuple[float, int]]

    @property
    def alone(self) -> float:
        """The sum of the kernels."""
        return sum(time for time, _ in self.kernels.values())


def graph_time(start: Callable[[], None], stream: Any, count: int = _REPLAYS) -> float:
    """Median µs of what `start` puts into a torch stream, by events around each."""
    import torch  # noqa: PLC0415

    found = []
    for _ in range(count + 5):
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record(stream)
        start()
        after.record(stream)
        torch.cuda.synchronize()
        found.append(before.elapsed_time(after) * 1000)
    return median(found[5:])


def measure(session: argosy.Session, arguments: dict[str, Any]) -> Times:
    """Times of a session that has one variant, whose runs are one block of fixed launches."""
    for _ in range(3):
        session.run(arguments)
    # What a session has on the device is its own business, but for those who time each kernel of it.
    (executor,) = (each for each in session._loaded.values() if isinstance(each, DeviceExecutor))  # noqa: SLF001
    found = executor_times(executor)
    totals: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for step, time in zip(found.steps, found.each, strict=True):
        key = f"{step.entry.rpartition('_')[0]} {'x'.join(map(str, step.grid))}"
        totals[key] += time
        counts[key] += 1
    kernels = {key: (totals[key], counts[key]) for key in sorted(totals, key=lambda key: -totals[key])}
    return Times(found.model, kernels)


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """µs of a whole run by one graph, and of each of its launches alone."""

    model: float
    steps: list[LaunchStep]
    each: list[float]


def executor_times(executor: DeviceExecutor) -> LaunchTimes:
    """Times of an executor that has run, whose runs are one block of fixed launches."""
    import torch  # noqa: PLC0415

    frame: DeviceFrame = next(iter(executor._workspaces[0]._frames.values()))  # noqa: SLF001
    stream = torch.cuda.ExternalStream(frame.stream)
    steps = [step for step in steps_in(executor._plan.body) if isinstance(step, LaunchStep)]  # noqa: SLF001
    before = frame.device.enter()
    try:
        model = _time(frame, frame.bind(steps), stream)
        each = [_time(frame, frame.bind([step]) * _COPIES, stream, 5) / _COPIES for step in steps]
    finally:
        frame.device.leave(before)
    return LaunchTimes(model, steps, each)


def _time(frame: DeviceFrame, bound: list[Bound], stream: Any, count: int = _REPLAYS) -> float:
    graph = frame.captured(lambda: frame.start(bound))
    try:
        return graph_time(lambda: frame.device.launch_graph(graph, frame.stream), stream, count)
    finally:
        frame.device.destroy_graph(graph)
