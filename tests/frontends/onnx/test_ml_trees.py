"""Tree ensembles against ONNX Runtime: random trees, every mode, aggregate and transform, two classes and many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from argosy.errors import ModelError
from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.interpreter import Interpreter

Array = NDArray[Any]
FEATURES = 5
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def forest(kind: str, targets: list[int], trees: int, seed: int, *, positive: bool = True) -> dict[str, Any]:
    """Attributes of random trees of up to four levels; each leaf has a weight for every one of `targets`."""
    rng = np.random.default_rng(seed)
    names = [
        "treeids",
        "nodeids",
        "featureids",
        "values",
        "modes",
        "truenodeids",
        "falsenodeids",
        "missing_value_tracks_true",
    ]
    nodes: dict[str, list[Any]] = {name: [] for name in names}
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def enter(*row: Any) -> int:
        for name, value in zip(names, row, strict=True):
            nodes[name].append(value)
        return len(nodes["treeids"]) - 1

    def grow(tree: int, level: int, count: list[int]) -> int:
        number = count[0]
        count[0] += 1
        if level == 0 or (level < 4 and rng.random() < 0.2):
            enter(tree, number, 0, 0.0, "LEAF", 0, 0, 0)
            for target in targets:
                weight = rng.integers(0, 8) / 8 / trees if positive else rng.integers(-8, 8) / 8
                for name, value in zip(leaves, (tree, number, target, float(weight)), strict=True):
                    leaves[name].append(value)
            return number
        mode = MODES[rng.integers(len(MODES))]
        split = float(rng.integers(-2, 3))
        place = enter(tree, number, int(rng.integers(FEATURES)), split, mode, 0, 0, int(rng.integers(2)))
        nodes["truenodeids"][place] = grow(tree, level - 1, count)
        nodes["falsenodeids"][place] = grow(tree, level - 1, count)
        return number

    for tree in range(trees):
        grow(tree, 4, [0])
    attributes = {f"nodes_{name}": values for name, values in nodes.items()}
    attributes |= {f"{kind}_{name}": values for name, values in leaves.items()}
    return attributes


def model(op: str, outputs: Mapping[str, int], dtype: Any, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", element, ["n", FEATURES])],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
    )
    version = 5 if op == "TreeEnsemble" else 3
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def rows(dtype: Any, seed: int = 0) -> Array:
    x = np.random.default_rng(seed).integers(-3, 4, (50, FEATURES)).astype(dtype)
    if x.dtype.kind == "f":
        x[::7, 2] = np.nan
    return x


def both(made: onnx.ModelProto, x: Array) -> list[tuple[Array, Array]]:
    """Our outputs beside ONNX Runtime's."""
    theirs = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    ours = Interpreter(load(made).main).run([x], Env())
    for found, expected in zip(ours, theirs, strict=True):
        assert found.shape == expected.shape
        assert found.dtype == np.asarray(expected).dtype
    return list(zip(ours, theirs, strict=True))


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regressor(aggregate: str, targets: int, dtype: Any) -> None:
    attributes = forest("target", list(range(targets)), 4, targets, positive=False)
    for base in ({}, {"base_values": [0.5] * targets}):
        made = model(
            "TreeEnsembleRegressor",
            {"y": TensorProto.FLOAT},
            dtype,
            n_targets=targets,
            aggregate_function=aggregate,
            **attributes,
            **base,
        )
        for found, expected in both(made, rows(dtype)):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize(("classes", "texts"), [(2, False), (2, True), (4, False)])
def test_classifier(transform: str, classes: int, texts: bool) -> None:
    attributes = forest("class", list(range(classes)), 3, classes)
    attributes["class_weights"] = [weight + 0.01 for weight in attributes["class_weights"]]
    labels: dict[str, Any] = (
        {"classlabels_strings": [f"c{index}" for index in range(classes)]}
        if texts
        else {"classlabels_int64s": list(range(10, 10 + classes))}
    )
    kind = TensorProto.STRING if texts else TensorProto.INT64
    outputs = {"label": kind, "scores": TensorProto.FLOAT}
    made = model("TreeEnsembleClassifier", outputs, np.float32, post_transform=transform, **attributes, **labels)
    (label, expected_label), (scores, expected_scores) = both(made, rows(np.float32))
    if classes == 2:  # ONNX Runtime ignores the labels here and answers 1 wherever the second score is positive
        plain = both(model("TreeEnsembleClassifier", outputs, np.float32, **attributes, **labels), rows(np.float32))
        expected_label = np.array(next(iter(labels.values())), label.dtype)[plain[1][1].argmax(1)]
    np.testing.assert_array_equal(label, expected_label)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-4, atol=1e-6)


def test_classifier_of_integers() -> None:
    attributes = forest("class", [0, 1, 2], 3, 1)
    outputs = {"label": TensorProto.INT64, "scores": TensorProto.FLOAT}
    made = model("TreeEnsembleClassifier", outputs, np.int64, classlabels_int64s=[5, 6, 7], **attributes)
    for found, expected in both(made, rows(np.int64)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("base", [[], [0.25]])
def test_two_classes_with_the_weights_of_one(transform: str, positive: bool, base: list[float]) -> None:
    attributes = forest("class", [0], 5, 9, positive=positive)
    if base:
        attributes["base_values"] = base
    outputs = {"label": TensorProto.INT64, "scores": TensorProto.FLOAT}
    made = model(
        "TreeEnsembleClassifier",
        outputs,
        np.float32,
        post_transform=transform,
        classlabels_int64s=[3, 7],
        **attributes,
    )
    (label, expected_label), (scores, expected_scores) = both(made, rows(np.float32))
    np.testing.assert_array_equal(label, expected_label)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_separate_leaves(aggregate: int, dtype: Any) -> None:
    def tensor(values: list[float], kind: Any = dtype) -> onnx.TensorProto:
        return numpy_helper.from_array(np.array(values, kind))

    made = model(
        "TreeEnsemble",
        {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))},
        dtype,
        n_targets=2,
        aggregate_function=aggregate,
        tree_roots=[0, 3],
        nodes_modes=tensor([0, 4, 2, 5], np.uint8),
        nodes_featureids=[0, 1, 2, 3],
        nodes_splits=tensor([0.0, 1.0, -1.0, 2.0]),
        nodes_truenodeids=[1, 0, 2, 4],
        nodes_trueleafs=[0, 1, 1, 1],
        nodes_falsenodeids=[2, 1, 3, 5],
        nodes_falseleafs=[0, 1, 1, 1],
        nodes_missing_value_tracks_true=[0, 1, 1, 0],
        leaf_targetids=[0, 1, 0, 1, 0, 1],
        leaf_weights=tensor([1.0, 2.0, -3.0, 4.0, 0.5, -6.0]),
    )
    for found, expected in both(made, rows(dtype)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_cycle_is_refused() -> None:
    branches: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"],
        "nodes_truenodeids": [1, 1, 0],
        "nodes_falsenodeids": [2, 2, 0],
        "target_treeids": [0],
        "target_nodeids": [2],
        "target_ids": [0],
        "target_weights": [1.0],
    }
    with pytest.raises(ModelError, match="has a cycle"):
        load(model("TreeEnsembleRegressor", {"y": TensorProto.FLOAT}, np.float32, **branches))
    branches["nodes_truenodeids"] = [1, 5, 0]
    with pytest.raises(ModelError, match=r"a node outside 0\.\.2"):
        load(model("TreeEnsembleRegressor", {"y": TensorProto.FLOAT}, np.float32, **branches))


@pytest.mark.parametrize("columns", [1, 3, 4, "c"])
@pytest.mark.parametrize("feature", [-1, 3, 2**40])
def test_a_feature_that_there_is_not(columns: int | str, feature: int) -> None:
    branches: dict[str, Any] = {
        "nodes_treeids": [0, 0],
        "nodes_nodeids": [0, 1],
        "nodes_featureids": [feature, 99],  # of a leaf it means nothing
        "nodes_values": [0.5, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF"],
        "nodes_truenodeids": [1, 0],
        "nodes_falsenodeids": [1, 0],
        "target_treeids": [0],
        "target_nodeids": [1],
        "target_ids": [0],
        "target_weights": [1.0],
    }
    made = model("TreeEnsembleRegressor", {"y": TensorProto.FLOAT}, np.float32, **branches)
    made.graph.input[0].CopyFrom(
        helper.make_tensor_value_info(made.graph.input[0].name, TensorProto.FLOAT, [2, columns])
    )
    if feature < 0:
        with pytest.raises(ModelError, match="asks for feature -1, expected 0 or more"):
            load(made)
        return
    if isinstance(columns, int) and columns <= feature:
        with pytest.raises(ModelError, match=f"asks for feature {feature}, x has {columns}"):
            load(made)
        return
    loaded, wide = load(made).main, np.zeros((2, 4), np.float32)
    if feature == 3:
        (found,) = Interpreter(loaded).run([wide], Env())
        np.testing.assert_array_equal(found, [[1.0], [1.0]])
    if columns == "c":
        with pytest.raises(ModelError, match=f"TreeEnsembleRegressor .*: a node asks for feature {feature}, x has 3"):
            Interpreter(loaded).run([wide[:, :3]], Env())
