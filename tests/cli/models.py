"""Small models for the tests of the command line, built with onnx.helper, and what they compute by numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["branching", "classifier", "classify", "picker", "unknown_ops", "weights"]

FLOAT = TensorProto.FLOAT


def weights(seed: int = 0) -> NDArray[np.float32]:
    """The matrix of the classifier."""
    return np.random.default_rng(seed).normal(size=(4, 300)).astype(np.float32)


def classify(x: NDArray[Any], seed: int = 0) -> NDArray[Any]:
    """What the classifier computes, in float64."""
    scores = np.maximum(x.astype(np.float64) @ weights(seed), 0)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def classifier(path: Path, *, seed: int = 0, name: str = "classifier", output: str = "y") -> Path:
    """`output` [N, 300] = softmax(relu(x [N, 4] @ w)), the nodes called mm, (nothing) and sm."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="mm"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Softmax", ["r"], [output], name="sm", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", FLOAT, ["N", 4])],
        [helper.make_tensor_value_info(output, FLOAT, ["N", 300])],
        [numpy_helper.from_array(weights(seed), "w")],
    )
    return save(graph, path)


def picker(path: Path) -> Path:
    """`picked` = table[index]: an integer input that must stay in range, and beside it a bool one."""
    nodes = [
        helper.make_node("Gather", ["table", "index"], ["picked"]),
        helper.make_node("Not", ["flag"], ["opposite"]),
    ]
    graph = helper.make_graph(
        nodes,
        "picker",
        [
            helper.make_tensor_value_info("index", TensorProto.INT64, ["K"]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, [2]),
        ],
        [
            helper.make_tensor_value_info("picked", FLOAT, ["K"]),
            helper.make_tensor_value_info("opposite", TensorProto.BOOL, [2]),
        ],
        [numpy_helper.from_array(np.array([10, 20, 30], np.float32), "table")],
    )
    return save(graph, path)


def branching(path: Path) -> Path:
    """The places of positive elements, by a flag doubled: a data-dependent dim, and an If that reads it."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["positive"]),
        helper.make_node("NonZero", ["positive"], ["places"], name="places"),
        helper.make_node(
            "If",
            ["flag"],
            ["y"],
            then_branch=branch("Add", ["places", "places"], "sum"),
            else_branch=branch("Identity", ["places"], "same"),
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "branching",
        [
            helper.make_tensor_value_info("x", FLOAT, ["N", 4]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [2, None])],
        [numpy_helper.from_array(np.array(0, np.float32), "zero")],
    )
    return save(graph, path)


def branch(op: str, operands: list[str], result: str) -> onnx.GraphProto:
    """A subgraph of one node over values from around it."""
    node = helper.make_node(op, operands, [result])
    return helper.make_graph([node], result, [], [helper.make_tensor_value_info(result, TensorProto.INT64, None)])


def unknown_ops(path: Path) -> Path:
    """A model with two nodes that nobody supports, and one that is."""
    nodes = [
        helper.make_node("Frobnicate", ["x"], ["a"], name="first", domain="org.example"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Frobnicate", ["b"], ["y"], domain="org.example"),
    ]
    inputs, outputs = ([helper.make_tensor_value_info(name, FLOAT, [2])] for name in "xy")
    return save(helper.make_graph(nodes, "unknown", inputs, outputs), path)


def save(graph: onnx.GraphProto, path: Path) -> Path:
    """Save a graph as a model of opset 17."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path
