"""`argosy.profiling.launch_times`: what each kernel of a run on a GPU takes, by the device's clock."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from argosy.artifact.manifest import VariantRecord
from argosy.artifact.plan import LaunchStep, steps_in
from argosy.errors import UsageError
from argosy.profiling.instructions import InstructionTime
from argosy.runtime.gpu.timing import RunTimes
from argosy.runtime.nodes import kernel_family
from argosy.runtime.session import Session

__all__ = ["by_device", "device_times", "launch_times"]

log = logging.getLogger("argosy.perf")


def launch_times(session: Session, inputs: Mapping[str, Any], *, replays: int = 30, in_run: bool = False) -> RunTimes:
    """Seconds of a run's launches as one graph, and of each with its kernel, grid and nodes.

    Each is timed alone, or with `in_run` by what the run is longer by for it. Medians of `replays`, without the copies
    of inputs and results. Raises DeviceError where no GPU runs, UsageError where the launches depend on what a run
    computes or the host takes part.
    """
    with session.fixed_launches(inputs) as launches:
        return launches.times(replays, in_run=in_run)


def device_times(session: Session, variant: VariantRecord | None, inputs: Mapping[str, Any]) -> RunTimes | None:
    """`launch_times` of each in the run, or None: not on a GPU, or the host takes part in the run."""
    if variant is None or session.device.startswith("emulated"):
        return None
    if not any(isinstance(step, LaunchStep) for step in steps_in(session.artifact.plan(variant.key).body)):
        return None
    try:
        return launch_times(session, inputs, in_run=True)
    except UsageError as error:
        log.info("instructions are timed by the host: %s", error)
        return None


def by_device(instructions: Sequence[InstructionTime], times: RunTimes) -> tuple[InstructionTime, ...]:
    """The instructions with the seconds of their launches; one with nothing to do, which is not launched, takes none.

    Both are in the order of the run.
    """
    launches = iter(times.launches)
    waiting = next(launches, None)
    found = []
    for entry in instructions:
        seconds = 0.0
        if waiting and (kernel_family(waiting.entry), waiting.source) == (entry.op, entry.node):
            seconds, waiting = waiting.seconds, next(launches, None)
        found.append(dataclasses.replace(entry, seconds=seconds))
    whole = sum(entry.seconds for entry in found) or 1.0
    return tuple(dataclasses.replace(entry, share=entry.seconds / whole) for entry in found)
