"""The sum of a run's launches beside the run, on a fake device whose clock is set."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from argosy.artifact.plan import StraightBlock
from argosy.runtime.gpu import timing
from argosy.runtime.session import Session
from benchmarks.gpu.sums import sums
from tests.runtime.gpu.fakes import artifact, faked, given, launch, numbers, plan, planned


def test_the_sum_of_launches_beside_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs to behind the first and second launch take 10 and 16 us, twenty of the first alone 140."""
    kind = "float32[4,8]"
    steps = (
        replace(launch("scale", [0], [1], [32, 3]), whole=True, operations={"float16": 10**9}),
        launch("scale", [1], [2], [32, 2]),
    )
    record = plan({"a": 0}, {"y": 2}, [given(kind), planned(kind), planned(kind)], [StraightBlock(steps)])
    told = {1: 10e-6, 2: 16e-6, 20: 140e-6}
    monkeypatch.setattr(timing, "_seconds", lambda _frame, bound, _replays: told[len(bound)])
    with faked("hip") as fake:
        found = sums(Session(artifact(record, fake.kind)), {"a": numbers(4, 8)})
    assert found.graph == 16e-6
    assert found.summed == pytest.approx(7e-6 + 6e-6)
    assert found.apart == pytest.approx(13 / 16 - 1)
    lines = "\n".join(found.lines())
    assert "graph 16.0  sum of launches 13.0 (-18.8%, bar 10%)  62.5 TFLOP/s" in lines
    least = 10**9 / 1307.4e12  # data sheet of MI300X
    assert f"roofline {least / 7e-6:.0%} of 54% of the time" in lines
