"""What the ops of ai.onnx.ml share: rows of features, labels of classes, transforms of scores.

What the standard leaves open is as in ONNX Runtime, if nothing else is said.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from argosy.frontends.onnx.formulas import sigmoid
from argosy.frontends.onnx.node import Node
from argosy.ir.dtype import FLOAT32, FLOAT64, Array
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.index import Gather
from argosy.ops.joining import Concat
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.view import Unsqueeze

__all__ = [
    "TRANSFORMS",
    "class_labels",
    "feature_count",
    "feature_rows",
    "floating",
    "floats",
    "labelled",
    "transform_scores",
    "two_scores",
]

TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def feature_rows(node: Node) -> Value:
    """Input 0 as [rows, features] in floats: float64 stays, other types become float32; a vector is one row."""
    x = node.input(0)
    if x.rank == 1:
        x = node.add(Unsqueeze((0,)), x)
    if x.rank != 2:
        node.fail(f"the input is {x.type}, expected [rows, features] or [features]")
    return floating(node, x)


def floating(node: Node, x: Value) -> Value:
    """`x` in the type that features are computed in: float64 where it is that, else float32."""
    return node.builder.convert(x, FLOAT64 if x.dtype is FLOAT64 else FLOAT32)


def floats(node: Node, name: str, x: Value) -> Array:
    """A FLOATS attribute, empty where it is absent, in the type of `x`."""
    return np.array(node.attr_floats(name, ()), np.float32).astype(x.dtype.numpy)


def feature_count(node: Node, x: Value, numbers: Array, rows: int, what: str) -> int:
    """The number of features of `x`, of which `numbers` hold one for each feature in so many rows.

    Raises ModelError where they don't fit.
    """
    features = x.shape[1]
    count, rest = divmod(len(numbers), max(rows, 1))
    if rows < 1 or rest or not count or (isinstance(features, int) and features != count):
        node.fail(f"{len(numbers)} {what} are given, expected {rows} x {features} (the features of {x.type})")
    return count


def class_labels(node: Node, integers: str) -> Array:
    """The labels in the attribute called `integers`, or in `classlabels_strings`: one of them holds some."""
    texts, numbers = node.attr_strings("classlabels_strings", ()), node.attr_ints(integers, ())
    if bool(texts) == bool(numbers):
        node.fail(f"has both or neither of the attributes 'classlabels_strings' and {integers!r}, expected one")
    return np.array(texts, object) if texts else np.array(numbers, np.int64)


def labelled(node: Node, labels: Array, positions: Value) -> Value:
    """The labels at the positions [rows]."""
    return node.add(Gather(0), node.constant(labels), positions)


def two_scores(node: Node, score: Value, transform: str) -> Value:
    """The scores of two classes where only that of the second, s[rows, 1], is computed: transformed -s and s.

    PROBIT takes probabilities, so there the first is that of 1 - s.
    """
    other = node.pointwise(lambda s: 1.0 - s, score) if transform == "PROBIT" else node.pointwise("neg", score)
    return transform_scores(node, node.add(Concat(1), other, score), transform)


def transform_scores(node: Node, scores: Value, transform: str) -> Value:
    """`scores` [rows, classes] after one of `TRANSFORMS`; one class is transformed like several."""
    if transform == "LOGISTIC":
        return node.pointwise(sigmoid, scores)
    if transform == "SOFTMAX":
        return node.add(Softmax(1), scores)
    if transform == "SOFTMAX_ZERO":
        return _softmax_zero(node, scores)
    return node.pointwise(_probit, scores) if transform == "PROBIT" else scores


def _softmax_zero(node: Node, scores: Value) -> Value:
    """Softmax over the scores that are not zero; those that are stay zero."""
    most = node.add(Reduce("max", (1,)), scores)

    def power(s: Expr, m: Expr) -> Expr:
        return (s.abs() > 1e-7).select((s - m).exp(), s * (-m).exp())

    def share(s: Expr, m: Expr, total: Expr) -> Expr:
        return power(s, m) / total

    counted = node.pointwise(lambda s, m: (s.abs() > 1e-7).select((s - m).exp(), 0.0), scores, most)
    return node.pointwise(share, scores, most, node.add(Reduce("sum", (1,)), counted))


def _probit(p: Expr) -> Expr:
    """√2 erfinv(2 p - 1), erfinv by Winitzki's approximation with a = 0.147, as in ONNX Runtime."""
    x = p * 2.0 - 1.0
    log = ((1.0 - x) * (x + 1.0)).log()
    half = log * 0.5 + 2.0 / (math.pi * 0.147)
    root = ((half * half - log * (1.0 / 0.147)).sqrt() - half).sqrt()
    return (x < 0.0).select(-root, root) * math.sqrt(2.0)
