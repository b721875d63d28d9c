"""`argosy.profiling.launch_times`: what each kernel of a run on a GPU takes, by the device's clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.runtime.gpu.timing import RunTimes
from argosy.runtime.session import Session

__all__ = ["launch_times"]


def launch_times(session: Session, inputs: Mapping[str, Any], *, replays: int = 30) -> RunTimes:
    """Seconds of a run's launches as one graph, and of each alone with its kernel, grid and nodes.

    Medians of `replays`, without the copies of inputs and results. Raises DeviceError where no GPU runs, UsageError
    where the launches depend on what a run computes or the host takes part.
    """
    with session.fixed_launches(inputs) as launches:
        return launches.times(replays)
