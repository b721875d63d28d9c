"""`argosy.perf` as a function: counts, statistics, and that the slow op is found."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.errors import UsageError
from argosy.ops.matmul import Dot
from argosy.profiling import Times
from argosy.profiling.profiler import MAX_ITERATIONS
from tests.cli import models


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
    assert Times.of([2.0]).p99 == 2.0


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
    assert "dot  mm" in str(report)
