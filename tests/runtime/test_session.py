"""Sessions: what they take and refuse, what they choose, and that threads may share them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.errors import ArtifactError, DeviceError, UsageError
from argosy.ir import Builder, Program, TensorType, dtype
from argosy.ops.matmul import Dot
from argosy.ops.slicing import Slice
from tests.targets.mirror import MirrorTarget

RNG = np.random.default_rng(7)
WEIGHT = RNG.standard_normal((8, 600)).astype(np.float32)
BIAS = RNG.standard_normal(600).astype(np.float32)


def program() -> Program:
    """y = tanh(x @ w) + 2*b, z = the product before: two outputs, a weight that a prepare module doubles."""
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 8])
    product = b.add(Dot(), x, b.constant(WEIGHT, name="w"))
    doubled = b.pointwise(lambda v: v * 2.0, b.constant(np.tile(BIAS, (600, 1)), name="b"))
    row = b.pointwise(lambda p, d: p.tanh() + d, product, b.add(Slice((0,), (1,), (0,), (1,)), doubled))
    return Program(b.module({"y": row, "z": product}))


def expected(x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    product = x @ WEIGHT
    return {"y": np.tanh(product) + 2 * BIAS, "z": product}


def feed(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((n, 8)).astype(np.float32)


@pytest.fixture(params=["ref", "mirror"])
def artifact(request: pytest.FixtureRequest, tmp_path: Path) -> argosy.Artifact:
    target: Any = "ref" if request.param == "ref" else MirrorTarget()
    path = tmp_path / "model.argosy"
    argosy.compile(program(), targets=[target]).save(path)
    return argosy.Artifact.open(path)


@pytest.mark.parametrize("n", [1, 5])
def test_one_artifact_runs_every_size(artifact: argosy.Artifact, n: int) -> None:
    x = feed(n)
    found = argosy.Session(artifact).run({"x": x})
    assert list(found) == ["y", "z"]
    for name, value in expected(x).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
        assert found[name].dtype == np.float32


def test_a_session_says_what_it_takes_and_gives(artifact: argosy.Artifact) -> None:
    session = argosy.Session(artifact)
    assert {name: str(kind) for name, kind in session.inputs.items()} == {"x": "float32[N, 8]"}
    assert {name: str(kind) for name, kind in session.outputs.items()} == {
        "y": "float32[N, 600]",
        "z": "float32[N, 600]",
    }
    assert session.variant in session.why


def test_outputs_may_be_chosen(artifact: argosy.Artifact) -> None:
    assert list(argosy.Session(artifact).run({"x": feed(1)}, ["z"])) == ["z"]
    with pytest.raises(UsageError, match="no output 'w'"):
        argosy.Session(artifact).run({"x": feed(1)}, ["w"])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input 'x' is missing"),
        ({"x": feed(1), "y": 1}, "no input 'y'"),
        ({"X": feed(1)}, "did you mean 'x'"),
        ({"x": feed(1).astype(np.float64)}, r"input 'x': expected float32\[N, 8\], found float64\[1, 8\]"),
        ({"x": np.zeros((1, 9), np.float32)}, r"expected float32\[N, 8\], found float32\[1, 9\]"),
        ({"x": np.zeros(8, np.float32)}, r"found float32\[8\]"),
        ({"x": None}, "found None"),
        ({"x": "text"}, r"expected float32\[N, 8\], found str"),
        ({"x": np.array([object()])}, "found an array of objects that"),
        ([1, 2], "expected a mapping"),
    ],
)
def test_wrong_inputs_are_told_what_was_expected(artifact: argosy.Artifact, inputs: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        argosy.Session(artifact).run(inputs)


def test_lists_and_other_array_types_are_taken(artifact: argosy.Artifact) -> None:
    x = feed(2)
    session = argosy.Session(artifact)
    plain = session.run({"x": x})["z"]
    assert np.array_equal(session.run({"x": x.tolist()})["z"], plain)
    assert np.array_equal(session.run({"x": np.asfortranarray(x)})["z"], plain)


def test_results_belong_to_the_caller() -> None:
    b = Builder()
    x = b.parameter("x", TensorType(dtype("float32"), (2,)))
    session = argosy.Session(
        argosy.compile(Program(b.module({"same": x, "c": b.constant(np.ones(2, np.float32))})), targets=["ref"])
    )
    given = np.zeros(2, np.float32)
    first = session.run({"x": given})
    first["same"][:] = 5
    first["c"][:] = 5
    assert given.tolist() == [0, 0]
    assert session.run({"x": given})["c"].tolist() == [1, 1]


def test_a_plan_prepares_weights_once(tmp_path: Path) -> None:
    artifact = argosy.compile(program(), targets=[MirrorTarget()])
    plan = artifact.plan(artifact.variants[0].key)
    assert sum(buffer.kind == "prepared" for buffer in plan.buffers) >= 1
    counted: list[str] = []
    session = argosy.Session(artifact)
    session.observe({"x": feed(1)}, lambda instruction, _: counted.append(instruction.op.name))
    assert "slice" not in counted


def test_slim_keeps_prepared_weights_only(tmp_path: Path) -> None:
    argosy.compile(program(), targets=[MirrorTarget()]).save(tmp_path / "full.argosy")
    argosy.compile(program(), targets=[MirrorTarget()], slim=True).save(tmp_path / "slim.argosy")
    x = feed(3)
    found = argosy.Session(tmp_path / "slim.argosy").run({"x": x})
    np.testing.assert_allclose(found["y"], expected(x)["y"], rtol=1e-5, atol=1e-5)
    assert (tmp_path / "slim.argosy").stat().st_size < (tmp_path / "full.argosy").stat().st_size - 1_000_000
    with pytest.raises(ArtifactError, match="slim"):
        argosy.Artifact.open(tmp_path / "slim.argosy").program()
    with pytest.raises(DeviceError, match="slim"):
        argosy.Session(tmp_path / "slim.argosy", native_code=False)


def test_slim_needs_a_variant() -> None:
    with pytest.raises(UsageError, match="slim"):
        argosy.compile(program(), targets=["ref"], slim=True)


@pytest.mark.parametrize("storage", ["omit", "model.weights"])
def test_weights_may_lie_elsewhere(tmp_path: Path, storage: str) -> None:
    path = tmp_path / "m.argosy"
    artifact = argosy.compile(program(), targets=["ref"], weights=storage)
    artifact.save(path)
    x = feed(1)
    if storage == "omit":
        with pytest.raises(ArtifactError, match="omitted"):
            argosy.Session(path).run({"x": x})
        hashes = argosy.Artifact.open(path).manifest.weights
        supply = {
            digest: WEIGHT if weight.dims == WEIGHT.shape else np.tile(BIAS, (600, 1))
            for digest, weight in hashes.items()
        }
        session = argosy.Session(path, weights=supply)
        wrong = dict.fromkeys(hashes, np.zeros((8, 600), np.float32))
        with pytest.raises(ArtifactError, match="hash|bytes"):
            argosy.Session(path, weights=wrong).run({"x": x})
    else:
        assert (tmp_path / storage).stat().st_size > WEIGHT.nbytes
        session = argosy.Session(path)
    np.testing.assert_allclose(session.run({"x": x})["z"], expected(x)["z"], rtol=1e-5, atol=1e-5)


def test_selection_tells_every_reason(tmp_path: Path) -> None:
    artifact = argosy.compile(program(), targets=[MirrorTarget(1), MirrorTarget(2)])
    session = argosy.Session(artifact)
    assert session.variant == "mirror1, fp32"
    assert len(session.why.splitlines()) == 3
    assert argosy.Session(artifact, device="ref").variant == "ref"
    assert argosy.Session(artifact, native_code=False).variant == "ref"
    with pytest.raises(DeviceError, match="no variant runs here"):
        argosy.Session(artifact, device="cuda:0")
    with pytest.raises(DeviceError, match="compile for what is emulated: --arch gfx942"):
        argosy.Session(artifact, device="emulated:gfx942")
    with pytest.raises(DeviceError, match="no device 'tpu:0'"):
        argosy.Session(artifact, device="tpu:0")


def test_specialised_variants_are_chosen_by_size() -> None:
    artifact = argosy.compile(program(), targets=[MirrorTarget(1), MirrorTarget(2, (("N", 4),))])
    session = argosy.Session(artifact)
    for n in (4, 3):
        x = feed(n)
        found = session.run({"x": x})
        np.testing.assert_allclose(found["z"], expected(x)["z"], rtol=1e-5, atol=1e-5)
    assert len(session._loaded) == 2


def test_sixteen_threads_get_the_same_bits_and_nothing_grows(artifact: argosy.Artifact) -> None:
    session = argosy.Session(artifact)
    inputs = [{"x": feed(1 + index % 3, index)} for index in range(16)]
    wanted = [session.run(entry)["y"].tobytes() for entry in inputs]
    faults: list[str] = []

    def work(index: int) -> None:
        found = (session.run(inputs[index])["y"].tobytes() for _ in range(200))
        faults.extend(f"thread {index}" for value in found if value != wanted[index])

    def all_threads() -> None:
        threads = [threading.Thread(target=work, args=(index,)) for index in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    tracemalloc.start()
    all_threads()
    before = tracemalloc.get_traced_memory()[0]
    all_threads()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert not faults
    assert after - before < 64 * 1024


def test_concurrency_is_bounded() -> None:
    session = argosy.Session(argosy.compile(program(), targets=["ref"]), max_concurrency=1)
    busy: list[int] = []
    overlaps: list[int] = []

    def work(index: int) -> None:
        def observe(instruction: Any, results: Any) -> None:
            del results
            if instruction.op.name == "dot":
                overlaps.extend(busy)
                busy.append(index)
                time.sleep(0.01)
            if instruction.op.name == "pointwise" and index in busy:
                busy.remove(index)

        session.observe({"x": feed(2)}, observe)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not overlaps
    with pytest.raises(UsageError, match="max_concurrency"):
        argosy.Session(argosy.compile(program(), targets=["ref"]), max_concurrency=0)


def test_a_run_may_go_on_in_the_background() -> None:
    session = argosy.Session(argosy.compile(program(), targets=["ref"]))
    futures = [session.run_async({"x": feed(2)}) for _ in range(4)]
    assert all(future.result()["z"].shape == (2, 600) for future in futures)
    with pytest.raises(DeviceError, match="no streams"):
        session.run_async({"x": feed(2)}, stream=1)


def test_running_needs_neither_onnx_nor_the_compiler(artifact: argosy.Artifact, tmp_path: Path) -> None:
    argosy.compile(program(), targets=["ref"]).save(tmp_path / "m.argosy")
    code = (
        "import sys, numpy as np, argosy\n"
        f"y = argosy.Session({str(tmp_path / 'm.argosy')!r}).run({{'x': np.zeros((2, 8), np.float32)}})['y']\n"
        "assert y.shape == (2, 600)\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('onnx', 'triton') or m.startswith(\n"
        "    ('argosy.compiler', 'argosy.passes', 'argosy.frontends', 'argosy.targets', 'argosy.rewrite'))]\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
