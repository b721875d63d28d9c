"""Templates of layers: products, windows, norms, reductions, attention, recurrence; what networks are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tests.properties.networks.network import Network, Template, Value
from tests.properties.networks.pointwise import number
from tests.properties.onnx_graphs.graph import ELEMENTS, NotDrawn

__all__ = ["TEMPLATES", "image", "rows"]

_WIDTHS: Final = (1, 2, 3, 4, 5, 7, 8, 16, 17, 32)


def rows(network: Network, *ranks: int) -> Value:
    """Rows of a fixed width, of the network's type; where there are none, perhaps a new input."""
    kind, ranks = ("rows", ranks or (2, 3)) if 2 in (ranks or (2,)) else ("steps", ranks)
    return _some(network, kind, ranks, lambda x: not x.varies(x.rank - 1) and x.arrays[0].shape[-1] > 0)


def image(network: Network, *, axes: int = 2) -> Value:
    """An image of fixed sizes, of two pixels at least each way; where there is none, perhaps a new input."""

    def fits(x: Value) -> bool:
        return not x.varies(1) and min(x.arrays[0].shape[1:]) > 0 and min(x.arrays[0].shape[2:]) > 1

    return _some(network, "image" if axes == 2 else "steps", (axes + 2,), fits)


def _some(network: Network, kind: str, ranks: Sequence[int], where: Callable[[Value], bool]) -> Value:
    try:
        return network.pick(network.real, ranks=ranks, where=where)
    except NotDrawn:
        if len(network.inputs) > 3 or network.flag():
            raise
        made = _input(network, kind)
        if made.rank not in ranks or not where(made):
            raise
        return made


def scaled(network: Network, dtype: str, shape: tuple[int, ...], depth: int) -> Value:
    """Weights of a product over `depth` terms, whose results are of the size of the operands."""
    reach = 1.5 / max(depth, 1) ** 0.5
    return network.weight(dtype, shape, -reach, reach)


def linear(network: Network) -> None:
    """A product with weights, perhaps with a bias and a function behind it."""
    x = rows(network, 1, 2, 3, 4)
    depth, width = x.size(-1), network.one(*_WIDTHS)
    if x.rank == 2 and network.flag(0.4):
        turned = network.flag()
        weight = scaled(network, x.dtype, (width, depth) if turned else (depth, width), depth)
        bias = network.weight(x.dtype, network.one((width,), (1, width), (1,)))
        alpha, beta = network.one((None, None), (0.5, 2.0), (None, 0.0))
        y = network.node("Gemm", x, weight, network.one(None, bias, bias), transB=int(turned), alpha=alpha, beta=beta)
    else:
        y = network.node("MatMul", x, scaled(network, x.dtype, (depth, width), depth))
        if network.flag(0.7):
            y = network.node("Add", y, network.weight(x.dtype, (width,)))
    _follow(network, y)


def _follow(network: Network, y: Value) -> Value:
    if network.flag(0.5):
        y = network.node(network.one("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish"), y)
    return y


def product(network: Network) -> None:
    """A product of two values: turned, of rows with rows, or with another that fits."""
    x = rows(network, 2, 3, 4)
    way = network.rng.randrange(4)
    if way == 0:
        last = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        y = network.node("MatMul", x, network.node("Transpose", x, perm=last))
        network.node("Mul", y, number(network, y, 1 / x.size(-1)))
    elif way == 1 and x.rank == 2:
        y = network.node("Gemm", x, x, transA=1)
        network.node("Mul", y, number(network, y, 0.25))
    elif way == 2 and x.rank == 3:
        y = network.node("Einsum", x, x, equation=network.one("bij,bkj->bik", "bij,bij->bi", "bij,bij->bj"))
    else:
        ends = (*x.dims[:-2], x.dims[-1])
        network.node("MatMul", x, network.pick(x.dtype, ranks=(x.rank,), where=lambda y: y.dims[:-1] == ends))


def attention(network: Network) -> None:
    """Heads, scores, a mask perhaps, a softmax, a product; the scale where a network may have it."""
    x = rows(network, 3)
    width = x.size(-1)
    heads = network.one(*(count for count in (1, 2, 4) if width % count == 0))
    query, key, value = (network.node("MatMul", x, scaled(network, x.dtype, (width, width), width)) for _ in range(3))
    split = network.ints(0, 0, heads, width // heads)
    query, key, value = (
        network.node("Transpose", network.node("Reshape", part, split), perm=[0, 2, turn, 4 - turn])
        for part, turn in ((query, 1), (key, 3), (value, 1))
    )
    scale = number(network, x, (width // heads) ** -0.5)
    if network.flag():
        scores = network.node("Mul", network.node("MatMul", query, key), scale)
    else:
        scores = network.node("MatMul", network.node("Mul", query, scale), key)
    if network.flag() and not x.varies(1):
        mask = np.where(np.tri(x.size(1), dtype=bool), 0, network.one(-np.inf, -1e4)).astype(x.dtype)
        scores = network.add("Add", scores, network.constant(mask, known=True), tame=False)[0]
    found = network.node("MatMul", network.node("Softmax", scores, axis=-1), value)
    joined = network.node("Transpose", found, perm=[0, 2, 1, 3])
    joined = network.node("Reshape", joined, network.ints(0, 0, width))
    if network.flag():
        network.node("Add", x, network.node("MatMul", joined, scaled(network, x.dtype, (width, width), width)))


def _window(network: Network, axes: int) -> dict[str, Any]:
    chosen: dict[str, Any] = {"strides": network.one(None, [network.one(1, 2) for _ in range(axes)])}
    if network.flag(0.3):
        chosen["auto_pad"] = network.one("SAME_UPPER", "SAME_LOWER", "VALID")
    else:
        chosen["pads"] = network.one(None, [network.one(0, 1, 1) for _ in range(2 * axes)])
    return chosen


def convolution(network: Network) -> None:
    axes = network.one(1, 2, 2, 2)
    x = image(network, axes=axes)
    channels = x.size(1)
    group = network.one(1, 1, channels)
    count = group * network.one(1, 2, 3, *((8, 16) if group == 1 else ()))
    kernel = [network.one(1, 2, 3) for _ in range(axes)]
    depth = channels // group * int(np.prod(kernel))
    weight = scaled(network, x.dtype, (count, channels // group, *kernel), depth)
    bias = network.one(None, network.weight(x.dtype, (count,)))
    dilations = network.one(None, None, [2] * axes)
    y = network.node("Conv", x, weight, bias, group=group, dilations=dilations, **_window(network, axes))
    if network.flag(0.4):
        shift, mean, factor = (network.weight(x.dtype, (count,)) for _ in range(3))
        y = network.node("BatchNormalization", y, factor, shift, mean, network.weight(x.dtype, (count,), 0.5, 2))
    elif network.flag(0.3):
        y = network.node("Mul", y, network.weight(x.dtype, (count, *[1] * axes)))
    y = _follow(network, y)
    if network.flag(0.3):
        network.node("Add", y, network.pick(x.dtype, ranks=(x.rank,), where=lambda value: value.dims == y.dims))


def transposed_convolution(network: Network) -> None:
    axes = network.one(1, 2)
    x = image(network, axes=axes)
    count = network.one(1, 2, 4)
    weight = scaled(network, x.dtype, (x.size(1), count, *(network.one(2, 3) for _ in range(axes))), x.size(1))
    strides = [network.one(1, 2) for _ in range(axes)]
    network.node("ConvTranspose", x, weight, network.one(None, network.weight(x.dtype, (count,))), strides=strides,
                 pads=network.one(None, [network.one(0, 1) for _ in range(2 * axes)]))  # fmt: skip


def pool(network: Network) -> None:
    axes = network.one(1, 2, 2)
    x = image(network, axes=axes)
    if network.flag(0.25):
        network.node(network.one("GlobalAveragePool", "GlobalMaxPool"), x)
        return
    op = network.one("MaxPool", "AveragePool")
    options = _window(network, axes)
    if op == "AveragePool":
        options["count_include_pad"] = network.one(None, 1)
    if "auto_pad" not in options:
        options["ceil_mode"] = network.one(None, None, 1)
    network.node(op, x, kernel_shape=[2 if min(x.arrays[0].shape[2:]) < 4 else network.one(2, 3)] * axes, **options)


def norm(network: Network) -> None:
    op = network.one("LayerNormalization", "LayerNormalization", "InstanceNormalization", "BatchNormalization", "RMS",
                     "LpNormalization", "by hand")  # fmt: skip
    if op in ("InstanceNormalization", "BatchNormalization"):
        x = network.pick(network.real, ranks=(3, 4), where=lambda x: len(set(x.dims[1])) == 1)
        shape = (x.size(1),)
        factor, shift = network.weight(x.dtype, shape), network.weight(x.dtype, shape)
        more = [] if op[0] == "I" else [network.weight(x.dtype, shape), network.weight(x.dtype, shape, 0.5, 2)]
        network.node(op, x, factor, shift, *more, epsilon=network.one(None, 0.01))
        return
    x = rows(network)
    factor, shift = network.weight(x.dtype, (x.size(-1),)), network.weight(x.dtype, (x.size(-1),))
    if op == "LpNormalization":
        network.node(op, x, axis=-1, p=network.one(1, 2))
    elif op == "LayerNormalization":
        network.since(op)
        network.node(op, x, factor, network.one(None, shift), axis=-1, epsilon=0.01)
    elif op == "RMS":
        square = network.node("Mul", x, x) if network.flag() else network.node("Pow", x, number(network, x, 2.0))
        mean = _mean(network, square)
        root = network.node("Sqrt", network.node("Add", mean, number(network, x, 0.01)))
        network.node("Mul", network.node("Div", x, root), factor)
    else:
        apart = network.node("Sub", x, _mean(network, x))
        spread = network.node("Sqrt", network.node("Add", _mean(network, network.node("Mul", apart, apart)),
                                                   number(network, x, 0.01)))  # fmt: skip
        network.node("Add", network.node("Mul", network.node("Div", apart, spread), factor), shift)


def _mean(network: Network, x: Value) -> Value:
    if network.opset >= 18:
        return network.node("ReduceMean", x, network.ints(-1))
    return network.node("ReduceMean", x, axes=[-1])


def reduction(network: Network) -> None:
    often = ("ReduceSum", "ReduceMean", "ReduceMax")
    op = network.one(*often, *often, "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
    kinds = (network.real, "int64", "int32") if op in ("ReduceSum", "ReduceMax", "ReduceMin") else (network.real,)
    # Of nothing, the standard leaves means and extremes open.
    x = network.pick(*kinds, ranks=(1, 2, 3, 4), where=lambda value: value.all(lambda array: array.size > 0))
    axes = network.rng.sample(range(x.rank), network.one(*range(1, x.rank + 1)))
    axes = [network.one(axis, axis - x.rank) for axis in axes]
    keep = network.one(None, 0, 0)
    if network.opset >= (13 if op == "ReduceSum" else 18):
        y = network.node(op, x, network.ints(*axes), keepdims=keep)
    else:
        y = network.node(op, x, axes=axes, keepdims=keep)
    if network.flag(0.2) and keep is None:
        network.node("Sub", x, y)


def softmax(network: Network) -> None:
    x = network.pick(network.real, ranks=(1, 2, 3, 4), where=lambda value: value.all(lambda array: array.size > 0))
    network.node(network.one("Softmax", "Softmax", "LogSoftmax"), x, axis=network.rng.randrange(-x.rank, x.rank))


def recurrence(network: Network) -> None:
    """A layer over time, for which the batch comes second."""
    x = rows(network, 3)
    width, hidden = x.size(-1), network.one(1, 3, 4)
    op = network.one("LSTM", "GRU", "RNN")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    turned = network.node("Transpose", x, perm=[1, 0, 2])
    weight = scaled(network, x.dtype, (1, gates * hidden, width), width)
    again = scaled(network, x.dtype, (1, gates * hidden, hidden), hidden)
    bias = network.one(None, network.weight(x.dtype, (1, 2 * gates * hidden)))
    linear_before = network.one(None, 1) if op == "GRU" else None
    direction = network.one(None, "reverse")
    y, *_ = network.add(op, turned, weight, again, bias, outputs=2, hidden_size=hidden, direction=direction,
                        linear_before_reset=linear_before)  # fmt: skip
    network.node("Squeeze", y, network.ints(1))


def new_input(network: Network) -> None:
    """One more input, of another kind than the first."""
    _input(network, network.one("image", "image", "rows", "steps", "steps", "places", "flags"))


def _input(network: Network, kind: str) -> Value:
    if kind == "image":
        sizes = (network.one(4, 5, 6, 8), network.one(4, 5, 7, 8))
        return network.input(network.real, ["N", network.one(1, 3, 4, 8), *sizes])
    if kind == "rows":
        return network.input(network.real, ["N", network.one(*_WIDTHS)])
    if kind == "steps":
        return network.input(network.real, ["N", network.one(1, 2, 3, 5, 8, "T", "T", "T"), network.one(4, 6, 8, 16)])
    if kind == "places":
        return network.input("int64", ["N", *network.one((), (1,), (3,), ("T",))], 0, 3)
    return network.input("bool", ["N", network.one(1, 4)])


def embedding(network: Network) -> None:
    places = network.pick("int64", ranks=(1, 2), where=lambda x: x.all(lambda array: (array >= 0) & (array < 5)))
    network.node("Gather", network.weight(network.real, (5, network.one(4, 8, 16))), places)


def mixed(network: Network) -> None:
    """A layer in another float type, between casts."""
    x = rows(network)
    other = network.one(*({"float16", "float32", "float64"} - {x.dtype}))
    depth, width = x.size(-1), network.one(*_WIDTHS)
    inside = network.node("Cast", x, to=ELEMENTS[other])
    y = network.node("MatMul", inside, scaled(network, other, (depth, width), depth))
    network.node("Cast", network.node("Relu", y), to=ELEMENTS[x.dtype])


def excited(network: Network) -> None:
    """Channels scaled by what they are in the mean (squeeze and excite)."""
    x = image(network)
    channels = x.size(1)
    mean = network.node("GlobalAveragePool", x)
    weight = scaled(network, x.dtype, (channels, channels, 1, 1), channels)
    gate = network.node(network.one("Sigmoid", "HardSigmoid"), network.node("Conv", mean, weight))
    network.node("Mul", x, gate)


TEMPLATES: Final[dict[Template, int]] = {
    linear: 8,
    product: 4,
    attention: 3,
    convolution: 8,
    transposed_convolution: 1,
    pool: 4,
    norm: 5,
    reduction: 6,
    softmax: 3,
    recurrence: 1,
    new_input: 4,
    embedding: 2,
    mixed: 1,
    excited: 1,
}
