"""`argosy.perf(compare=["torch=FILE"])`, against a package of torch's shape, and torch itself where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from msgspec.structs import replace

import argosy
from argosy.artifact.plan import StraightBlock
from argosy.errors import ArgosyError, EnvironmentError_, UsageError
from argosy.ir.types import TensorType, Type
from argosy.profiling import perf
from argosy.profiling.peers import make_peer
from argosy.runtime.session import Session
from tests.cli import models
from tests.profiling.stub_torch import StubTorch
from tests.runtime.gpu.fakes import artifact, faked, given, launch, numbers, plan, planned


@pytest.fixture
def session(tmp_path: Path) -> argosy.Session:
    return argosy.Session(argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=["ref"]))


def written(folder: Path, *names: str) -> Path:
    """Files of these names, whose content only torch would read."""
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def classify(x: Any) -> Any:
    return models.classify(x).astype(np.float32)


def other(x: Any) -> Any:
    return (models.classify(x, seed=7).astype(np.float32),)


@pytest.mark.parametrize("suffix", ["pt2", "pt"])
def test_it_runs_in_turn_and_its_outputs_are_compared(session: argosy.Session, tmp_path: Path, suffix: str) -> None:
    good, bad = f"good.{suffix}", f"bad.{suffix}"
    folder = written(tmp_path, good, bad)
    with StubTorch({good: classify, bad: other}).installed() as torch:
        report = perf(session, iterations=2, dims={"N": 3}, compare=[f"torch={folder / name}" for name in (good, bad)])
    same, wrong = report.compared
    assert same.name == wrong.name == "torch 9.9, CPU"
    assert not same.differs
    assert wrong.differs.startswith("y: ")
    assert {"no gradients", f"{session.threads} threads"} == set(torch.told), "nothing to wait for on a CPU"


def test_on_a_gpu_it_runs_there_and_is_waited_for(tmp_path: Path) -> None:
    kind = "float32[4,8]"
    step = launch("scale", [0], [1], [32, 3])
    record = plan({"a": 0}, {"y": 1}, [given(kind), planned(kind)], [StraightBlock((step,))])
    folder = written(tmp_path, "m.pt2")
    compare = [f"torch={folder / 'm.pt2'}"]
    with faked("cuda") as fake:
        gpu = Session(artifact(replace(record), fake.kind), device="cuda:0")
        with StubTorch({"m.pt2": lambda a: a * np.float32(3)}, gpus=1).installed() as torch:
            (found,) = perf(gpu, inputs={"a": numbers(4, 8)}, iterations=2, compare=compare).compared
        assert found.name == "torch 9.9, GPU cuda:0"
        assert not found.differs
        assert "waited for cuda:0" in torch.told
        with StubTorch({"m.pt2": lambda a: a}).installed(), pytest.raises(EnvironmentError_, match="sees no GPU"):
            perf(gpu, inputs={"a": numbers(4, 8)}, iterations=1, compare=compare)


def _refusal(session: argosy.Session, file: Path, **files: Callable[..., Any]) -> ArgosyError:
    stub = StubTorch({name.replace("_", "."): function for name, function in files.items()})
    with stub.installed(), pytest.raises(ArgosyError) as caught:
        perf(session, iterations=1, dims={"N": 1}, compare=[f"torch={file}"])
    return caught.value


def test_what_it_cannot_run_is_told(session: argosy.Session, tmp_path: Path) -> None:
    folder = written(tmp_path, "m.pt2", "m.pt")
    refusal = _refusal(session, folder / "model.onnx")
    assert isinstance(refusal, UsageError)
    assert "an exported program (.pt2) or TorchScript (.pt)" in refusal.what
    assert "torch.export.save" in (refusal.hint or "")
    assert "no such file" in _refusal(session, folder / "absent.pt2").what
    unread = _refusal(session, folder / "m.pt")
    assert isinstance(unread, EnvironmentError_)
    assert unread.what == "PyTorch can't run the model: PytorchStreamReader failed"
    for name in ("m_pt2", "m_pt"):
        file = folder / name.replace("_", ".")
        refusal = _refusal(session, file, **{name: lambda x, mask: x + mask})
        assert (refusal.what, refusal.where) == ("it takes 2 inputs, expected 1: x", str(file))
        refusal = _refusal(session, file, **{name: lambda x: {"y": x, "z": x}})
        assert refusal.what == "it gives 2 outputs, expected 1: y"


def test_it_must_be_installed(session: argosy.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(EnvironmentError_, match="the package 'torch' is not installed"):
        perf(session, iterations=1, dims={"N": 1}, compare=[f"torch={written(tmp_path, 'm.pt2') / 'm.pt2'}"])


def test_short_floats_go_in_and_out(tmp_path: Path) -> None:
    """The outputs are in the types of the model, the precision is that of the file's parameters."""
    file = written(tmp_path, "m.pt") / "m.pt"
    x = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    outputs: dict[str, Type] = {
        name: TensorType(argosy.ir.dtype(kind), (2,)) for name, kind in (("y", "bfloat16"), ("z", "float32"))
    }
    stub = StubTorch({"m.pt": lambda x: (x * x.dtype.type(2), x)}, kinds=(np.dtype(np.float16),))
    with stub.installed():
        peer = make_peer(f"torch={file}", {"x": x}, outputs, threads=1)
        found = peer.results()
    assert peer.precision == "fp16"
    assert [value.dtype for value in found.values()] == [x.dtype, np.float32]
    np.testing.assert_array_equal(found["y"].astype(np.float32), [3, -4])
    np.testing.assert_array_equal(found["z"], [1.5, -2])


@pytest.mark.parametrize("suffix", ["pt2", "pt"])
def test_torch_itself(session: argosy.Session, tmp_path: Path, suffix: str) -> None:
    torch = pytest.importorskip("torch")
    base: Any = torch.nn.Module

    class Classifier(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.matrix = torch.nn.Parameter(torch.tensor(models.weights()))

        def forward(self, x: Any) -> Any:
            return torch.softmax(torch.relu(x @ self.matrix), -1)

    file, x = tmp_path / f"model.{suffix}", torch.zeros(3, 4)
    if suffix == "pt2":
        torch.export.save(torch.export.export(Classifier(), (x,)), str(file))
    else:
        torch.jit.save(torch.jit.trace(Classifier(), x), str(file))
    (found,) = perf(session, iterations=2, dims={"N": 3}, compare=[f"torch={file}"]).compared
    assert found.name.startswith(f"torch {torch.__version__}")
    assert not found.differs
