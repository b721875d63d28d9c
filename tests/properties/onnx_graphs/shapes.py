"""Templates of ops that move, pick and order elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.properties.onnx_graphs.elementwise import NUMBERS, partner
from tests.properties.onnx_graphs.graph import Graph, NotDrawn, Template, Value

__all__ = ["TEMPLATES"]

ANY: Final = (*NUMBERS, "bool", "object")


def axis_of(graph: Graph, x: Value, ranks: int | None = None) -> int:
    """An axis, counted from either side."""
    rank = x.rank if ranks is None else ranks
    return graph.rng.randrange(-rank, rank) if graph.opset >= 11 else graph.rng.randrange(rank)


def steer(graph: Graph, op: str, since: int, x: Value, name: str, *values: int) -> None:
    """Numbers that are an input from version `since` on, and an attribute before."""
    if graph.since(op) >= since:
        graph.node(op, x, graph.ints(*values))
    else:
        attributes: dict[str, Any] = {name: list(values)}
        graph.node(op, x, **attributes)


def reshape(graph: Graph, op: str) -> None:
    x = graph.pick(*ANY)
    sizes = list(x.shape)
    graph.rng.shuffle(sizes)
    if len(sizes) > 1 and graph.flag():
        sizes[:2] = [sizes[0] * sizes[1]]
    if sizes and graph.flag():
        sizes[graph.rng.randrange(len(sizes))] = -1
    graph.node(op, x, graph.ints(*sizes))


def transpose(graph: Graph, op: str) -> None:
    x = graph.pick(*ANY, ranks=(1, 2, 3, 4))
    graph.node(op, x, perm=graph.one(None, graph.rng.sample(range(x.rank), x.rank)))


def flatten(graph: Graph, op: str) -> None:
    x = graph.pick(*NUMBERS, ranks=(1, 2, 3, 4))
    graph.node(op, x, axis=graph.rng.randrange(x.rank + 1))


def squeeze(graph: Graph, op: str) -> None:
    x = graph.pick(*ANY, ranks=(1, 2, 3), where=lambda value: 1 in value.shape)
    steer(graph, op, 13, x, "axes", x.shape.index(1))


def unsqueeze(graph: Graph, op: str) -> None:
    x = graph.pick(*ANY, ranks=(0, 1, 2, 3))
    count = graph.one(1, 2)
    axes = sorted(graph.rng.sample(range(x.rank + count), count))
    steer(graph, op, 13, x, "axes", *axes)


def concat(graph: Graph, op: str) -> None:
    x = graph.pick(*ANY, ranks=(1, 2, 3))
    axis = graph.rng.randrange(x.rank)
    others = []
    for _ in range(graph.one(0, 1, 2)):
        shape = list(x.shape)
        shape[axis] = graph.one(1, 2, 3)
        others.append(graph.tensor(x.dtype, shape))
    graph.node(op, x, *others, axis=axis)


def split(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", ranks=(1, 2, 3), where=lambda value: value.shape[-1] > 1)
    axis, size = x.rank - 1, x.shape[-1]
    first = graph.one(*range(1, size))
    if graph.since(op) >= 18 and graph.flag():
        graph.node(op, x, outputs=2, axis=axis, num_outputs=2)
    elif graph.since(op) >= 13:
        graph.node(op, x, graph.ints(first, size - first), outputs=2, axis=axis)
    else:
        graph.node(op, x, outputs=2, axis=axis, split=[first, size - first])


def slice_(graph: Graph, op: str) -> None:
    x = graph.pick(*NUMBERS, ranks=(1, 2, 3))
    axes = graph.rng.sample(range(x.rank), graph.one(*range(1, x.rank + 1)))
    starts = [graph.one(0, 0, 1, -2, -100) for _ in axes]
    ends = [graph.one(2, 3, -1, 100, 2**31 - 1) for _ in axes]
    steps = [graph.one(1, 2, -1) for _ in axes]
    # ONNX Runtime takes the largest int32 as "to the end" also of negative steps, where the standard clamps it.
    ends = [min(end, 100) if step < 0 else end for end, step in zip(ends, steps, strict=True)]
    if graph.since(op) < 10:
        graph.node(op, x, starts=starts, ends=ends, axes=axes)
        return
    operands = [graph.ints(*starts), graph.ints(*ends), graph.ints(*axes)]
    if graph.flag(0.4):
        operands.append(graph.ints(*steps))
    graph.node(op, x, *operands)


def gather(graph: Graph, op: str) -> None:
    # No strings: ONNX Runtime 1.32 gives an empty text for the second of two equal indices.
    x = graph.pick(*NUMBERS, "bool", ranks=(1, 2, 3))
    axis = axis_of(graph, x)
    size = x.shape[axis]
    low = -size if graph.opset >= 11 else 0
    if op == "Gather":
        shape = graph.sizes(graph.one(0, 1, 2))
    else:
        shape = tuple(graph.one(1, 3) if place == axis % x.rank else dim for place, dim in enumerate(x.shape))
    places = graph.tensor(graph.one("int64", "int32"), shape, low, size - 1)
    graph.node(op, x, places, axis=axis)


def gather_nd(graph: Graph, op: str) -> None:
    x = graph.pick(*NUMBERS, ranks=(1, 2, 3))
    depth = graph.one(*range(1, x.rank + 1))
    rows = graph.sizes(graph.one(1, 2))
    places = [graph.array("int64", rows, -size, size - 1) for size in x.shape[:depth]]
    graph.node(op, x, graph.new(np.stack(places, -1)))


def scatter_elements(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", ranks=(1, 2, 3))
    axis = axis_of(graph, x)
    shape = list(x.shape)
    order = graph.numbers.permutation(shape[axis])[: graph.one(1, 2)]
    shape[axis] = len(order)
    expand = [1] * x.rank
    expand[axis] = len(order)
    places = np.broadcast_to(order.reshape(expand), shape)
    reduction = graph.one(None, "add", "mul") if graph.since(op) >= 16 else None
    graph.node(op, x, graph.new(places.copy()), graph.tensor(x.dtype, shape), axis=axis, reduction=reduction)


def scatter_nd(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", ranks=(1, 2, 3))
    rows = graph.numbers.permutation(x.shape[0])[: graph.one(1, 2)].reshape(-1, 1)
    reduction = graph.one(None, "add", "mul") if graph.since(op) >= 16 else None
    graph.node(op, x, graph.new(rows), graph.tensor(x.dtype, (len(rows), *x.shape[1:])), reduction=reduction)


def expand(graph: Graph, op: str) -> None:
    x = graph.pick(*NUMBERS, ranks=(0, 1, 2))
    sizes = [graph.one(size, 1) if size > 1 else graph.one(1, 3) for size in x.shape]
    graph.node(op, x, graph.ints(*([graph.one(1, 2)] if graph.flag() else []), *sizes))


def tile(graph: Graph, op: str) -> None:
    x = graph.pick(*NUMBERS, ranks=(1, 2, 3))
    graph.node(op, x, graph.ints(*(graph.one(1, 2, 3) for _ in x.shape)))


def pad(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", ranks=(1, 2, 3))
    mode = graph.one("constant", "reflect", "edge")
    pads = [graph.one(0, 1, *((2, -1) if mode == "constant" and min(x.shape) > 2 else ())) for _ in range(2 * x.rank)]
    if mode == "reflect" and min(x.shape) < 2:
        raise NotDrawn
    if graph.since(op) < 11:
        if x.dtype != "float32":
            raise NotDrawn
        graph.node(op, x, mode=mode, pads=pads, value=graph.one(None, 1.5))
        return
    value = graph.tensor(x.dtype, ()) if mode == "constant" and graph.flag() else None
    graph.node(op, x, graph.ints(*pads), value, mode=mode)


def shape(graph: Graph, op: str) -> None:
    x = graph.pick(*ANY)
    if op == "Shape" and graph.since(op) >= 15:
        graph.node(op, x, start=graph.one(None, 0, 1, -1), end=graph.one(None, 2, -1))
    else:
        graph.node(op, x)


def nonzero(graph: Graph, op: str) -> None:
    graph.node(op, graph.pick("float32", "int64", "bool", "uint8", ranks=(1, 2, 3)))


def compress(graph: Graph, op: str) -> None:
    x = graph.pick(*NUMBERS, ranks=(1, 2, 3))
    axis = graph.one(None, axis_of(graph, x))
    size = x.array.size if axis is None else x.shape[axis]
    graph.node(op, x, graph.tensor("bool", (size,)), axis=axis)


def topk(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", ranks=(1, 2, 3), where=lambda value: value.finite)
    axis = axis_of(graph, x)
    k = graph.one(1, x.shape[axis])
    if graph.since(op) < 10:
        graph.node(op, x, outputs=2, axis=axis, k=k)
    elif graph.since(op) < 11:
        graph.node(op, x, graph.ints(k), outputs=2, axis=axis)
    else:
        graph.node(op, x, graph.ints(k), outputs=2, axis=axis, largest=graph.one(0, 1))


def cumulative(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", "int32", ranks=(1, 2, 3))
    axis = graph.new(np.array(axis_of(graph, x)))
    graph.node(op, x, axis, exclusive=graph.one(None, 1), reverse=graph.one(None, 1))


def reverse_sequence(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", ranks=(2, 3))
    batch = graph.one(0, 1)
    lengths = graph.tensor("int64", (x.shape[batch],), 1, x.shape[1 - batch])
    graph.node(op, x, lengths, batch_axis=batch, time_axis=1 - batch)


def one_hot(graph: Graph, op: str) -> None:
    x = graph.pick("int64", "int32", ranks=(0, 1, 2))
    values = graph.tensor(graph.one("float32", "int64"), (2,))
    graph.node(op, x, graph.ints(graph.one(2, 4)), values, axis=graph.one(-1, 0, x.rank))


def trilu(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", ranks=(2, 3))
    k = graph.one(None, graph.new(np.array(graph.one(-1, 0, 1))))
    graph.node(op, x, k, upper=graph.one(None, 0))


def blocks(graph: Graph, op: str) -> None:
    if op == "DepthToSpace":
        x = graph.tensor("float32", (*graph.sizes(1), 4 * graph.one(1, 2), *graph.sizes(2)))
        graph.node(op, x, blocksize=2, mode=graph.one(None, "CRD", "DCR") if graph.since(op) >= 11 else None)
    else:
        graph.node(op, graph.tensor("float32", (*graph.sizes(2), 2, 4)), blocksize=2)


def eye_like(graph: Graph, op: str) -> None:
    graph.node(op, graph.pick("float32", "int64", ranks=(2,)), k=graph.one(None, 1, -1))


def range_(graph: Graph, op: str) -> None:
    kind = graph.one("float32", "int64", "int32")
    start, limit, delta = graph.one((0, 5, 1), (5, 0, -2), (1, 1, 1), (-3, 4, 3))
    graph.node(op, *(graph.new(np.array(value, kind)) for value in (start, limit, delta)))


def unique(graph: Graph, op: str) -> None:
    # Of an empty one, with an axis, ONNX Runtime ends the process.
    x = graph.pick("float32", "int64", ranks=(1, 2), where=lambda value: value.finite and value.array.size > 0)
    graph.node(op, x, outputs=4, axis=graph.one(None, 0), sorted=graph.one(None, 0))


def sequences(graph: Graph, op: str) -> None:
    """A sequence is made, and one op more uses it."""
    x = graph.pick("float32", "int64", ranks=(1, 2))
    if op == "SplitToSequence":
        sizes = graph.one(None, graph.new(np.array(1)))
        graph.node(op, x, sizes, axis=0, keepdims=graph.one(None, 0) if sizes is None else None)
        return
    [sequence] = graph.node("SequenceConstruct", x, partner(graph, x, within=True) if x.rank == 1 else x)
    place = graph.new(np.array(graph.one(0, -1)))
    if op == "SequenceInsert":
        graph.node(op, sequence, x, graph.one(None, place))
    elif op in ("SequenceAt", "SequenceErase"):
        graph.node(op, sequence, place)
    elif op == "ConcatFromSequence":
        graph.node(op, sequence, axis=0, new_axis=graph.one(None, 1))
    elif op == "SequenceLength":
        graph.node(op, sequence)


TEMPLATES: dict[str, Template] = {
    "Reshape": reshape,
    "Transpose": transpose,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Concat": concat,
    "Split": split,
    "Slice": slice_,
    "Gather": gather,
    "GatherElements": gather,
    "GatherND": gather_nd,
    "ScatterElements": scatter_elements,
    "Scatter": scatter_elements,
    "ScatterND": scatter_nd,
    "Expand": expand,
    "Tile": tile,
    "Pad": pad,
    "Shape": shape,
    "Size": shape,
    "NonZero": nonzero,
    "Compress": compress,
    "TopK": topk,
    "CumSum": cumulative,
    "CumProd": cumulative,
    "ReverseSequence": reverse_sequence,
    "OneHot": one_hot,
    "Trilu": trilu,
    "DepthToSpace": blocks,
    "SpaceToDepth": blocks,
    "EyeLike": eye_like,
    "Range": range_,
    "Unique": unique,
    **dict.fromkeys(
        [
            *("SplitToSequence", "SequenceConstruct", "SequenceInsert", "SequenceAt", "SequenceErase"),
            *("SequenceLength", "ConcatFromSequence"),
        ],
        sequences,
    ),
}
