"""Maps: CastMap, DictVectorizer and ZipMap against ONNX Runtime, alone and in pipelines through the whole compiler."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import argosy
from argosy.cli.main import main
from argosy.comparison import Agree, compare
from argosy.errors import ModelError, UsageError
from argosy.frontends.onnx import load

FLOAT, INT64, STRING, DOUBLE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.DOUBLE


def map_type(key: int, value: int) -> onnx.TypeProto:
    """map(key, value), whose values are scalars."""
    return helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, None))


def tensor_type(element: int, shape: Sequence[int | str]) -> onnx.TypeProto:
    """A tensor."""
    return helper.make_tensor_type_proto(element, shape)


def pipeline(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, onnx.TypeProto], outputs: dict[str, onnx.TypeProto]
) -> onnx.ModelProto:
    """A model of ops of ai.onnx.ml and ai.onnx."""
    graph = helper.make_graph(
        nodes,
        "pipeline",
        [helper.make_value_info(name, kind) for name, kind in inputs.items()],
        [helper.make_value_info(name, kind) for name, kind in outputs.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    """A node of ai.onnx.ml."""
    return helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def ours(made: onnx.ModelProto, feeds: dict[str, Any], arch: str = "ref") -> dict[str, Any]:
    """Outputs after compile, save, open and run."""
    file = io.BytesIO(made.SerializeToString())
    artifact = argosy.compile(file.getvalue(), targets=[arch])
    return argosy.Session(artifact).run(feeds)


def theirs(made: onnx.ModelProto, feeds: dict[str, Any]) -> dict[str, Any]:
    """ONNX Runtime's outputs, with the numbers of maps as scalars of float32."""
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_outputs()]
    return {name: _typed(value) for name, value in zip(names, session.run(None, feeds), strict=True)}


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if isinstance(value, dict):
        return {key: np.float32(item) for key, item in value.items()}
    return value


def assert_same(made: onnx.ModelProto, feeds: dict[str, Any], arch: str = "ref") -> None:
    """Our outputs are ONNX Runtime's."""
    assert compare(theirs(made, feeds), ours(made, feeds, arch), Agree()) == ()


@pytest.mark.parametrize("texts", [False, True])
def test_zip_map(texts: bool) -> None:
    labels: dict[str, Any] = {"classlabels_strings": ["a", "b"]} if texts else {"classlabels_int64s": [3, 7]}
    kind = helper.make_sequence_type_proto(map_type(STRING if texts else INT64, FLOAT))
    shapes: list[list[int | str]] = [["n", 2], [2]]
    for shape in shapes:
        made = pipeline([node("ZipMap", ["x"], ["z"], **labels)], {"x": tensor_type(FLOAT, shape)}, {"z": kind})
        x = (
            np.arange(len(shape) * 2, dtype=np.float32).reshape(-1, 2)
            if len(shape) == 2
            else np.array([1, 2], np.float32)
        )
        assert_same(made, {"x": x})
    found = ours(made, {"x": np.array([0.1, 2], np.float32)})["z"]
    assert [type(key) for key in found[0]] == [str if texts else int] * 2
    assert {value.dtype for value in found[0].values()} == {np.dtype(np.float32)}


def test_zip_map_of_another_size_is_refused() -> None:
    kind = helper.make_sequence_type_proto(map_type(INT64, FLOAT))
    wrong = node("ZipMap", ["x"], ["z"], classlabels_int64s=[1, 2])
    with pytest.raises(ModelError, match="2 keys are given for 3 values in a row"):
        load(pipeline([wrong], {"x": tensor_type(FLOAT, ["n", 3])}, {"z": kind}))
    made = pipeline([wrong], {"x": tensor_type(FLOAT, ["n", "c"])}, {"z": kind})
    with pytest.raises(UsageError, match="2 keys are given for 3 values in a row"):
        ours(made, {"x": np.zeros((1, 3), np.float32)})


@pytest.mark.parametrize(
    ("key", "value", "given", "expected"),
    [
        (STRING, FLOAT, {"c": 2.5, "a": 1.5, "unknown": 9.0}, [1.5, 0, 2.5]),
        (STRING, DOUBLE, {"a": 0.1}, [0.1, 0, 0]),
        (STRING, INT64, {"b": 7}, [0, 7, 0]),
        (INT64, FLOAT, {3: 0.25, 99: 1.0}, [0, 0.25, 0]),
        (INT64, STRING, {1: "one"}, ["one", "", ""]),
        (STRING, FLOAT, {}, [0, 0, 0]),
    ],
)
def test_dict_vectorizer(key: int, value: int, given: dict[Any, Any], expected: list[Any]) -> None:
    vocabulary: dict[str, Any] = (
        {"string_vocabulary": ["a", "b", "c"]} if key == STRING else {"int64_vocabulary": [1, 3, 2]}
    )
    made = pipeline(
        [node("DictVectorizer", ["x"], ["y"], **vocabulary)],
        {"x": map_type(key, value)},
        {"y": tensor_type(value, ["n", 3])},
    )
    if value == FLOAT and given:  # what ONNX Runtime's binding of Python takes
        assert_same(made, {"x": given})
    found = ours(made, {"x": given})["y"]
    assert found.dtype == (object if value == STRING else helper.tensor_dtype_to_np_dtype(value))
    assert found.tolist() == np.array([expected], found.dtype).tolist()


@pytest.mark.parametrize("target", ["TO_FLOAT", "TO_INT64", "TO_STRING"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("value", "given"), [(FLOAT, {4: 2.75, 0: -1.5}), (STRING, {4: "2", 0: "-1"}), (FLOAT, {})])
def test_cast_map(target: str, sparse: bool, value: int, given: dict[int, Any]) -> None:
    kind, plain, empty = {
        "TO_FLOAT": (FLOAT, float, 0.0),
        "TO_INT64": (INT64, int, 0),
        "TO_STRING": (STRING, str, "0.f"),
    }[target]
    form: dict[str, Any] = {"map_form": "SPARSE", "max_map": 6} if sparse else {}
    made = pipeline(
        [node("CastMap", ["x"], ["y"], cast_to=target, **form)],
        {"x": map_type(INT64, value)},
        {"y": tensor_type(kind, ["n", "size"])},
    )
    if value == FLOAT and given and target != "TO_STRING":
        assert_same(made, {"x": given})
    found = ours(made, {"x": given})["y"]
    places = range(6) if sparse else sorted(given)
    assert found.dtype == (object if kind == STRING else helper.tensor_dtype_to_np_dtype(kind))
    assert found.tolist() == [[plain(given[place]) if place in given else empty for place in places]]


@pytest.mark.parametrize("key", [-1, 6])
def test_cast_map_to_a_place_that_is_not_there(key: int) -> None:
    made = pipeline(
        [node("CastMap", ["x"], ["y"], map_form="SPARSE", max_map=6)],
        {"x": map_type(INT64, FLOAT)},
        {"y": tensor_type(FLOAT, [1, 6])},
    )
    with pytest.raises(UsageError, match=f"the map has keys from {key} to {key}, expected 0 to 5"):
        ours(made, {"x": {key: 1.0}})


def classifier() -> onnx.ModelProto:
    """Scaler -> LinearClassifier -> Normalizer -> ZipMap, as converters of scikit-learn write a logistic regression."""
    rng = np.random.default_rng(4)
    return pipeline(
        [
            node("Scaler", ["x"], ["scaled"], offset=[0.5, -1.0, 2.0, 0.0], scale=[1.0, 0.5, 0.25, 2.0]),
            node(
                "LinearClassifier", ["scaled"], ["label", "raw"], classlabels_strings=["a", "b", "c"],
                coefficients=rng.normal(size=12).tolist(), intercepts=[0.1, 0.2, 0.3], multi_class=1,
                post_transform="LOGISTIC",
            ),
            node("Normalizer", ["raw"], ["scores"], norm="L1"),
            node("ZipMap", ["scores"], ["maps"], classlabels_strings=["a", "b", "c"]),
        ],
        {"x": tensor_type(FLOAT, ["n", 4])},
        {"label": tensor_type(STRING, ["n"]), "maps": helper.make_sequence_type_proto(map_type(STRING, FLOAT))},
    )  # fmt: skip


def dictionary() -> onnx.ModelProto:
    """DictVectorizer -> SVMClassifier with probabilities."""
    rng = np.random.default_rng(6)
    return pipeline(
        [
            node("DictVectorizer", ["x"], ["row"], string_vocabulary=["height", "weight", "age"]),
            node(
                "SVMClassifier", ["row"], ["label", "scores"], classlabels_ints=[1, 2, 3], vectors_per_class=[2, 1, 2],
                support_vectors=rng.normal(size=15).tolist(), coefficients=rng.normal(size=10).tolist(),
                rho=[0.1, -0.2, 0.3], prob_a=[-1.0, -0.5, -2.0], prob_b=[0.1, 0.2, 0.3], kernel_type="RBF",
                kernel_params=[0.5, 0.0, 3.0],
            ),
        ],
        {"x": map_type(STRING, FLOAT)},
        {"label": tensor_type(INT64, ["n"]), "scores": tensor_type(FLOAT, ["n", 3])},
    )  # fmt: skip


@pytest.mark.parametrize("arch", ["ref", "cpu"])
@pytest.mark.parametrize("rows", [1, 7])
def test_pipeline_with_maps_as_outputs(arch: str, rows: int) -> None:
    assert_same(classifier(), {"x": np.random.default_rng(1).normal(size=(rows, 4)).astype(np.float32)}, arch)


@pytest.mark.parametrize("arch", ["ref", "cpu"])
def test_pipeline_with_a_map_as_input(arch: str) -> None:
    for given in ({"age": 0.5, "weight": -1.0}, {"age": 1.0, "weight": 2.0, "height": 3.0, "name": 4.0}):
        assert_same(dictionary(), {"x": given}, arch)
    nothing = ours(dictionary(), {"x": {}}, arch)
    assert compare(theirs(dictionary(), {"x": {"age": 0.0}}), nothing, Agree()) == ()


def test_saved_and_opened(tmp_path: Path) -> None:
    made, feeds = classifier(), {"x": np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)}
    argosy.compile(made.SerializeToString(), targets=["ref"]).save(tmp_path / "a.argosy")
    found = argosy.Session(tmp_path / "a.argosy").run(feeds)
    assert compare(theirs(made, feeds), found, Agree()) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], r"expected a dict \(map\(string, float32\[\*\]\)\), found list"),
        ({1: 1.0}, r"expected keys of map\(string, float32\[\*\]\), found 1"),
        ({"age": "old"}, r"key 'age'.*expected float32\[\*\], found str"),
        ({"age": np.float64(1)}, r"key 'age'.*expected float32\[\*\], found float64"),
        ({"age": None}, r"key 'age'.*found None"),
    ],
)
def test_maps_that_do_not_fit(given: Any, message: str) -> None:
    session = argosy.Session(argosy.compile(dictionary().SerializeToString(), targets=["ref"]))
    with pytest.raises(UsageError, match=message):
        session.run({"x": given})


def test_keys_and_values_as_numpy_scalars() -> None:
    made = pipeline(
        [node("DictVectorizer", ["x"], ["y"], int64_vocabulary=[1, 2])],
        {"x": map_type(INT64, FLOAT)},
        {"y": tensor_type(FLOAT, [1, 2])},
    )
    found = ours(made, {"x": {np.int64(2): np.float32(0.5)}})
    np.testing.assert_array_equal(found["y"], np.array([[0, 0.5]], np.float32))


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, made in (("c", classifier()), ("d", dictionary())):
        (tmp_path / f"{name}.onnx").write_bytes(made.SerializeToString())
    given: dict[str, Any] = {"x.keys": np.array(["age", "weight"]), "x.values": np.array([0.5, 2.0], np.float32)}
    np.savez(tmp_path / "x.npz", allow_pickle=False, **given)
    words = ["--arch", "ref"]
    assert main(["run", str(tmp_path / "c.onnx"), *words, "--dim", "n=3", "-o", str(tmp_path / "o.npz")]) == 0
    assert "maps   sequence of 3  map of 3 'a': 0." in capsys.readouterr().out
    held = np.load(tmp_path / "o.npz")
    assert held["maps[2].keys"].tolist() == ["a", "b", "c"]
    assert held["maps[2].values"].dtype == np.float32
    for against in ("onnxruntime", str(tmp_path / "o.npz")):
        assert main(["verify", str(tmp_path / "c.onnx"), *words, "--dim", "n=3", "--against", against]) == 0
    assert main(["run", str(tmp_path / "d.onnx"), *words]) == 2
    assert "can't be generated" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "d.onnx"), *words, "--input", f"x={tmp_path / 'x.npz'}"]) == 0
    assert "scores  float32[1, 3]" in capsys.readouterr().out
