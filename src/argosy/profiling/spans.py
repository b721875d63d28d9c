"""When instructions ran, and that as a trace for viewers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.profiling.instructions import InstructionTime

__all__ = ["Span", "trace"]

_PROCESS: Final = 1
_RUNS: Final = 1
_INSTRUCTIONS: Final = 2
_LAUNCHES: Final = 3
_MICROSECONDS: Final = 1e6


@dataclass(frozen=True, slots=True)
class Span:
    """One execution of an instruction in observed run number `run`, from 0: begin and end since the first began."""

    node: str
    op: str
    type: str
    run: int
    begin: float
    end: float


def trace(title: str, spans: Sequence[Span], launches: Sequence[InstructionTime] = ()) -> dict[str, Any]:
    """Spans in the Trace Event Format's JSON Object Format: a track of runs, a track of instructions below.

    `launches`, timed by a device's clock, are on a track of their own, one after the other as in one run.

    Source of the form: "Trace Event Format" of the Chromium project. Complete events (`ph` X) have their begin and
    duration in microseconds, metadata events (`ph` M) name process and tracks.
    """
    events: list[dict[str, Any]] = [
        _named("process_name", 0, f"argosy perf: {title}"),
        _named("thread_name", _RUNS, "runs"),
        _named("thread_name", _INSTRUCTIONS, "instructions"),
    ]
    runs: dict[int, list[Span]] = {}
    for span in spans:
        runs.setdefault(span.run, []).append(span)
    for number, inside in runs.items():
        begin, end = inside[0].begin, max(span.end for span in inside)
        events.append(_complete(f"run {number + 1}", "run", _RUNS, begin, end, {}))
        events += [
            _complete(
                span.node or span.op,
                span.op,
                _INSTRUCTIONS,
                span.begin,
                span.end,
                {"op": span.op, "type": span.type, "run": number + 1},
            )
            for span in inside
        ]
    if launches:
        events += [_named("thread_name", _LAUNCHES, "launches of one run, by the device's clock"), *_in_a_row(launches)]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _in_a_row(launches: Sequence[InstructionTime]) -> list[dict[str, Any]]:
    """Each launch behind the one in front of it, with how fast it is; those that took no time are left out."""
    events, begin = [], 0.0
    for entry in launches:
        if entry.seconds:
            rates = {name: rate for name, rate in entry.rates.items() if rate is not None}
            told = {"op": entry.op, "type": entry.type, **rates}
            end = begin + entry.seconds
            events.append(_complete(entry.node or entry.op, entry.op, _LAUNCHES, begin, end, told))
            begin = end
    return events


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "ts": 0, "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _complete(
    name: str, category: str, track: int, begin: float, end: float, arguments: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": begin * _MICROSECONDS,
        "dur": (end - begin) * _MICROSECONDS,
        "pid": _PROCESS,
        "tid": track,
        "args": arguments,
    }
