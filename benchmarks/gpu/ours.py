"""Times of an artifact on a device: the whole model as one captured graph, and each of its kernels alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import argosy
from argosy.profiling import launch_times

__all__ = ["Times", "graph_time", "measure"]

_REPLAYS: Final = 30


@dataclass(frozen=True, slots=True)
class Times:
    """µs of the whole model by one graph, and in sum of each kind of kernel (label, grid) alone, with its number."""

    model: float
    kernels: dict[str, tuple[float, int]]

    @property
    def alone(self) -> float:
        """The sum of the kernels."""
        return sum(time for time, _ in self.kernels.values())


def graph_time(
    start: Callable[[], Any], stream: Any, count: int = _REPLAYS, *, ahead: Callable[[], None] = lambda: None
) -> float:
    """Median µs of what `start` puts into a torch stream, by events around each; `ahead` puts something in front."""
    import torch  # noqa: PLC0415

    found = []
    for _ in range(count + 5):
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        ahead()
        before.record(stream)
        start()
        after.record(stream)
        torch.cuda.synchronize()
        found.append(before.elapsed_time(after) * 1000)
    return median(found[5:])


def measure(session: argosy.Session, arguments: dict[str, Any]) -> Times:
    """Times of a session whose runs are one block of fixed launches."""
    found = launch_times(session, arguments, replays=_REPLAYS)
    totals: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for each in found.launches:
        key = f"{each.entry.rpartition('_')[0]} {'x'.join(map(str, each.grid))}"
        totals[key] += each.seconds * 1e6
        counts[key] += 1
    kernels = {key: (totals[key], counts[key]) for key in sorted(totals, key=lambda key: -totals[key])}
    return Times(found.seconds * 1e6, kernels)
