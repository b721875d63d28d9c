"""Probabilities of classes from those of all pairs of classes.

Wu, Lin, Weng: Probability estimates for multi-class classification by pairwise coupling (2004), algorithm 2 with the
stopping rule of libsvm, which ONNX Runtime and onnx.reference keep: at most max(100, k) rounds, and a row is done
where no entry of Q p is further than 0.005 / k from p' Q p.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.frontends.onnx.node import Node
from argosy.ir.builder import Builder
from argosy.ir.dtype import BOOL, INT64, Array
from argosy.ir.module import Module, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.control import Loop
from argosy.ops.index import Gather
from argosy.ops.joining import Concat
from argosy.ops.reduce import Reduce
from argosy.ops.slicing import Pad
from argosy.ops.view import Broadcast, Reshape, Squeeze, Transpose, Unsqueeze

__all__ = ["couple", "pairs"]

_STATE: Final = ("p", "product", "energy", "q")


def pairs(classes: int) -> list[tuple[int, int]]:
    """All pairs (i, j) of classes with i < j, in the order in which one-against-one classifiers lie."""
    return list(itertools.combinations(range(classes), 2))


def couple(node: Node, wins: Value, classes: int) -> Value:
    """Probabilities [N, k] of the classes from wins[N, pairs]: the chance of the first class of each pair.

    `wins` must lie strictly between 0 and 1.
    """
    coupling = _coupling(node, wins, classes)
    begin = node.add(Broadcast((wins.shape[0], classes)), node.constant(1.0 / classes, wins.dtype))
    body = _round(node, begin.type, coupling.type, classes)
    return node.add(Loop(body, 1), node.constant(max(100, classes), INT64), None, begin, coupling)


def _coupling(node: Node, wins: Value, classes: int) -> Value:
    """Q[N, k, k]: the sum of the squares of all r[i, t] where t meets itself, else -r[j, t] r[t, j].

    r[i, j] is the chance of i against j, and 0 where a class meets itself.
    """
    losses = node.pointwise(lambda win: 1.0 - win, wins)
    both = node.add(Pad("constant", (0, 1), (1,)), node.add(Concat(1), wins, losses))
    places: Array = np.full((classes, classes), 2 * len(pairs(classes)), np.int64)
    for index, (i, j) in enumerate(pairs(classes)):
        places[i, j], places[j, i] = index, len(pairs(classes)) + index
    against = node.add(Gather(1), both, node.constant(places))
    squares = node.add(Reduce("sum", (1,)), node.pointwise("mul", against, against))
    same = node.constant(np.eye(classes), wins.dtype)
    turned = node.add(Transpose((0, 2, 1)), against)
    return node.pointwise(lambda one, square, r, t: one * square - r * t, same, squares, against, turned)


def _round(node: Node, p_type: Type, q_type: Type, classes: int) -> Module:
    """The body of the loop over rounds: every class once, for the rows that are not done."""
    builder = Builder("round", namer=node.builder.namer).at(node.label)
    builder.parameter("number", TensorType(INT64, ()))
    builder.parameter("again", TensorType(BOOL, ()))
    p, q = builder.parameter("p", p_type), builder.parameter("q", q_type)
    product = builder.add(
        Reduce("sum", (2,), keep_dims=False), builder.pointwise("mul", q, builder.add(Unsqueeze((1,)), p))
    )
    energy = builder.add(Reduce("sum", (1,)), builder.pointwise("mul", p, product))
    error = builder.add(Reduce("max", (1,)), builder.pointwise(lambda a, b: (a - b).abs(), product, energy))
    limit = 0.005 / classes
    busy = builder.pointwise(lambda e: e >= limit, error)
    step = _step(node, (p.type, product.type, energy.type, q.type), classes)
    moved, *_ = builder.add_all(Loop(step, 3), builder.constant(classes, INT64), None, p, product, energy, q)
    chosen = builder.pointwise(lambda go, new, old: go.select(new, old), busy, moved, p)
    return builder.module([("again", builder.add(Reduce("max", (0, 1), keep_dims=False), busy)), ("p", chosen)])


def _step(node: Node, types: Sequence[Type], classes: int) -> Module:
    """The body of the loop over classes: p[t] is moved to its best, p made to add up to 1, Q p and p' Q p follow."""
    builder = Builder("class", namer=node.builder.namer).at(node.label)
    number = builder.parameter("number", TensorType(INT64, ()))
    again = builder.parameter("again", TensorType(BOOL, ()))
    p, product, energy, q = (builder.parameter(name, kind) for name, kind in zip(_STATE, types, strict=True))
    place = builder.add(Reshape((1,)), number)
    row = builder.add(Squeeze((1,)), builder.add(Gather(1), q, place))
    own, met = builder.add(Gather(1), row, place), builder.add(Gather(1), product, place)
    change = builder.pointwise(lambda e, m, o: (e - m) / o, energy, met, own)
    here = builder.pointwise(
        lambda t, at: t.eq(at).convert(p.dtype), builder.constant(np.arange(classes), INT64), number
    )
    new = builder.pointwise(lambda old, by, at: (old + by * at) / (by + 1.0), p, change, here)
    follow = builder.pointwise(lambda old, by, line: (old + by * line) / (by + 1.0), product, change, row)
    left = builder.pointwise(
        lambda e, by, o, m: (e + by * (by * o + m * 2.0)) / (by + 1.0) / (by + 1.0), energy, change, own, met
    )
    return builder.module([("again", again), *zip(_STATE, (new, follow, left), strict=False)])
