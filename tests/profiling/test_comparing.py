"""`argosy.perf(compare=...)`: that runs take turns, what the ratios are of, and who is told to differ."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.errors import EnvironmentError_, UsageError
from argosy.profiling.peers import READ_ONNX, make_peer
from argosy.profiling.profiler import _rounds
from tests.cli import models


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.classifier(tmp_path / "model.onnx")


@pytest.fixture
def session(model: Path) -> argosy.Session:
    return argosy.Session(argosy.compile(model, targets=["ref"]))


class Slow(argosy.Session):
    """A session whose runs take at least ten milliseconds."""

    def run(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        time.sleep(0.01)
        return super().run(*arguments, **more)


def test_runs_take_turns_and_another_begins_each_round() -> None:
    told = ""

    def contender(name: str) -> Callable[[], None]:
        def run() -> None:
            nonlocal told
            told += name

        return run

    times = _rounds([contender(name) for name in "ABC"], 4, lambda: float(len(told)))
    assert told == "AABBCCBBCCAACCAABBAABBCC", "once untimed, once timed"
    assert times == ([1.0] * 4, [1.0] * 4, [1.0] * 4)
    told = ""
    assert _rounds([contender("A")], 3, lambda: 0.0) == ([0.0] * 3,)
    assert told == "AAA"


def test_the_ratio_is_that_of_the_medians(session: argosy.Session, model: Path) -> None:
    slow = Slow(argosy.compile(model, targets=["ref"]))
    report = argosy.perf(session, iterations=5, dims={"N": 2}, compare=[slow])
    (entry,) = report.compared
    assert report.times.count == entry.times.count == 5
    assert entry.times.minimum >= 0.01
    assert entry.ratio == pytest.approx(entry.times.median / report.times.median)
    assert entry.ratio > 1, "above 1, ours is faster"
    assert not entry.differs
    assert f"{entry.ratio:6.2f} x" in str(report)
    assert report.to_json()["compared"][0]["ratio"] == entry.ratio
    assert not argosy.perf(session, iterations=1, dims={"N": 2}).compared


@pytest.mark.parametrize("peer", sorted(READ_ONNX))
def test_peers_agree_with_the_model_and_differ_from_another(
    session: argosy.Session, model: Path, tmp_path: Path, peer: str
) -> None:
    pytest.importorskip(peer)
    other = models.classifier(tmp_path / "other.onnx", seed=7)
    report = argosy.perf(session, iterations=2, dims={"N": 3}, compare=[f"{peer}={model}", f"{peer}={other}"])
    same, wrong = report.compared
    assert same.name.startswith(peer)
    assert not same.differs
    assert wrong.differs.startswith("y: ")
    assert "outputs differ: y: " in str(report)
    x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    found = make_peer(f"{peer}={model}", {"x": x}, threads=1, outputs=session.outputs).results()
    np.testing.assert_allclose(found["y"], models.classify(x), rtol=1e-4, atol=1e-6)


def test_artifacts_by_path_and_as_objects(session: argosy.Session, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.argosy"
    argosy.compile(models.classifier(tmp_path / "other.onnx", seed=7), targets=["ref"]).save(path)
    same = argosy.compile(model, targets=["ref"])
    by_path, held = argosy.perf(session, iterations=2, dims={"N": 3}, compare=[path, same]).compared
    assert by_path.name == f"{path}: ref"
    assert by_path.differs.startswith("y: ")
    assert not held.differs


@pytest.mark.parametrize(
    ("rival", "hint"),
    [
        ("onnxruntim", "did you mean 'onnxruntime'?"),
        ("absent.argosy", "name an artifact, or one of onnxruntime, openvino, torch"),
        ("onnxruntime", "name it: onnxruntime=model.onnx"),
        ("torch", "name it: torch=model.pt2"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_hint(session: argosy.Session, rival: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        argosy.perf(session, iterations=1, dims={"N": 1}, compare=[rival])
    assert hint in (caught.value.hint or "")


def test_another_interface_and_another_file_are_refused(session: argosy.Session, tmp_path: Path) -> None:
    other = argosy.compile(models.classifier(tmp_path / "other.onnx", output="z"), targets=["ref"])
    with pytest.raises(UsageError, match="its outputs are z, expected y"):
        argosy.perf(session, iterations=1, dims={"N": 1}, compare=[other])
    pytest.importorskip("onnxruntime")
    with pytest.raises(EnvironmentError_, match="ONNX Runtime can't run the model"):
        argosy.perf(session, iterations=1, dims={"N": 1}, compare=[f"onnxruntime={tmp_path / 'absent.onnx'}"])


def test_a_file_that_takes_other_sizes_is_named(session: argosy.Session, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "bound.argosy"
    argosy.compile(model, targets=["ref"], dims={"N": 7}).save(path)
    with pytest.raises(UsageError, match=re.escape(f"{path}: input 'x'")):
        argosy.perf(session, dims={"N": 2}, iterations=1, compare=[path])


def test_code_of_a_shorter_precision_agrees_by_the_rule_for_it(session: argosy.Session, model: Path) -> None:
    class Rounded(argosy.Session):
        def run(self, *arguments: Any, **more: Any) -> dict[str, Any]:
            return {"y": super().run(*arguments, **more)["y"] * np.float32(1.005)}

    told = []
    for precision, device in (("fp32", "cpu"), ("fp16", "cpu"), ("fp16", "ref")):
        rounded = Rounded(argosy.compile(model, targets=["cpu"], precision=precision), device=device)
        told.append(argosy.perf(session, iterations=1, dims={"N": 2}, compare=[rounded]).compared[0].differs)
    assert told[0].startswith("y: ")
    assert not told[1]
    assert told[2] == told[0], "ref computes in float32, whatever the code beside it does"
