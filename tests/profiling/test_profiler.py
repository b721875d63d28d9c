"""`argosy.perf` as a function: counts, statistics, and that the slow op is found."""

from __future__ import annotations

import itertools
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.errors import ArtifactError, UsageError
from argosy.ops.matmul import Dot
from argosy.profiling import Times
from argosy.profiling.profiler import MAX_ITERATIONS
from tests.cli import models
from tests.profiling.trace_format import assert_is_trace


@pytest.fixture
def session(tmp_path: Path) -> argosy.Session:
    return argosy.Session(argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=["ref"]))


def test_statistics_are_numpys() -> None:
    seconds = np.random.default_rng(0).exponential(size=57).tolist()
    times = Times.of(seconds)
    assert times.count == 57
    assert (times.minimum, times.maximum) == (min(seconds), max(seconds))
    assert times.median == np.median(seconds)
    assert times.mean == pytest.approx(np.mean(seconds))
    assert times.deviation == pytest.approx(np.std(seconds))
    assert times.p90 == np.quantile(seconds, 0.9, method="inverted_cdf")
    assert times.p99 == np.quantile(seconds, 0.99, method="inverted_cdf")
    upper, lower = (np.quantile(seconds, share, method="inverted_cdf") for share in (0.75, 0.25))
    assert times.spread == pytest.approx((upper - lower) / np.median(seconds))
    assert times.throughput == pytest.approx(57 / np.sum(seconds))
    assert Times.of([2.0]).p99 == 2.0
    assert (Times.of([0.25, 0.25]).spread, Times.of([0.25, 0.25]).throughput) == (0.0, 4.0)


def test_counts(session: argosy.Session) -> None:
    report = argosy.perf(session, iterations=7, dims={"N": 3})
    assert report.times.count == report.observed == 7
    assert report.inputs == {"x": "float32[3, 4], generated, seed 0"}
    assert argosy.perf(session, dims={"N": 1}).times.count == MAX_ITERATIONS, "quick runs are all done"
    assert report.instruction_seconds == pytest.approx(sum(op.seconds for op in report.ops))
    with pytest.raises(UsageError, match="iterations is 0"):
        argosy.perf(session, iterations=0)


def test_the_slow_instruction_is_found(session: argosy.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Dot.evaluate

    def slow(self: Dot, *values: Any) -> tuple[Any, ...]:
        time.sleep(0.02)
        return quick(self, *values)

    monkeypatch.setattr(Dot, "evaluate", slow)
    report = argosy.perf(session, iterations=3, dims={"N": 2})
    assert report.ops[0].op == "dot"
    assert report.ops[0].seconds >= 0.02
    assert report.ops[0].share > 0.5
    assert report.times.minimum >= 0.02
    assert re.search(r" dot +mm$", str(report), re.MULTILINE)


def test_a_trace_has_every_execution_where_it_was(session: argosy.Session) -> None:
    clock = itertools.count().__next__
    report = argosy.perf(session, iterations=4, dims={"N": 2}, clock=lambda: float(clock()))
    trace = json.loads(json.dumps(report.to_trace()))
    assert_is_trace(trace)
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    runs = [event for event in complete if event["cat"] == "run"]
    parts = [event for event in complete if event["cat"] != "run"]
    assert [event["name"] for event in runs] == ["run 1", "run 2", "run 3", "run 4"]
    assert [event["name"] for event in parts] == ["mm", "Relu (node 1 → 'r')", "sm"] * 4
    assert {event["dur"] for event in parts} == {1e6}, "a second of this clock each, in microseconds"
    for run in runs:
        inside = [event for event in parts if run["ts"] <= event["ts"] < run["ts"] + run["dur"]]
        assert [event["args"]["run"] for event in inside] == [int(run["name"][4:])] * 3
    assert "spans" not in report.to_json()


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_a_trace_of_real_runs_keeps_to_the_format(tmp_path: Path, target: str) -> None:
    compiled = argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=[target])
    report = argosy.perf(compiled, iterations=5, dims={"N": 8})
    trace = report.to_trace()
    assert_is_trace(trace)
    runs = [event for event in trace["traceEvents"] if event.get("cat") == "run"]
    assert len(runs) == 5
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == 5 + 5 * len(report.instructions)


def test_what_is_no_trace_is_refused_by_the_check() -> None:
    named = [
        {"name": name, "ph": "M", "pid": 1, "tid": 1, "args": {"name": "n"}} for name in ("process_name", "thread_name")
    ]
    event = {"name": "a", "cat": "c", "ph": "X", "ts": 1.0, "dur": 2.0, "pid": 1, "tid": 1}
    assert_is_trace({"traceEvents": [*named, event, event | {"ts": 3.0}], "displayTimeUnit": "ms"})
    for bad in (
        [event],
        [*named, event, event | {"ts": 2.5}],
        [*named, event | {"dur": -1.0}],
        [*named, event | {"ts": float("nan")}],
        [*named, event | {"tid": 2}],
        [*named, {key: value for key, value in event.items() if key != "dur"}],
        [*named, event | {"ph": "B"}],
    ):
        with pytest.raises((AssertionError, KeyError, ValueError)):
            assert_is_trace({"traceEvents": bad, "displayTimeUnit": "ms"})


def test_the_program_is_not_decoded_for_its_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variant may need fewer weights than the program, and only those be supplied."""
    compiled = argosy.Session(argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=["cpu"]))

    def missing(_: argosy.Artifact) -> Any:
        raise ArtifactError("the weight is omitted and not in the weights supplied")

    monkeypatch.setattr(argosy.Artifact, "program", missing)
    assert argosy.perf(compiled, iterations=1, dims={"N": 3}).operations == 2 * 3 * 4 * 300
