"""ai.onnx.ml: LinearClassifier and LinearRegressor."""

from __future__ import annotations

import numpy as np

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import ML, onnx_op
from argosy.frontends.onnx.scores import (
    TRANSFORMS,
    class_labels,
    feature_count,
    feature_rows,
    floats,
    labelled,
    transform_scores,
    two_scores,
)
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32, INT64, Array
from argosy.ir.module import Value
from argosy.ops.matmul import Dot
from argosy.ops.reduce import ArgReduce
from argosy.ops.view import Squeeze


@onnx_op("LinearRegressor", domain=ML)
def LinearRegressor(node: Node) -> Value:
    """A number for each row and target. The transform applies to a single target too; ONNX Runtime leaves that out."""
    x = feature_rows(node)
    targets = node.attr_int("targets", 1)
    scores = _scores(node, x, targets, floats(node, "intercepts", x))
    return transform_scores(node, scores, node.attr_choice("post_transform", "NONE", TRANSFORMS))


@onnx_op("LinearClassifier", domain=ML)
def LinearClassifier(node: Node) -> list[Value]:
    """The label of the greatest score of each row, before the transform, and the transformed scores of all classes.

    Two classes may have the coefficients of one: of the second, whose score s is compared with 0. The scores are then
    -s and s, as in onnx.reference, where ONNX Runtime gives 1 - s and s, and transforms them for LOGISTIC only. With
    one row of coefficients and other than two labels these are 1 and 0, as in ONNX Runtime. `multi_class` has no
    meaning for the result.
    """
    x = feature_rows(node)
    node.ignore("multi_class")
    labels = class_labels(node, "classlabels_ints")
    intercepts = floats(node, "intercepts", x)
    transform = node.attr_choice("post_transform", "NONE", TRANSFORMS)
    rows = len(intercepts) or _rows(node, x, len(labels))
    scores = _scores(node, x, rows, intercepts)
    if rows == 1:
        return _one_row(node, scores, labels, transform)
    if rows != len(labels):
        node.fail(f"{len(labels)} labels are given for {rows} rows of coefficients")
    best = node.add(ArgReduce("max", 1, keep_dims=False), scores)
    return [labelled(node, labels, best), transform_scores(node, scores, transform)]


def _rows(node: Node, x: Value, classes: int) -> int:
    """How many rows of coefficients there are, where no intercepts tell."""
    features = x.shape[1]
    if not isinstance(features, int):
        return classes
    return len(node.attr_floats("coefficients")) // max(features, 1)


def _one_row(node: Node, score: Value, labels: Array, transform: str) -> list[Value]:
    chosen = node.pointwise(lambda s: (s > 0.0).convert(INT64), node.add(Squeeze((1,)), score))
    if len(labels) == 2:
        return [labelled(node, labels, chosen), two_scores(node, score, transform)]
    plain: Array = np.array(["0", "1"], object) if labels.dtype == object else np.array([0, 1], np.int64)
    return [labelled(node, plain, chosen), transform_scores(node, score, transform)]


def _first(node: Node, coefficients: Array, rows: int, features: DimLike) -> Array:
    """The coefficients that are read: of more than there is use for, the first.

    Files declare fewer features than they were trained on, ONNX Runtime's `logreg_iris.onnx` among them. What they
    compute then, row by row of the declared width, is what ONNX Runtime computes.
    """
    if rows < 1 or not isinstance(features, int) or not 0 < rows * features < len(coefficients):
        return coefficients
    given = f"{len(coefficients)} coefficients are given for {rows} x {features}"
    if node.proto.op_type == "LinearClassifier" and len(coefficients) % rows:
        node.fail(f"{given}, which is no multiple of the rows")
    node.lenient(f"{given} (the features of its input), of which the first {rows * features} are read")
    return coefficients[: rows * features]


def _scores(node: Node, x: Value, rows: int, intercepts: Array) -> Value:
    """x[N, F] times the coefficients [rows, F] and the intercepts, in float32 at the end."""
    coefficients = _first(node, floats(node, "coefficients", x), rows, x.shape[1])
    count = feature_count(node, x, coefficients, rows, "coefficients")
    if len(intercepts) not in (0, rows):
        node.fail(f"{len(intercepts)} intercepts are given for {rows} rows of coefficients")
    scores = node.add(Dot(), x, node.constant(np.ascontiguousarray(coefficients.reshape(rows, count).T)))
    if len(intercepts):
        scores = node.pointwise("add", scores, node.constant(intercepts))
    return node.builder.convert(scores, FLOAT32)
