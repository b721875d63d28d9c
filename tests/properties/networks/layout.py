"""Templates of what moves, picks, joins and orders elements."""

from __future__ import annotations

from typing import Final

import numpy as np

from tests.properties.networks.network import Network, Template, Value
from tests.properties.networks.pointwise import MARGIN
from tests.properties.onnx_graphs.graph import NotDrawn

__all__ = ["TEMPLATES"]

ANY: Final = ("float32", "float16", "float32", "int64", "bool", "uint8", "int8", "int32", "float64")


def anything(network: Network, *ranks: int) -> Value:
    """A value of any type, most often of the network's own."""
    kinds = (network.real,) if network.flag(0.7) else ANY
    return network.pick(*kinds, ranks=ranks or (1, 2, 3, 4))


def reshape(network: Network) -> None:
    """To another shape, which stands in a constant or is computed from the shape of the operand."""
    x = anything(network, 1, 2, 3, 4)
    sizes = [dim[0] if len(set(dim)) == 1 else -1 for dim in x.dims]
    if sizes.count(-1) > 1 or 0 in sizes:
        raise NotDrawn
    if network.flag(0.4):
        batch = network.node("Gather", network.node("Shape", x), network.constant(np.array([0])), axis=0)
        rest = int(np.prod(sizes[1:]))
        if -1 in sizes[1:]:
            raise NotDrawn
        network.node("Reshape", x, network.node("Concat", batch, network.ints(*_factors(network, rest)), axis=0))
        return
    way = network.one("flat", "split", "merge", "same")
    if way == "flat":
        network.node("Flatten", x, axis=network.rng.randrange(x.rank + 1))
    elif way == "same":
        network.node("Reshape", x, network.ints(*([0] * (x.rank - 1)), -1))
    elif way == "merge" and x.rank > 1 and -1 not in sizes[-2:]:
        network.node("Reshape", x, network.ints(*sizes[:-2], sizes[-2] * sizes[-1]))
    else:
        if sizes[-1] == -1:
            raise NotDrawn
        network.node("Reshape", x, network.ints(*sizes[:-1], *_factors(network, sizes[-1])))


def _factors(network: Network, number: int) -> tuple[int, ...]:
    """Two factors of a number, one of which may be left to be inferred."""
    divisors = [divisor for divisor in range(1, number + 1) if number % divisor == 0]
    if not divisors:
        raise NotDrawn
    first = network.one(*divisors)
    return (first, number // first)


def transpose(network: Network) -> None:
    x = anything(network, 2, 3, 4)
    turned = network.node("Transpose", x, perm=network.one(None, network.rng.sample(range(x.rank), x.rank)))
    if network.flag(0.2):
        network.node("Transpose", turned, perm=network.rng.sample(range(x.rank), x.rank))


def ones(network: Network) -> None:
    """Dims of size one come, or go."""
    x = anything(network)
    places = [axis for axis, dim in enumerate(x.dims) if set(dim) == {1}]
    if places and network.flag():
        network.node("Squeeze", x, network.ints(network.one(*places)))
    else:
        network.node("Unsqueeze", x, network.ints(network.rng.randrange(x.rank + 1)))


def concat(network: Network) -> None:
    x = anything(network)
    axis = network.rng.randrange(x.rank)
    rest = x.dims[:axis] + x.dims[axis + 1 :]
    others = [
        value for value in network.values
        if value.dtype == x.dtype and value.rank == x.rank and value.dims[:axis] + value.dims[axis + 1 :] == rest
    ]  # fmt: skip
    parts = [network.one(*others) for _ in range(network.one(1, 1, 2))]
    if all(len(set(dim)) == 1 for dim in rest) and network.flag(0.3):
        parts.append(network.weight(x.dtype, [1 if place == axis else dim[0] for place, dim in enumerate(x.dims)]))
    network.rng.shuffle(parts)
    network.node("Concat", x, *parts, axis=network.one(axis, axis - x.rank))


def split(network: Network) -> None:
    x = anything(network)
    axes = [axis for axis, dim in enumerate(x.dims) if len(set(dim)) == 1 and dim[0] > 1]
    if not axes:
        raise NotDrawn
    axis = network.one(*axes)
    size = x.size(axis)
    first = network.rng.randrange(1, size)
    parts = network.add("Split", x, network.ints(first, size - first), outputs=2, axis=axis)
    if network.flag(0.3) and np.dtype(x.dtype).kind == "f":
        network.node("Concat", parts[1], network.node("Relu", parts[0]), axis=axis)


def slice_(network: Network) -> None:
    x = anything(network)
    axes = network.rng.sample(range(x.rank), network.one(*range(1, x.rank + 1)))
    # At a batch of one, nothing may be left: that is fine for what follows but for extremes and means.
    steps = [network.one(1, 1, 2, -1) for _ in axes]
    starts = [network.one(0, 0, -1, 1) if step > 0 else network.one(-1, 100) for step in steps]
    ends = [network.one(100, 2**31 - 1, 3) if step > 0 else network.one(-100, 0) for step in steps]
    if not network.flag(0.1):
        starts = [0 if step > 0 and any(size < 2 for size in x.dims[axis]) else start
                  for start, step, axis in zip(starts, steps, axes, strict=True)]  # fmt: skip
    network.node("Slice", x, *(network.ints(*numbers) for numbers in (starts, ends, axes, steps)))


def gather(network: Network) -> None:
    x = anything(network)
    axis = network.rng.randrange(x.rank)
    least = min(x.dims[axis])
    if least == 0:
        raise NotDrawn
    if network.flag(0.3):
        there = network.pick("int64", where=lambda value: value.all(lambda array: (array >= -least) & (array < least)))
        network.node("Gather", x, there, axis=axis)
        return
    shape = network.one((), (1,), (3,), (2, 2))
    places = network.weight(network.one("int64", "int32"), shape, -least, least - 1)
    network.node("Gather", x, places, axis=axis)


def gather_along(network: Network) -> None:
    x = network.pick(
        network.real, "int64", ranks=(1, 2, 3), where=lambda value: not value.varies() and value.all(np.size)
    )
    axis = network.rng.randrange(x.rank)
    shape = list(x.arrays[0].shape)
    shape[axis] = network.one(1, 2, 5)
    places = network.weight("int64", shape, 0, x.size(axis) - 1)
    network.node("GatherElements", x, places, axis=axis)


def scatter(network: Network) -> None:
    x = network.pick(network.real, "float32", "int64", ranks=(1, 2, 3), where=lambda value: value.all(np.size))
    axis = network.rng.randrange(x.rank)
    if network.flag() and not x.varies():
        shape = list(x.arrays[0].shape)
        order = network.numbers.permutation(shape[axis])[: network.one(1, 2)]
        shape[axis] = len(order)
        places = np.broadcast_to(order.reshape([-1 if place == axis else 1 for place in range(x.rank)]), shape)
        network.node("ScatterElements", x, network.constant(places.copy()), network.weight(x.dtype, shape), axis=axis)
    elif not x.varies(1):
        row = network.weight(x.dtype, [1, *(dim[0] for dim in x.dims[1:])])
        reduction = network.one(None, "add") if network.opset >= 16 else None
        network.node("ScatterND", x, network.constant(np.array([[0]])), row, reduction=reduction)


def pad(network: Network) -> None:
    x = network.pick(network.real, "float32", "int64", ranks=(1, 2, 3, 4))
    mode = network.one("constant", "constant", "reflect", "edge", *(("wrap",) if network.opset >= 19 else ()))
    pads = [network.one(0, 0, 1, 2) if mode == "constant" or min(dim) > 2 else 0 for dim in x.dims * 2]
    value = network.constant(np.array(1, x.dtype)) if mode == "constant" and network.flag() else None
    network.node("Pad", x, network.ints(*pads), value, mode=mode)


def expand(network: Network) -> None:
    x = anything(network)
    if network.flag():
        y = network.pick(*ANY, ranks=(1, 2, 3, 4))
        if not all(set(a) == {1} or a == b for a, b in zip(x.dims[::-1], y.dims[::-1], strict=False)):
            raise NotDrawn
        network.node("Expand", x, network.node("Shape", y))
    elif network.flag():
        network.node("Tile", x, network.ints(*(network.one(1, 1, 2) for _ in range(x.rank))))
    else:
        network.node("Expand", x, network.ints(*([2] if network.flag() else []), *([1] * x.rank)))


def resize(network: Network) -> None:
    x = network.pick(network.real, "float32", ranks=(4,))
    mode = network.one("nearest", "linear", "cubic")
    coordinates = network.one("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    # align_corners of a fractional size: see the templates of single ops.
    scales = [1, 1, *(network.one(1, 2, *(() if coordinates == "align_corners" else (1.5,))) for _ in range(2))]
    options = {"nearest_mode": network.one("round_prefer_floor", "floor")} if mode == "nearest" else {}
    factors = network.constant(np.array(scales, np.float32), known=True)
    network.node("Resize", x, None, factors, mode=mode, coordinate_transformation_mode=coordinates, **options)


def blocks(network: Network) -> None:
    x = network.pick(network.real, "float32", ranks=(4,))
    if x.size(1) % 4 == 0 and network.flag(0.7):
        network.node("DepthToSpace", x, blocksize=2, mode=network.one(None, "CRD"))
    elif x.size(2) % 2 == 0 and x.size(3) % 2 == 0:
        network.node("SpaceToDepth", x, blocksize=2)


def triangle(network: Network) -> None:
    x = network.pick(network.real, "float32", "int64", ranks=(2, 3, 4))
    network.since("Trilu")
    network.node("Trilu", x, network.one(None, network.constant(np.array(1))), upper=network.one(None, 0))


def running(network: Network) -> None:
    x = network.pick(network.real, "float32", "int64", ranks=(1, 2, 3))
    axis = network.constant(np.array(network.rng.randrange(x.rank)), known=True)
    network.node("CumSum", x, axis, exclusive=network.one(None, 1), reverse=network.one(None, 1))


def order(network: Network) -> None:
    """The largest, and where they are. Numbers that are near each other may change places by rounding."""
    x = network.pick(network.real, "float32", ranks=(1, 2, 3))
    axis = network.rng.randrange(x.rank)
    if min(x.dims[axis]) == 0 or not x.all(lambda array: np.diff(np.sort(array, axis), axis=axis) > MARGIN):
        raise NotDrawn
    if network.flag():
        network.node(network.one("ArgMax", "ArgMin"), x, axis=axis, keepdims=network.one(None, 0))
        return
    k = network.ints(network.rng.randint(1, min(x.dims[axis])))
    _, places = network.add("TopK", x, k, outputs=2, axis=axis, largest=network.one(None, 0))
    if network.flag():
        network.node("GatherElements", x, places, axis=axis)


def marked(network: Network) -> None:
    """How many there are depends on the values."""
    x = network.pick("bool", "int64", ranks=(1, 2))
    places = network.node("NonZero", x)
    if network.flag(0.4):
        network.node("Transpose", places)
    elif network.flag():
        y = network.pick(network.real, where=lambda value: value.dims == x.dims)
        network.node("GatherND", y, network.node("Transpose", places))


def one_hot(network: Network) -> None:
    x = network.pick("int64", "int32", ranks=(0, 1, 2))
    values = network.constant(np.array([0, 1], network.one(network.real, "float32", "int64")))
    network.node("OneHot", x, network.ints(4), values, axis=network.one(-1, 0))


def sizes(network: Network) -> None:
    """Shapes as numbers."""
    x = anything(network)
    way = network.one("shape", "size", "range", "fill")
    if way == "size":
        network.node("Size", x)
        return
    shape = network.node("Shape", x)
    if way == "shape":
        network.node("ReduceProd", shape, keepdims=network.one(None, 0))
    elif way == "fill":
        network.node("Cast", network.node("ConstantOfShape", shape), to=1)
    else:
        length = network.node("Gather", shape, network.constant(np.array(0)), axis=0)
        zero, one = (network.constant(np.array(number)) for number in (0, 1))
        network.node("Range", zero, length, one)


TEMPLATES: Final[dict[Template, int]] = {
    reshape: 6,
    transpose: 6,
    ones: 3,
    concat: 5,
    split: 4,
    slice_: 4,
    gather: 4,
    gather_along: 1,
    scatter: 2,
    pad: 3,
    expand: 3,
    resize: 2,
    blocks: 1,
    triangle: 1,
    running: 1,
    order: 2,
    marked: 1,
    one_hot: 1,
    sizes: 2,
}
