"""ai.onnx.ml: tree ensembles. What the standard leaves open (two classes, post transforms) is as in ONNX Runtime."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from argosy.frontends.onnx.forest import Branches, Forest, Weights, same_length
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import ML, onnx_op
from argosy.frontends.onnx.scores import TRANSFORMS, class_labels, transform_scores
from argosy.ir.dtype import FLOAT32, INT64, Array
from argosy.ir.module import Value
from argosy.ops.index import Gather
from argosy.ops.joining import Concat
from argosy.ops.reduce import ArgReduce, Reduce
from argosy.ops.trees import LEAF

_MEMBER: Final = 6


@onnx_op("TreeEnsembleRegressor", domain=ML)
def TreeEnsembleRegressor(node: Node) -> Value:
    """A number for each row and target."""
    targets = node.attr_int("n_targets", 1)
    aggregate = node.attr_choice("aggregate_function", "SUM", ("AVERAGE", "SUM", "MIN", "MAX")).lower()
    forest = Forest.from_lists(node, "target", "target_ids")
    scores = forest.add(node, node.input(0), aggregate, targets, FLOAT32)
    base = _base_values(node)
    if len(base) not in (0, targets):
        node.fail(f"{len(base)} base_values are given for {targets} targets")
    return transform_scores(node, _shift(node, scores, base), node.attr_choice("post_transform", "NONE", TRANSFORMS))


@onnx_op("TreeEnsembleClassifier", domain=ML)
def TreeEnsembleClassifier(node: Node) -> list[Value]:
    """The label of the best class of each row, and the scores of all classes.

    Of two classes where the leaves name only one, that one's score s decides: against 1/2 where no weight is
    negative (the other class gets 1 - s), else against 0 (the other class gets -s); SOFTMAX is not applied then.
    Everywhere else the class of the greatest score is it, for two classes too, where ONNX Runtime answers 1 or 0
    whatever the labels are.
    """
    labels = class_labels(node, "classlabels_int64s")
    forest = Forest.from_lists(node, "class", "class_ids")
    transform = node.attr_choice("post_transform", "NONE", TRANSFORMS)
    base = _base_values(node)
    single = np.unique(forest.weights.targets)
    if len(labels) == 2 and len(single) == 1 and len(base) < 2:
        return _two_classes(node, forest, labels, base, transform)
    scores = _shift(node, forest.add(node, node.input(0), "sum", len(labels), FLOAT32), base)
    best = node.add(ArgReduce("max", 1, keep_dims=False), scores)
    return [node.add(Gather(0), node.constant(labels), best), transform_scores(node, scores, transform)]


def _two_classes(node: Node, forest: Forest, labels: Array, base: Array, transform: str) -> list[Value]:
    weights = Weights(forest.weights.nodes, np.zeros_like(forest.weights.targets), forest.weights.values)
    one = Forest(forest.branches, weights, forest.roots, forest.depth)
    score = _shift(node, one.add(node, node.input(0), "sum", 1, FLOAT32), base)
    positive = not bool((weights.values < 0).any())
    threshold = 0.5 if positive else 0.0
    chosen = node.pointwise(lambda s: (s > threshold).convert(INT64), score)
    last = node.add(Reduce("sum", (1,), keep_dims=False), chosen)  # one column: drops the axis
    label = node.add(Gather(0), node.constant(labels), last)
    # Weights that are all positive are probabilities already, unless LOGISTIC makes them so.
    mirrored = not positive or transform == "LOGISTIC"
    other = node.pointwise("neg", score) if mirrored else node.pointwise(lambda s: 1.0 - s, score)
    scores = node.add(Concat(1), other, score)
    return [label, transform_scores(node, scores, transform) if transform in ("LOGISTIC", "PROBIT") else scores]


@onnx_op("TreeEnsemble", since=5, domain=ML)
def TreeEnsemble(node: Node) -> Value:
    """The form of version 5: branches and leaves apart, branches on sets of values, results of the input's type."""
    x = node.input(0)
    aggregate = ("average", "sum", "min", "max")[_code(node, "aggregate_function", 1, 4)]
    transform = TRANSFORMS[_code(node, "post_transform", 0, len(TRANSFORMS))]
    node.ignore("nodes_hitrates")
    scores = _separate(node).add(node, x, aggregate, node.attr_int("n_targets", 1), x.dtype)
    return transform_scores(node, scores, transform)


def _code(node: Node, name: str, default: int, count: int) -> int:
    code = node.attr_int(name, default)
    if not 0 <= code < count:
        node.fail(f"attribute {name!r} is {code}, expected 0..{count - 1}")
    return code


def _separate(node: Node) -> Forest:
    """Branches first, then leaves; a branch that asks for a member of a set becomes a chain of comparisons."""
    same_length(
        node,
        *("nodes_modes", "nodes_splits", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids"),
        *("nodes_trueleafs", "nodes_falseleafs", "nodes_missing_value_tracks_true"),
    )
    same_length(node, "leaf_targetids", "leaf_weights")
    modes = node.attr_tensor("nodes_modes").array().reshape(-1).astype(np.int64)
    splits = node.attr_tensor("nodes_splits").array().reshape(-1)
    weights = node.attr_tensor("leaf_weights").array().reshape(-1)
    count = len(modes)

    def children(side: str) -> Array:
        found = np.array(node.attr_ints(f"nodes_{side}nodeids"), np.int64)
        return found + count * np.array(node.attr_ints(f"nodes_{side}leafs"), np.int64)

    leaves = count + np.arange(len(weights))
    none = np.zeros(len(weights), np.int64)
    missing = node.attr_ints("nodes_missing_value_tracks_true", [0] * count)
    branches = Branches(
        np.concatenate([np.array(node.attr_ints("nodes_featureids"), np.int64), none]),
        np.concatenate([splits, none.astype(splits.dtype)]),
        np.concatenate([modes, none + LEAF]).astype(np.uint8),
        np.concatenate([children("true"), leaves]),
        np.concatenate([children("false"), leaves]),
        np.concatenate([np.array(missing, np.bool_), none.astype(np.bool_)]),
    )
    entries = Weights(leaves, np.array(node.attr_ints("leaf_targetids"), np.int64), weights)
    return Forest.of(_without_members(node, branches), entries, np.array(node.attr_ints("tree_roots"), np.int64))


def _without_members(node: Node, branches: Branches) -> Branches:
    asking = np.flatnonzero(branches.modes == _MEMBER)
    if not len(asking):
        node.ignore("membership_values")
        return branches
    values = node.attr_tensor("membership_values").array().reshape(-1)
    sets = np.split(values, np.flatnonzero(np.isnan(values)) + 1)[: len(asking)]
    if len(sets) < len(asking):
        node.fail(f"membership_values hold {len(sets)} sets for {len(asking)} branches that ask for a member")
    columns = [column.tolist() for column in (branches.features, branches.splits, branches.modes, branches.yes)]
    features, splits, modes, yes = columns
    no, missing = branches.no.tolist(), branches.missing.tolist()
    for index, members in zip(asking.tolist(), sets, strict=True):
        wanted = members[~np.isnan(members)].tolist() or [math.nan]  # nothing equals NaN: an empty set has no member
        modes[index], splits[index], otherwise = 4, wanted[0], no[index]
        last = index
        for member in wanted[1:]:
            no[last] = last = len(modes)
            for column, value in ((features, features[index]), (splits, member), (modes, 4), (yes, yes[index])):
                column.append(value)
            no.append(otherwise)
            missing.append(missing[index])
    return Branches(
        np.array(features, np.int64),
        np.array(splits, branches.splits.dtype),
        np.array(modes, np.uint8),
        np.array(yes, np.int64),
        np.array(no, np.int64),
        np.array(missing, np.bool_),
    )


def _base_values(node: Node) -> Array:
    if node.has("base_values_as_tensor"):
        return node.attr_tensor("base_values_as_tensor").array().reshape(-1).astype(np.float32)
    return np.array(node.attr_floats("base_values", ()), np.float32)


def _shift(node: Node, scores: Value, base: Array) -> Value:
    return node.pointwise("add", scores, node.constant(base)) if len(base) else scores
