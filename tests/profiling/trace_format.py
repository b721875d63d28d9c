"""What a trace must be for viewers to open it and show what is meant."""

from __future__ import annotations

import json
import math
from typing import Any, Final

__all__ = ["assert_is_trace"]

_TOP: Final = {"traceEvents", "displayTimeUnit", "systemTraceEvents", "otherData", "stackFrames", "samples"}
"""Keys of the JSON Object Format; viewers take others for metadata."""
_REQUIRED: Final = {"X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"}, "M": {"name", "ph", "pid", "args"}}
_ALLOWED: Final = {"X": _REQUIRED["X"] | {"args", "tts", "tdur", "cname", "sf"}, "M": _REQUIRED["M"] | {"ts", "tid"}}
_METADATA: Final = {"process_name", "thread_name"}


def assert_is_trace(trace: Any) -> None:
    """What the document "Trace Event Format" of the Chromium project asks of complete and metadata events.

    Beyond it: each track has one name, its events are in order and none begins before the one in front has ended, so
    that no viewer nests them.
    """
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace, "numbers that JSON has, and keys that are texts"
    assert trace.keys() <= _TOP
    assert trace["displayTimeUnit"] in ("ms", "ns")
    names: dict[tuple[int, int], str] = {}
    processes: set[int] = set()
    ends: dict[tuple[int, int], float] = {}
    for event in trace["traceEvents"]:
        phase = event["ph"]
        assert _REQUIRED[phase] <= event.keys() <= _ALLOWED[phase]
        assert isinstance(event["name"], str)
        assert event["name"]
        assert type(event["pid"]) is int
        if phase == "M":
            assert event["name"] in _METADATA
            assert event["args"].keys() == {"name"}
            assert isinstance(event["args"]["name"], str)
            track = event["pid"], event["tid"]
            if event["name"] == "thread_name":
                assert track not in names, "a track has one name"
                names[track] = event["args"]["name"]
            else:
                processes.add(event["pid"])
            continue
        track = event["pid"], event["tid"]
        assert track in names, "the name of a track comes first"
        assert event["pid"] in processes
        assert isinstance(event["cat"], str)
        assert isinstance(event.get("args", {}), dict)
        for key in ("ts", "dur"):
            assert isinstance(event[key], int | float)
            assert not isinstance(event[key], bool)
            assert math.isfinite(event[key])
            assert event[key] >= 0
        slack = 1e-9 * event["ts"]  # a begin and a duration are rounded each
        assert event["ts"] >= ends.get(track, 0.0) - slack, "events of one track are in order, and don't overlap"
        ends[track] = event["ts"] + event["dur"]
    assert len(set(names.values())) == len(names)
