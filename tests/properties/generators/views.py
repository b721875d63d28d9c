"""Generators of the ops that move elements."""

from __future__ import annotations

from collections.abc import Callable

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ops.shapes import product
from tests.properties.sample import Draw, Operand, Sample, op

__all__ = ["GENERATORS"]

ANY = ("float32", "float16", "int64", "uint8", "bool", "string", "bfloat16", "complex64", "int4", "float8_e4m3fn")


def _x(draw: Draw, least_rank: int = 0, least: int = 0) -> Operand:
    return draw.tensor(draw.dtype(*ANY), draw.shape(draw.one(*range(least_rank, 5)), least))


def reshape(draw: Draw) -> Sample:
    # A symbol is never 0 here: in a shape, a 0 that only the run knows copies the dim of x.
    x = _x(draw, 0, draw.one(0, 1))
    x = draw.tensor(x.dtype, [dim if isinstance(dim, int) else dim + 1 for dim in x.dims])
    wanted: list[DimLike] = list(x.dims)
    draw.rng.shuffle(wanted)
    for index in range(len(wanted)):
        if index < len(x.dims) and wanted[index] is x.dims[index] and draw.flag(0.3):
            wanted[index] = 0
    allow = 0 not in wanted and draw.flag(0.2)
    if not allow and wanted and 0 not in [*wanted, *x.dims] and draw.flag():
        wanted[draw.rng.randrange(len(wanted))] = -1
    elif draw.flag(0.2) and all(isinstance(dim, int) for dim in x.dims):
        wanted, allow = [product(x.dims)], True
    elif any(isinstance(dim, int) and dim == 0 for dim in x.dims):
        wanted, allow = [product(x.dims)], True  # an entry 0 would copy
    attribute, operand = draw.steered(*wanted)
    return draw.sample(op("reshape", dims=attribute, allow_zero=allow), x, operand)


def broadcast(draw: Draw) -> Sample:
    target = draw.shape(draw.one(0, 1, 2, 3))
    kept = target[draw.rng.randrange(len(target) + 1) :]
    x = draw.tensor(draw.dtype(*ANY), [1 if draw.flag(0.3) else dim for dim in kept])
    wanted = [1 if draw.flag(0.2) and index >= len(target) - len(kept) else dim for index, dim in enumerate(target)]
    attribute, operand = draw.steered(*wanted)
    return draw.sample(op("broadcast", dims=attribute), x, operand)


def transpose(draw: Draw) -> Sample:
    x = _x(draw)
    order = list(range(len(x.dims)))
    draw.rng.shuffle(order)
    return draw.sample(op("transpose", permutation=draw.one(None, tuple(order))), x)


def squeeze(draw: Draw) -> Sample:
    shape = [1 if draw.flag() else dim for dim in draw.shape(draw.one(0, 1, 2, 3))]
    ones = [axis - draw.one(0, len(shape)) for axis, dim in enumerate(shape) if isinstance(dim, int) and dim == 1]
    x = draw.tensor(draw.dtype(*ANY), shape)
    if all(isinstance(dim, int) for dim in shape) and draw.flag(0.2):
        return draw.sample(op("squeeze"), x)
    attribute, operand = draw.steered(*ones)
    return draw.sample(op("squeeze", axes=attribute), x, operand)


def unsqueeze(draw: Draw) -> Sample:
    x = _x(draw)
    rank = len(x.dims) + draw.one(1, 2)
    axes = draw.rng.sample(range(rank), rank - len(x.dims))
    attribute, operand = draw.steered(*(axis - draw.one(0, rank) for axis in axes))
    return draw.sample(op("unsqueeze", axes=attribute), x, operand)


def slice_(draw: Draw) -> Sample:
    x = _x(draw, 1)
    rank = len(x.dims)
    axes = draw.rng.sample(range(rank), draw.one(*range(1, rank + 1)))
    steps = [draw.one(1, 1, 2, 3, -1, -2) for _ in axes]
    edges = (0, 1, 2, -1, -2, 100, -100, (1 << 63) - 1, -(1 << 63))
    starts, ends = [draw.one(*edges) for _ in axes], [draw.one(*edges) for _ in axes]
    if draw.flag(0.3):
        ends = [x.dims[axis] for axis in axes]
    if draw.flag():
        attributes = {"starts": tuple(starts), "ends": tuple(ends), "axes": tuple(axes), "steps": tuple(steps)}
        return draw.sample(op("slice", **attributes), x)
    last = draw.numbers(*steps) if draw.flag() else None
    return draw.sample(op("slice"), x, draw.numbers(*starts), draw.numbers(*ends), draw.numbers(*axes), last)


def pad(draw: Draw) -> Sample:
    mode = draw.one("constant", "constant", "reflect", "edge", "wrap")
    x = _x(draw, 1, 3)  # as large as a pad that reads from it
    most = 2 if mode != "constant" else 3
    axes = draw.rng.sample(range(len(x.dims)), draw.one(*range(1, len(x.dims) + 1)))
    entries = [draw.one(0, 1, most, -1 if mode == "constant" else 0) for _ in range(2 * len(axes))]
    attribute, operand = draw.steered(*entries)
    value = draw.tensor(x.dtype, ()) if mode == "constant" and draw.flag() else None
    if draw.flag():
        return draw.sample(op("pad", mode=mode, pads=attribute, axes=tuple(axes)), x, operand, value)
    return draw.sample(op("pad", mode=mode, pads=attribute), x, operand, value, draw.numbers(*axes))


def concat(draw: Draw) -> Sample:
    first = _x(draw, 1)
    axis = draw.rng.randrange(len(first.dims))
    operands = [first]
    for _ in range(draw.one(0, 1, 2)):
        shape = [draw.size() if place == axis else dim for place, dim in enumerate(first.dims)]
        operands.append(draw.tensor(first.dtype, shape))
    return draw.sample(op("concat", axis=axis - draw.one(0, len(first.dims))), *operands)


def split(draw: Draw) -> Sample:
    count = draw.one(1, 2, 3)
    sizes = draw.shape(count)
    total: DimLike = 0
    for size in sizes:
        total = total + size
    shape = [*draw.shape(draw.one(0, 1, 2)), total]
    x = draw.tensor(draw.dtype(*ANY), shape)
    axis = draw.one(-1, len(shape) - 1)
    if draw.flag(0.4):
        even = draw.tensor(x.dtype, [*shape[:-1], draw.size(1) * count])
        return draw.sample(op("split", axis=axis, count=count), even)
    attribute, operand = draw.steered(*sizes)
    return draw.sample(op("split", axis=axis, count=count, sizes=attribute), x, operand)


def tile(draw: Draw) -> Sample:
    x = _x(draw)
    attribute, operand = draw.steered(*draw.shape(len(x.dims)))
    return draw.sample(op("tile", repeats=attribute), x, operand)


def shape_(draw: Draw) -> Sample:
    return draw.sample(op("shape", start=draw.one(0, 1, -1, -9, 9), end=draw.one(None, 1, -1, 9)), _x(draw))


def dims_(draw: Draw) -> Sample:
    values = draw.shape(draw.one(0, 1, 2, 3))
    mixed = [value + draw.one(0, 1) if draw.flag() else dims.floordiv(value, 2) for value in values]
    scalar = len(mixed) == 1 and draw.flag()
    return draw.sample(op("dims", values=tuple(mixed), scalar=scalar))


def reverse_sequence(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(2, 3))
    batch, time = draw.one((0, 1), (1, 0))

    def fill(rng, shape_, binding):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return rng.integers(0, dims.evaluate(shape[time], binding) + 1, shape_)

    x = draw.tensor(draw.dtype(*ANY), shape)
    return draw.sample(
        op("reverse_sequence", batch_axis=batch, time_axis=time), x, draw.tensor("int64", (shape[batch],), fill)
    )


GENERATORS: dict[str, Callable[[Draw], Sample]] = {
    "reshape": reshape,
    "broadcast": broadcast,
    "transpose": transpose,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
    "slice": slice_,
    "pad": pad,
    "concat": concat,
    "split": split,
    "tile": tile,
    "shape": shape_,
    "dims": dims_,
    "reverse_sequence": reverse_sequence,
}
