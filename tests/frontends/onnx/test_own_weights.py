"""Weights inside a model's own file: mapped where the file is large, and the program is the same as from its bytes."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import argosy
from argosy.errors import ArgosyError
from argosy.frontends.onnx import own_weights, protos
from argosy.frontends.onnx.own_weights import without_weights
from argosy.ir.hashing import model_hash
from benchmarks.models import catalog
from benchmarks.models.family import serialize

SMALL = [preset.name for _, preset in catalog.presets() if not preset.large]
FLIPS = 150


@pytest.fixture
def map_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every file as a large one, and every tensor too."""
    monkeypatch.setattr(protos, "_LARGE", 1)
    monkeypatch.setattr(own_weights, "_LEAST_TENSOR", 1)


def model(*, dims: tuple[int, ...] = (64, 64)) -> onnx.ModelProto:
    """y = x @ w + b."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32), "w")
    del weight.dims[:]
    weight.dims.extend(dims)
    bias = numpy_helper.from_array(rng.standard_normal(64).astype(np.float32), "b")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, ["N", 64])],
        [helper.make_tensor_value_info("y", 1, None)],
        [weight, bias],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def outcome(source: Path | bytes) -> str:
    """The hash of the program, or the error without the name of the file."""
    try:
        return model_hash(argosy.load_onnx(source))
    except ArgosyError as error:
        return f"{type(error).__name__}: {error.what}"


@pytest.mark.parametrize("name", SMALL)
def test_the_program_is_that_of_the_bytes(name: str, tmp_path: Path, map_everything: None) -> None:
    content = serialize(catalog.make(name))[0]
    (tmp_path / "model.onnx").write_bytes(content)
    assert outcome(tmp_path / "model.onnx") == outcome(content)


def test_a_large_file_is_mapped_and_computes_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    wide = rng.standard_normal((2048, 2100)).astype(np.float32)
    made = model()
    made.graph.node[1].output[0] = "h"
    made.graph.node.append(helper.make_node("MatMul", ["v", "wide"], ["z"]))
    made.graph.input.append(helper.make_tensor_value_info("v", 1, ["N", 2048]))
    made.graph.output[0].name = "h"
    made.graph.output.append(helper.make_tensor_value_info("z", 1, None))
    made.graph.initializer.append(numpy_helper.from_array(wide, "wide"))
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    assert path.stat().st_size > protos._LARGE
    lean = without_weights(memoryview(path.read_bytes()))
    assert lean is not None
    assert len(lean) < 100_000
    x, v = rng.standard_normal((2, 64)).astype(np.float32), rng.standard_normal((2, 2048)).astype(np.float32)
    found = argosy.Session(argosy.compile(path, targets=["ref"])).run({"x": x, "v": v})
    np.testing.assert_allclose(found["z"], v.astype(np.float64) @ wide, rtol=1e-4, atol=1e-4)
    assert outcome(path) == outcome(path.read_bytes())


def test_a_link_to_a_file_elsewhere_is_followed(tmp_path: Path, map_everything: None) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "blob").write_bytes(model().SerializeToString())
    (tmp_path / "models").mkdir()
    link = tmp_path / "models" / "model.onnx"
    link.symlink_to(tmp_path / "store" / "blob")
    assert outcome(link) == outcome(model().SerializeToString())


def test_bytes_that_do_not_fill_the_dims_are_told_as_such(tmp_path: Path, map_everything: None) -> None:
    content = model(dims=(64, 65)).SerializeToString()
    (tmp_path / "model.onnx").write_bytes(content)
    assert "raw_data holds 16384 bytes, float32[64, 65] needs 16640" in outcome(content)
    assert outcome(tmp_path / "model.onnx").startswith("ModelError: raw_data holds 16384 bytes, the tensor needs 16640")


def test_tensors_that_lie_elsewhere_already_stay_there(tmp_path: Path, map_everything: None) -> None:
    onnx.save(model(), str(tmp_path / "model.onnx"), save_as_external_data=True, location="w.bin", size_threshold=1024)
    assert outcome(tmp_path / "model.onnx") == outcome(model().SerializeToString())


@pytest.mark.parametrize("kind", ["graph twice", "bytes twice", "cut off", "a group", "an endless number"])
def test_what_looks_odd_is_left_to_the_parser(kind: str, tmp_path: Path, map_everything: None) -> None:
    content = model().SerializeToString()
    if kind == "graph twice":  # protobuf merges them
        content += content
    elif kind == "bytes twice":  # the last counts
        made = model()
        twice = made.graph.initializer[0].SerializeToString()
        twice += onnx.TensorProto(raw_data=bytes(16384)).SerializeToString()
        graph = made.graph
        del graph.initializer[:]
        rest = graph.SerializeToString()
        body = rest + own_weights._head(5, len(twice)) + twice
        made.ClearField("graph")
        content = made.SerializeToString() + own_weights._head(7, len(body)) + body
    elif kind == "cut off":
        content = content[:-5]
    elif kind == "a group":
        content += b"\x0b"
    else:
        content += b"\x3a" + b"\xff" * 12
    (tmp_path / "model.onnx").write_bytes(content)
    assert outcome(tmp_path / "model.onnx") == outcome(content)


def test_damaged_files_end_as_their_bytes_do(tmp_path: Path, map_everything: None) -> None:
    content = model().SerializeToString()
    edges = [*range(200), *range(len(content) - 600, len(content))]
    rng = random.Random(0)
    for _ in range(FLIPS):
        damaged = bytearray(content)
        damaged[rng.choice(edges)] ^= 1 << rng.randrange(8)
        (tmp_path / "model.onnx").write_bytes(damaged)
        mine, theirs = outcome(tmp_path / "model.onnx"), outcome(bytes(damaged))
        # The same, but for the words about a tensor's size, where a sentence of external data takes the place.
        assert mine == theirs or (mine.startswith("ModelError") and theirs.startswith("ModelError"))
