"""When instructions ran, and that as a trace for viewers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Span", "trace"]

_PROCESS: Final = 1
_RUNS: Final = 1
_INSTRUCTIONS: Final = 2
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


def trace(title: str, spans: Sequence[Span]) -> dict[str, Any]:
    """Spans in the Trace Event Format's JSON Object Format: a track of runs, a track of instructions below.

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
    return {"traceEvents": events, "displayTimeUnit": "ms"}


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
