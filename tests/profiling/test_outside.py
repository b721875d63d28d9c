"""What `argosy.perf` says of a run beside its kernels, with bytes counted by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.artifact.plan import StraightBlock
from argosy.ir.formula import Formula
from argosy.ir.interpreter import Watcher
from argosy.ir.module import Instruction
from argosy.ops.pointwise import Pointwise
from argosy.profiling import perf
from argosy.runtime.session import Session
from tests.cli import models
from tests.runtime.gpu.fakes import KINDS, Fake, artifact, faked, given, launch, numbers, plan, planned
from tests.runtime.kernels import evaluate
from tests.targets import mirror


@pytest.fixture(params=KINDS)
def fake(request: pytest.FixtureRequest) -> Iterator[Fake]:
    with faked(request.param) as made:
        yield made


def test_copies_and_host_steps_on_a_device(fake: Fake) -> None:
    record = plan(
        {"a": 0}, {"y": 3, "square": 2}, [given("float32[100]"), *[planned("float32[100]")] * 3],
        [StraightBlock((
            launch("scale", [0], [1], [100, 2]),
            evaluate(Pointwise(Formula.of("mul")), (1, 1), (2,)),
            launch("add", [1, 2], [3], [100]),
        ))],
    )  # fmt: skip
    report = perf(Session(artifact(record, fake.kind)), inputs={"a": numbers(100)}, iterations=3)
    found = report.outside
    assert found is not None
    assert found.host_steps == 1
    scale, square, add = report.instructions
    assert [entry.is_kernel for entry in report.instructions] == [True, False, True]
    assert found.host_seconds == square.seconds
    assert found.seconds == pytest.approx(report.times.median - scale.seconds - add.seconds)
    assert found.copied_in == 400 + 400, "the input, and what the host computes"
    assert found.copied_out == 2 * 400 + 2 * 400, "the operands of the host, and both results"
    assert "1 host steps" in str(report)
    assert "copied in 800 B, out 1.6 KiB" in str(report)
    assert report.to_json()["outside"]["copied_out"] == 1600


def test_a_run_of_launches_alone_is_timed_beside_them_by_the_device(fake: Fake) -> None:
    kind = "float32[4,8]"
    record = plan(
        {"a": 0}, {"y": 1}, [given(kind), planned(kind)], [StraightBlock((launch("scale", [0], [1], [32, 3]),))]
    )
    report = perf(Session(artifact(record, fake.kind)), inputs={"a": numbers(4, 8)}, iterations=3)
    assert report.outside is not None
    assert report.outside.seconds == pytest.approx(report.times.median - 2e-6), "the fake device's clock"
    assert (report.outside.copied_in, report.outside.copied_out, report.outside.host_steps) == (128, 128, 0)
    assert "launches 0.002 ms as one graph" in str(report)


@pytest.mark.parametrize(("size", "inwards"), [(64, 64 * 16), (512, 0)])
def test_on_a_cpu_short_inputs_and_results_are_copied(tmp_path: Path, size: int, inwards: int) -> None:
    compiled = argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=["cpu"])
    found = perf(compiled, iterations=2, dims={"N": size}).outside
    assert found is not None
    assert (found.copied_in, found.copied_out) == (inwards, size * 300 * 4)
    assert found.host_steps == 0


def test_host_steps_are_counted_and_ref_has_no_kernels(tmp_path: Path) -> None:
    model = models.classifier(tmp_path / "model.onnx")
    report = perf(argosy.compile(model, targets=[mirror.MirrorTarget()]), iterations=2, dims={"N": 2})
    assert report.outside is not None
    assert report.outside.host_steps == 3
    assert report.outside.host_seconds == pytest.approx(report.instruction_seconds)
    assert report.outside.seconds == report.times.median
    assert perf(argosy.compile(model, targets=["ref"]), iterations=1, dims={"N": 2}).outside is None


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_each_instruction_begins_before_it_ends(tmp_path: Path, target: str) -> None:
    told: list[tuple[str, Instruction]] = []

    class Order(Watcher):
        def begins(self, instruction: Instruction) -> None:
            told.append(("begins", instruction))

        def __call__(self, instruction: Instruction, results: Sequence[Any]) -> None:
            told.append(("ends", instruction))

    session = Session(argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=[target]))
    session.observe({"x": np.ones((3, 4), np.float32)}, Order())
    assert len(told) >= 4
    for (first, begun), (second, ended) in zip(told[::2], told[1::2], strict=True):
        assert (first, second) == ("begins", "ends")
        assert begun is ended
