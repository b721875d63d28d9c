"""Trees as ONNX writes them, brought into the node arrays of `argosy.ops.trees`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from argosy.errors import ModelError
from argosy.frontends.onnx.node import Node
from argosy.ir.dtype import Array, DType
from argosy.ir.module import Value
from argosy.ops.trees import LEAF, TreeEnsemble

__all__ = ["Branches", "Forest", "Weights", "same_length"]

_NAMES = {
    "BRANCH_LEQ": 0,
    "BRANCH_LT": 1,
    "BRANCH_GTE": 2,
    "BRANCH_GT": 3,
    "BRANCH_EQ": 4,
    "BRANCH_NEQ": 5,
    "LEAF": LEAF,
}


@dataclass(frozen=True, slots=True)
class Branches:
    """Nodes, leaves included: arrays of one length; children are positions in them."""

    features: Array
    splits: Array
    modes: Array
    yes: Array
    no: Array
    missing: Array


@dataclass(frozen=True, slots=True)
class Weights:
    """What leaves add: the node, the target and the value of each entry."""

    nodes: Array
    targets: Array
    values: Array


@dataclass(frozen=True, slots=True)
class Forest:
    """Checked trees: every path ends in a leaf after at most `depth` steps."""

    branches: Branches
    weights: Weights
    roots: Array
    depth: int

    @staticmethod
    def of(branches: Branches, weights: Weights, roots: Array) -> Forest:
        """The forest; raises ModelError where a child does not exist or a path never ends."""
        count = len(branches.modes)
        for children in (branches.yes, branches.no, roots, weights.nodes):
            if len(children) and (children.min() < 0 or children.max() >= count):
                raise ModelError(f"a tree names a node outside 0..{count - 1}")
        if count and branches.features.min() < 0:
            raise ModelError(f"a node of a tree asks for feature {branches.features.min()}, expected 0 or more")
        return Forest(branches, weights, roots, _depth(branches, roots))

    @staticmethod
    def from_lists(node: Node, weights: str, ids: str) -> Forest:
        """The forest in the attributes `nodes_…` and `<weights>_…` of the classifier and the regressor."""
        same_length(
            node,
            *("nodes_treeids", "nodes_nodeids", "nodes_modes", "nodes_featureids", "nodes_truenodeids"),
            *("nodes_falsenodeids", "nodes_values", "nodes_values_as_tensor", "nodes_missing_value_tracks_true"),
        )
        same_length(
            node, f"{weights}_treeids", f"{weights}_nodeids", ids, f"{weights}_weights", f"{weights}_weights_as_tensor"
        )
        trees, numbers = node.attr_ints("nodes_treeids"), node.attr_ints("nodes_nodeids")
        place = {key: index for index, key in enumerate(zip(trees, numbers, strict=True))}
        modes = np.array([_mode(name) for name in node.attr_strings("nodes_modes")], np.uint8)
        leaf = modes == LEAF
        itself = np.arange(len(modes))

        def children(name: str) -> Array:
            given = zip(trees, node.attr_ints(name), strict=True)
            found = np.array([place.get(key, -1) for key in given], np.int64)
            return np.where(leaf, itself, found)

        branches = Branches(
            np.where(leaf, 0, np.array(node.attr_ints("nodes_featureids"), np.int64)),
            _numbers(node, "nodes_values"),
            modes,
            children("nodes_truenodeids"),
            children("nodes_falsenodeids"),
            np.array(node.attr_ints("nodes_missing_value_tracks_true", [0] * len(modes)), np.bool_),
        )
        node.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")  # statistics of the training
        keys = zip(node.attr_ints(f"{weights}_treeids"), node.attr_ints(f"{weights}_nodeids"), strict=True)
        entries = Weights(
            np.array([place.get(key, -1) for key in keys], np.int64),
            np.array(node.attr_ints(ids), np.int64),
            _numbers(node, f"{weights}_weights"),
        )
        reached = set(branches.yes[~leaf].tolist()) | set(branches.no[~leaf].tolist())
        roots: dict[int, int] = {}
        for index, tree in enumerate(trees):
            if index not in reached:
                roots.setdefault(tree, index)
        return Forest.of(branches, entries, np.array(list(roots.values()), np.int64))

    def add(self, node: Node, x: Value, aggregate: str, targets: int, dtype: DType) -> Value:
        """Append the ensemble; the result is [rows, targets]."""
        named = self.weights.targets
        if len(named) and (named.min() < 0 or named.max() >= targets):
            node.fail(f"leaves have the targets {named.min()}..{named.max()}, expected 0..{targets - 1}")
        order = np.argsort(self.weights.nodes, kind="stable")
        starts = np.searchsorted(self.weights.nodes[order], np.arange(len(self.branches.modes) + 1))
        operands: Sequence[Array] = (
            self.branches.features,
            self.branches.splits,
            self.branches.modes,
            self.branches.yes,
            self.branches.no,
            self.branches.missing,
            self.roots,
            starts.astype(np.int64),
            self.weights.targets[order],
            self.weights.values[order],
        )
        constants = [node.constant(operand) for operand in operands]
        asking = self.branches.features[self.branches.modes != LEAF]
        columns = int(asking.max(initial=-1)) + 1
        return node.add(TreeEnsemble(aggregate, targets, self.depth, dtype, columns), x, *constants)


def same_length(node: Node, *names: str) -> None:
    """Raise ModelError where attributes that are the columns of one table are not of one length."""
    lengths: dict[str, int] = {}
    for name in names:
        entry = node.raw_attribute(name)
        if entry is not None:
            columns = {4: entry.t.dims, 6: entry.floats, 7: entry.ints, 8: entry.strings}  # by AttributeType
            column = columns.get(entry.type, [0])  # another type stands for one value, or is refused when it is read
            lengths[name] = math.prod(column) if entry.type == 4 else len(column)
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        node.fail(f"the attributes need one entry for each node: {told}")


def _mode(name: str) -> int:
    if name not in _NAMES:
        raise ModelError(f"a node of a tree has the mode {name!r}, expected one of {', '.join(_NAMES)}")
    return _NAMES[name]


def _numbers(node: Node, name: str) -> Array:
    """FLOATS, or a tensor (of doubles) under the name with `_as_tensor` behind it."""
    if node.has(f"{name}_as_tensor"):
        node.ignore(name)
        return node.attr_tensor(f"{name}_as_tensor").array().reshape(-1)
    return np.array(node.attr_floats(name), np.float32)


def _depth(branches: Branches, roots: Array) -> int:
    """Steps from the roots until only leaves are left; raises ModelError where that never happens."""
    level = np.unique(roots)
    for depth in range(len(branches.modes) + 1):
        inner = level[branches.modes[level] != LEAF]
        if not len(inner):
            return depth
        level = np.unique(np.concatenate([branches.yes[inner], branches.no[inner]]))
    raise ModelError("a tree has a cycle: one of its paths never ends")
