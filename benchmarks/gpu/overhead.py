"""What a run on arrays of the device takes beyond the replay of its graph, by the host's clock.

Both are waited for; then both are put into a stream many times, which is waited for once: what a run adds there is host
time as far as the device does not hide it. Calls alternate, so that a change of clocks meets both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import argosy

__all__ = ["BAR", "Overhead", "overhead"]

BAR: Final = 30.0
"""µs that a run may take more than the replay of its graph, both waited for."""
_RUNS: Final = 300
_ROW: Final = 20
"""Runs that are put into a stream before it is waited for."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Medians in µs: a replay and runs that are waited for, then each of a row of them in a stream."""

    replay: float
    runs: dict[str, float]
    replays_in_stream: float
    runs_in_stream: float

    def lines(self) -> list[str]:
        """As text."""
        waited = [
            f"    run, {words:34} {run:8.1f} us  {run - self.replay:+6.1f}  (bar +{BAR:.0f})"
            for words, run in self.runs.items()
        ]
        more = self.runs_in_stream - self.replays_in_stream
        return [
            f"    bare replay, waited for                   {self.replay:8.1f} us",
            *waited,
            f"    bare replays in a stream, each            {self.replays_in_stream:8.1f} us",
            f"    run_async in a stream, each               {self.runs_in_stream:8.1f} us  {more:+6.1f}",
        ]


def overhead(session: argosy.Session, given: dict[str, Any]) -> Overhead:
    """Measure a session whose runs are one row of fixed launches, beside a graph of the same launches."""
    import torch  # noqa: PLC0415

    tensors = {name: torch.from_numpy(value).cuda() for name, value in given.items()}
    others = [{name: tensor.clone() for name, tensor in tensors.items()} for _ in range(8)]
    arrays = {name: _held(tensor) for name, tensor in tensors.items()}
    torch.cuda.synchronize()
    turn = iter(range(10**9))
    ways: dict[str, Callable[[], Any]] = {
        "arrays of ours": lambda: session.run(arrays),
        "torch tensors": lambda: session.run(tensors),
        "torch tensors at changing places": lambda: session.run(others[next(turn) % 8]),
    }
    stream = torch.cuda.Stream()
    with session.fixed_launches(given) as launches:

        def waited() -> None:
            launches.replay()
            launches.wait()

        calls = {"": waited, **ways}
        found: dict[str, list[float]] = {words: [] for words in calls}
        for number in range(_RUNS + 20):
            for words, call in calls.items():
                begin = time.perf_counter()
                call()
                if number >= 20:
                    found[words].append((time.perf_counter() - begin) * 1e6)
        rows = _row(launches.replay, launches.wait)
    in_stream = _row(lambda: session.run_async(arrays, stream), torch.cuda.synchronize)
    times = {words: median(each) for words, each in found.items()}
    return Overhead(times.pop(""), times, rows, in_stream)


def _row(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    found = []
    for _ in range(_RUNS // _ROW + 3):
        begin = time.perf_counter()
        for _ in range(_ROW):
            call()
        wait()
        found.append((time.perf_counter() - begin) * 1e6 / _ROW)
    return median(found[3:])


def _held(tensor: Any) -> Any:
    """An array of ours over a torch tensor's memory."""
    from argosy.runtime.gpu.array import device_array  # noqa: PLC0415

    return device_array(tensor)
