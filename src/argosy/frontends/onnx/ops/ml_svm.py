"""ai.onnx.ml: support vector machines. What the standard leaves open is as in ONNX Runtime, if nothing else is said."""

from __future__ import annotations

from typing import Final

import numpy as np

from argosy.frontends.onnx.formulas import sigmoid
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.pairwise import couple, pairs
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
from argosy.ir.dtype import FLOAT32, FLOAT64, Array
from argosy.ir.module import Value
from argosy.ops.index import Gather
from argosy.ops.joining import Concat
from argosy.ops.matmul import Dot
from argosy.ops.reduce import ArgReduce, Reduce
from argosy.ops.slicing import Slice

_KERNELS: Final = ("LINEAR", "POLY", "RBF", "SIGMOID")
_LEAST: Final = 1e-7
"""A chance of one class against another is kept as far from 0 and 1."""


@onnx_op("SVMRegressor", domain=ML)
def SVMRegressor(node: Node) -> Value:
    """The weighted sum of kernels and rho, [rows, 1]; of a one-class machine, 1 where that is positive, else -1.

    Without support vectors the coefficients are those of the features. The transform applies to the sum, which ONNX
    Runtime leaves out; a sign is not transformed.
    """
    x = feature_rows(node)
    supports = node.attr_int("n_supports", 0)
    coefficients, rho = floats(node, "coefficients", x), _rho(node, x, 1)
    transform = node.attr_choice("post_transform", "NONE", TRANSFORMS)
    if supports > 0:
        if len(coefficients) != supports:
            node.fail(f"{len(coefficients)} coefficients are given for {supports} support vectors")
        sums = node.add(Dot(), _kernels(node, x, supports), node.constant(coefficients[:, None]))
    else:
        sums = _linear(node, x, coefficients, 1)
    sums = node.pointwise(lambda value: value + float(rho[0]), sums)
    if node.attr_flag("one_class"):
        return node.pointwise(lambda value: (value > 0.0).convert(FLOAT32) * 2.0 - 1.0, sums)
    return transform_scores(node, node.builder.convert(sums, FLOAT32), transform)


@onnx_op("SVMClassifier", domain=ML)
def SVMClassifier(node: Node) -> list[Value]:
    """The label of each row, and the transformed scores.

    With support vectors, each pair of classes has a classifier that votes for the first of them where its score is
    positive; the class with most votes is it, the first of equals. The scores are those of the pairs; of two classes
    -s and s, which ONNX Runtime transforms for LOGISTIC only; with `prob_a` and `prob_b` the probabilities of the
    classes. Without support vectors, each class has a row of coefficients and all share rho[0]; the class of the
    greatest score is it, for two classes too, where both implementations have exceptions by signs.
    """
    x = feature_rows(node)
    labels = class_labels(node, "classlabels_ints")
    transform = node.attr_choice("post_transform", "NONE", TRANSFORMS)
    counts = node.attr_ints("vectors_per_class", ())
    if any(count < 0 for count in counts):
        node.fail(f"attribute 'vectors_per_class' is {list(counts)}, expected sizes")
    if sum(counts):
        return _one_against_one(node, x, labels, counts, transform)
    if node.attr_floats("prob_a", ()) or node.attr_floats("prob_b", ()):
        node.unsupported("attributes 'prob_a' and 'prob_b' without support vectors are not supported")
    rho = float(_rho(node, x, 1)[0])
    sums = _linear(node, x, floats(node, "coefficients", x), len(labels))
    scores = node.pointwise(lambda value: (value + rho).convert(FLOAT32), sums)
    best = node.add(ArgReduce("max", 1, keep_dims=False), scores)
    return [labelled(node, labels, best), transform_scores(node, scores, transform)]


def _one_against_one(node: Node, x: Value, labels: Array, counts: tuple[int, ...], transform: str) -> list[Value]:
    classes = len(labels)
    if classes < 2 or len(counts) != classes:
        node.fail(f"{len(counts)} vectors_per_class are given for {classes} labels, expected two or more of each")
    decisions = _decisions(node, x, counts)
    balance: Array = np.zeros((len(pairs(classes)), classes), x.dtype.numpy)
    for index, (i, j) in enumerate(pairs(classes)):
        balance[index, i], balance[index, j] = 0.5, -0.5
    # A vote for i rather than j, counted as half a vote for i and half a vote against j: the order is the same.
    sides = node.pointwise(lambda s: (s > 0.0).convert(x.dtype) * 2.0 - 1.0, decisions)
    best = node.add(ArgReduce("max", 1, keep_dims=False), node.add(Dot(), sides, node.constant(balance)))
    label = labelled(node, labels, best)
    if node.attr_floats("prob_a", ()) or node.attr_floats("prob_b", ()):
        chances = node.builder.convert(couple(node, _wins(node, decisions, classes), classes), FLOAT32)
        return [label, transform_scores(node, chances, transform)]
    scores = node.builder.convert(decisions, FLOAT32)
    return [label, (two_scores if classes == 2 else transform_scores)(node, scores, transform)]


def _decisions(node: Node, x: Value, counts: tuple[int, ...]) -> Value:
    """The scores [N, pairs] of the classifiers of all pairs of classes.

    The coefficients are [classes - 1, vectors]: those of the vectors of class i against class j lie in row j - 1
    where i < j, else in row j.
    """
    classes, vectors = len(counts), sum(counts)
    kernels = _kernels(node, x, vectors)
    coefficients = floats(node, "coefficients", x)
    if len(coefficients) != (classes - 1) * vectors:
        node.fail(f"{len(coefficients)} coefficients are given, expected {classes - 1} x {vectors} (support vectors)")
    table = np.ascontiguousarray(coefficients.reshape(classes - 1, vectors).T)
    parts, begin = [], 0
    for count in counts:
        part = node.add(Slice((begin,), (begin + count,), (1,)), kernels)
        parts.append(node.add(Dot(), part, node.constant(table[begin : begin + count])))
        begin += count
    sums = node.add(Concat(1), *parts)  # of class i against all others, i (classes - 1) + row
    first = [i * (classes - 1) + j - 1 for i, j in pairs(classes)]
    second = [j * (classes - 1) + i for i, j in pairs(classes)]
    sides = [node.add(Gather(1), sums, node.constant(np.array(places, np.int64))) for places in (first, second)]
    rho = node.constant(_rho(node, x, len(first)))
    return node.pointwise(lambda a, b, r: a + b + r, *sides, rho)


def _wins(node: Node, decisions: Value, classes: int) -> Value:
    """The chance of the first class of each pair, by the logistic function of its score (Platt)."""
    a, b = floats(node, "prob_a", decisions), floats(node, "prob_b", decisions)
    count = len(pairs(classes))
    if (len(a), len(b)) != (count, count):
        node.fail(f"{len(a)} prob_a and {len(b)} prob_b are given, expected {count} of each, one for a pair of classes")
    return node.pointwise(
        lambda s, p, q: sigmoid(-(s * p + q)).max(_LEAST).min(1.0 - _LEAST),
        decisions,
        node.constant(a),
        node.constant(b),
    )


def _linear(node: Node, x: Value, coefficients: Array, rows: int) -> Value:
    """x[N, F] times the coefficients [rows, F]. A kernel has no meaning here."""
    node.ignore("kernel_type", "kernel_params", "support_vectors", "vectors_per_class", "rho")
    count = feature_count(node, x, coefficients, rows, "coefficients")
    return node.add(Dot(), x, node.constant(np.ascontiguousarray(coefficients.reshape(rows, count).T)))


def _kernels(node: Node, x: Value, vectors: int) -> Value:
    """The kernel of each row of x[N, F] with each of the support vectors, [N, vectors]."""
    supports = floats(node, "support_vectors", x)
    count = feature_count(node, x, supports, vectors, "numbers of support vectors")
    supports = supports.reshape(vectors, count)
    kind = node.attr_choice("kernel_type", "LINEAR", _KERNELS)
    given = node.attr_floats("kernel_params", ())
    if len(given) not in (0, 3):
        node.fail(f"attribute 'kernel_params' holds {len(given)} numbers, expected gamma, coef0 and degree")
    gamma, shift, degree = given or (0.0, 0.0, 0.0)
    if kind == "RBF":
        squares = _squared_distances(node, x, supports)
        return node.pointwise(lambda square: (square * -gamma).exp().convert(x.dtype), squares)
    products = node.add(Dot(), x, node.constant(np.ascontiguousarray(supports.T)))
    if kind == "POLY":
        return node.pointwise(lambda product: (product * gamma + shift).pow(degree), products)
    if kind == "SIGMOID":
        return node.pointwise(lambda product: (product * gamma + shift).tanh(), products)
    return products


def _squared_distances(node: Node, x: Value, points: Array) -> Value:
    """|x - y|² of each row of x[N, F] and of `points` [V, F], in float64, as x² + y² - 2 x y.

    That is a matrix product where the differences would be [N, V, F]; what cancels is far below a step of float32.
    """
    wide = node.builder.convert(x, FLOAT64)
    others = node.builder.convert(node.constant(np.ascontiguousarray(points.T)), FLOAT64)
    products = node.add(Dot(), wide, others)
    left, right = (
        node.add(Reduce("sum", (axis,)), node.pointwise("mul", value, value))
        for axis, value in ((1, wide), (0, others))
    )
    return node.pointwise(lambda p, a, b: a.isinf().select(a, (a + b - p * 2.0).max(0.0)), products, left, right)


def _rho(node: Node, x: Value, least: int) -> Array:
    """The first `least` numbers of rho in the type of `x`."""
    rho = floats(node, "rho", x)
    if len(rho) < least:
        node.fail(f"attribute 'rho' holds {len(rho)} numbers, expected {least}")
    return rho[:least]
