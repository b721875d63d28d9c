"""Models without their large weights: the same graph again, with values like those that it had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper, parser

from benchmarks.models import real, seeded

RNG = np.random.default_rng(3)
WEIGHT = RNG.standard_normal((64, 64), np.float32) * 0.1 + 2
CODES = RNG.integers(3, 200, (64, 64)).astype(np.uint8)
KEPT: dict[str, NDArray[Any]] = {
    "few": RNG.standard_normal(64).astype(np.float32),
    "places": RNG.integers(0, 64, 5000),
    "mask": np.where(np.tri(64, dtype=bool), 0, -np.inf).astype(np.float32),
    "zeros": np.zeros((64, 64), np.float32),
}


def model() -> onnx.ModelProto:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[64,64] x, bool c) => (float[64,64] y)'
        "{t = MatMul(x, w)\n u = MatMul(t, again)\n y = If(c)"
        "<then_branch = a () => (float[64,64] p) {p = Add(u, inner)},"
        " else_branch = b () => (float[64,64] q) {q = Identity(u)}>}"
    )
    weights = {"w": WEIGHT, "again": WEIGHT, "codes": CODES, **KEPT}
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    then = made.graph.node[2].attribute[0].g
    then.initializer.append(numpy_helper.from_array(WEIGHT.astype(np.float16).astype(np.float32), "inner"))
    return made


def values(given: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    tensors = [*given.graph.initializer, *given.graph.node[2].attribute[0].g.initializer]
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}


def test_large_weights_are_made_again_and_the_rest_is_as_it_was() -> None:
    short = seeded.stripped(model())
    assert len(short.SerializeToString()) < len(model().SerializeToString()) - 3 * WEIGHT.nbytes
    made = values(seeded.filled(short))
    for name, value in KEPT.items():
        np.testing.assert_array_equal(made[name], value, strict=True)
    for name in ("w", "inner"):
        assert made[name].shape == (64, 64)
        assert made[name].dtype == np.float32
        assert not np.array_equal(made[name], WEIGHT)
        assert abs(made[name].mean() - 2) < 0.02
        assert abs(made[name].std() - 0.1) < 0.01
    np.testing.assert_array_equal(made["w"], made["again"])
    assert not np.array_equal(made["w"], made["inner"])
    assert made["codes"].dtype == np.uint8
    assert 3 <= made["codes"].min() < 20
    assert 180 < made["codes"].max() < 200
    nodes = [each.op_type for each in seeded.filled(short).graph.node]
    assert nodes == [each.op_type for each in model().graph.node]


def test_a_file_of_models_is_the_same_every_time_and_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "magika-model"
    onnx.save_model(model(), tmp_path / f"{name}.onnx")
    original = real.RealModel.path
    monkeypatch.setattr(real.RealModel, "path", lambda self: original(self, tmp_path))
    files = [tmp_path / "one.tar.xz", tmp_path / "two.tar.xz"]
    for file in files:
        seeded.pack([name], file)
    assert files[0].read_bytes() == files[1].read_bytes()
    (path,) = seeded.unpack(files[0], tmp_path / "made")
    assert path == tmp_path / "made" / f"{name}.onnx"
    np.testing.assert_array_equal(values(onnx.load_model(path))["places"], KEPT["places"])


def test_weights_in_a_file_beside_the_model_are_not_made_up() -> None:
    short = seeded.stripped(model())
    short.graph.initializer[0].external_data[0].value = "weights.bin"
    with pytest.raises(ValueError, match=r"'w' lie in 'weights\.bin'"):
        seeded.filled(short)
