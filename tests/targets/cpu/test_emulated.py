"""Code for aarch64, run under an emulator: cases of ONNX's suite agree, and so does a whole model."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tests.conformance.baseline import read
from tests.conformance.cases import find_case
from tests.conformance.judge import judge
from tests.models import real_models
from tests.targets.cpu.emulator.machine import EMULATOR, EmulatedCode, EmulatedRunner, Machine
from tests.targets.cpu.test_quantized_dot import matmul_n_bits

pytestmark = pytest.mark.skipif(EMULATOR is None, reason="qemu-aarch64 (Debian: qemu-user) is not installed")

CASES = [name for name in read("cpu") if name.startswith("node/") and zlib.crc32(name.encode()) % 8 == 0]
LEVELS = ("neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1")


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.close()


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 200


@pytest.mark.parametrize("name", CASES)
def test_cases_agree(machine: Machine, name: str) -> None:
    case = find_case(name)
    if case is None:
        pytest.skip(f"onnx {onnx.__version__} has no such case")
    level = LEVELS[zlib.crc32(name.encode()) // 8 % len(LEVELS)]
    assert judge(case, EmulatedRunner(machine, level)).reason == ""


@pytest.mark.models
@pytest.mark.parametrize("level", ["neoverse-n1", "neoverse-v2"])
def test_a_whole_model_agrees(machine: Machine, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = real_models.path("magika-model")
    feeds = real_models.feeds("magika-model")
    made: list[EmulatedCode] = []
    remember = EmulatedCode.__init__

    def note(self: EmulatedCode, *arguments: object) -> None:
        remember(self, *arguments)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(EmulatedCode, "__init__", note)
    found = EmulatedRunner(machine, level).prepare(onnx.load(path))(feeds)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    for name, expected in zip(found, session.run(None, feeds), strict=True):
        assert np.abs(found[name] - expected).max() <= 1e-3 * np.abs(expected).max()
    assert made[0].calls > 0  # it did run there


@pytest.mark.parametrize("level", ["neoverse-n1", "neoverse-v1"])
@pytest.mark.parametrize("left", ["uint8", "int8"])
@pytest.mark.parametrize("right", ["uint8", "int8"])
def test_products_of_bytes(machine: Machine, level: str, left: str, right: str) -> None:
    """By the instructions for four products at a time, for signs that a level has an instruction for and others."""
    random = np.random.default_rng(3)
    a, b = (
        random.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, endpoint=True).astype(kind)
        for kind, shape in ((left, (19, 45)), (right, (45, 37)))
    )
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in (("a", a), ("b", b), ("y", np.zeros((19, 37), np.int32)))
    ]
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    found = EmulatedRunner(machine, level).prepare(model)({"a": a, "b": b})
    np.testing.assert_array_equal(next(iter(found.values())), a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize("bits", [4, 8])
def test_products_with_weights_in_codes(machine: Machine, bits: int) -> None:
    model, weights = matmul_n_bits(bits, 300, 70, 32, zeros=bits == 4)
    run = EmulatedRunner(machine, "neoverse-n1").prepare(model)
    for rows in (1, 4, 9):
        a = np.random.default_rng(rows).standard_normal((rows, 300)).astype(np.float32)
        found = next(iter(run({"a": a}).values()))
        np.testing.assert_allclose(found, a @ weights + np.linspace(-1, 1, 70), 1e-4, 1e-4)


@pytest.mark.parametrize("level", ["neoverse-n1", "neoverse-v1"])
@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("LSTM", 4)])
def test_recurrent_weights_in_codes(machine: Machine, level: str, op: str, gates: int) -> None:
    """As ONNX Runtime has it, by instructions for bytes where a level has them and its registers hold the sums."""
    random, hidden, inputs = np.random.default_rng(2), 141, 5
    codes = random.integers(-128, 128, (1, gates * hidden, hidden)).astype(np.int8)
    weights = random.uniform(-0.5, 0.5, (1, gates * hidden, inputs)).astype(np.float32)
    stored: dict[str, NDArray[Any]] = {"codes": codes, "scale": np.array(0.002, np.float32), "w": weights}
    nodes = [
        helper.make_node("DequantizeLinear", ["codes", "scale"], ["r"]),
        helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=hidden),
    ]
    values = [
        helper.make_tensor_value_info(*value) for value in (("x", 1, [6, 3, inputs]), ("y", 1, [6, 1, 3, hidden]))
    ]
    tensors = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = random.uniform(-1, 1, (6, 3, inputs)).astype(np.float32)
    found = next(iter(EmulatedRunner(machine, level).prepare(model)({"x": x}).values()))
    expected = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[
        0
    ]
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
