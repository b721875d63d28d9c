"""Ensembles of decision trees (ai.onnx.ml): every row walks down every tree, and the leaves that it meets are added up.

All trees lie in one set of node arrays, which are operands, so that large ensembles are weights like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import Array, DType
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import demand_room
from argosy.ops.operands import present

__all__ = ["AGGREGATES", "LEAF", "MODES", "TreeEnsemble"]

LEAF: Final = 255
"""The mode of a node that ends a path; it is its own child."""

# The modes of branches, numbered as in TreeEnsemble 5: `value mode split` leads to the true child.
MODES: Final[dict[int, Callable[[Array, Array], Array]]] = {
    0: np.less_equal,
    1: np.less,
    2: np.greater_equal,
    3: np.greater,
    4: np.equal,
    5: np.not_equal,
}
AGGREGATES: Final = ("average", "sum", "min", "max")


@register
@dataclass(frozen=True, slots=True)
class TreeEnsemble(Op):
    """Sum, average, minimum or maximum over all trees of the weights at the leaves that each row of x[N, F] reaches.

    Operands: x; of each node, its feature, split, mode, true child, false child, and whether NaN takes the true
    branch; the root of each tree; of each node, where its weights begin (and one end more); of each weight, its
    target and value. The result is [N, targets]; a target without a weight is 0. `depth` bounds the number of steps,
    `columns` is how many features x must have.
    """

    name = "tree_ensemble"
    aggregate: str
    targets: int
    depth: int
    dtype: DType
    columns: int = 0

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x = present(operands[0]).tensor
        if self.aggregate not in AGGREGATES:
            raise ModelError(f"the aggregate is {self.aggregate!r}, expected one of {', '.join(AGGREGATES)}")
        if len(x.shape) != 2:
            raise ModelError(f"the input of a tree ensemble has rank {len(x.shape)}, expected 2 (rows, features)")
        if isinstance(x.shape[1], int) and x.shape[1] < self.columns:
            raise ModelError(f"a node asks for feature {self.columns - 1}, x has {x.shape[1]}")
        demand_room(x.shape[1] - self.columns, 1)
        return (TensorType(self.dtype, (x.shape[0], self.targets)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(self.dtype, None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, features, splits, modes, yes, no, missing, roots, starts, targets, weights = values
        leaves = self._walk(x, features, splits, modes, yes, no, missing, roots)
        fill = {"min": np.inf, "max": -np.inf}.get(self.aggregate, 0.0)
        result = np.full((len(x), self.targets), fill)
        gather = {"min": np.minimum, "max": np.maximum}.get(self.aggregate, np.add)
        counts = starts[leaves + 1] - starts[leaves]
        for offset in range(int(counts.max(initial=0))):
            rows, trees = np.nonzero(offset < counts)
            entries = starts[leaves[rows, trees]] + offset
            gather.at(result, (rows, targets[entries]), weights[entries])
        if self.aggregate == "average":
            result /= len(roots)
        return (np.where(np.isfinite(result) | (fill == 0.0), result, 0.0).astype(self.dtype.numpy),)

    def _walk(
        self,
        x: Array,
        features: Array,
        splits: Array,
        modes: Array,
        yes: Array,
        no: Array,
        missing: Array,
        roots: Array,
    ) -> Array:
        """The leaf that each row reaches in each tree, [N, trees]."""
        nodes = np.broadcast_to(roots, (len(x), len(roots)))
        if x.dtype.kind in "iub":
            x = x.astype(np.float64)
        rows = np.arange(len(x))[:, None]
        present_modes = [mode for mode in np.unique(modes).tolist() if mode != LEAF]
        for _ in range(self.depth):
            value, split, mode = x[rows, features[nodes]], splits[nodes], modes[nodes]
            taken = missing[nodes] & np.isnan(value)
            for code in present_modes:
                taken |= (mode == code) & MODES[code](value, split)
            nodes = np.where(taken, yes[nodes], no[nodes])
        return nodes
