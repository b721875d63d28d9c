"""Generators of the ops that pick, order, reduce and multiply elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy.ir import Literal
from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.dtype import DTYPES
from argosy.ir.formula import Formula
from tests.properties.generators.views import ANY
from tests.properties.sample import Binding, Draw, Fill, Operand, Sample, op

__all__ = ["FLOATS", "GENERATORS", "NUMBERS", "indices_below"]

FLOATS = ("float32", "float16", "float64", "bfloat16")
NUMBERS = (*FLOATS, "int64", "int32", "int8", "uint8", "uint64")


def indices_below(*sizes: DimLike, negative: bool = True) -> Fill:
    """Indices along axes of these sizes: of one for all elements, of several for the last axis."""

    def fill(rng: np.random.Generator, shape: tuple[int, ...], binding: Binding) -> Any:
        limits = np.array([dims.evaluate(size, binding) for size in sizes])
        if len(sizes) == 1:
            limits = limits.reshape(())
        found = (rng.random(shape) * limits).astype(np.int64)
        return np.where(rng.random(shape) < 0.3, found - limits, found) if negative else found

    return fill


def gather(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3))
    axis = draw.rng.randrange(len(shape))
    shape = (*shape[:axis], draw.size(1), *shape[axis + 1 :])
    places = draw.tensor(draw.one("int32", "int64"), draw.shape(draw.one(0, 1, 2)), indices_below(shape[axis]))
    return draw.sample(op("gather", axis=axis - draw.one(0, len(shape))), draw.tensor(draw.dtype(*ANY), shape), places)


def gather_elements(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3), 1)
    axis = draw.rng.randrange(len(shape))
    chosen = [draw.size() if place == axis else draw.one(dim, 1) for place, dim in enumerate(shape)]
    places = draw.tensor(draw.one("int32", "int64"), chosen, indices_below(shape[axis]))
    return draw.sample(op("gather_elements", axis=axis), draw.tensor(draw.dtype(*ANY), shape), places)


def gather_nd(draw: Draw) -> Sample:
    batch = draw.one(0, 0, 1)
    shape = draw.shape(draw.one(2, 3, 4), 1)
    depth = draw.one(*range(1, len(shape) - batch + 1))
    places = [*shape[:batch], *draw.shape(draw.one(0, 1) if batch or draw.flag() else 1), depth]
    fill = indices_below(*shape[batch : batch + depth])
    return draw.sample(
        op("gather_nd", batch_dims=batch), draw.tensor(draw.dtype(*ANY), shape), draw.tensor("int64", places, fill)
    )


def scatter_elements(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3), 1)
    axis = draw.rng.randrange(len(shape))
    reduction = draw.one("none", "add", "mul", "max", "min")
    kind = draw.dtype(*(ANY if reduction == "none" else NUMBERS))
    chosen = [1 if place != axis and draw.flag(0.3) else dim for place, dim in enumerate(shape)]
    places = draw.tensor("int64", chosen, indices_below(shape[axis]))
    made = op("scatter_elements", axis=axis, reduction=reduction)
    return draw.sample(made, draw.tensor(kind, shape), places, draw.tensor(kind, chosen))


def scatter_nd(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3), 1)
    depth = draw.one(*range(1, len(shape) + 1))
    rows = draw.shape(draw.one(0, 1, 2))
    reduction = draw.one("none", "add", "mul", "max", "min")
    kind = draw.dtype(*(ANY if reduction == "none" else NUMBERS))
    places = draw.tensor("int64", [*rows, depth], indices_below(*shape[:depth]))
    updates = draw.tensor(kind, [*rows, *shape[depth:]])
    return draw.sample(op("scatter_nd", reduction=reduction), draw.tensor(kind, shape), places, updates)


def one_hot(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(0, 1, 2))
    depth = draw.numbers(draw.size(), dtype=draw.one("int64", "int32", "float32"), scalar=draw.flag())
    values = draw.tensor(draw.dtype(*ANY), (2,))
    axis = draw.one(*range(-len(shape) - 1, len(shape) + 1))
    return draw.sample(
        op("one_hot", axis=axis), draw.tensor(draw.one("int64", "int32", "float32"), shape), depth, values
    )


def nonzero(draw: Draw) -> Sample:
    return draw.sample(op("nonzero"), draw.tensor(draw.dtype(*NUMBERS, "bool"), draw.shape(draw.one(1, 2, 3))))


def compress(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3), 2)
    axis = draw.one(None, *range(-len(shape), len(shape)))
    condition = draw.tensor("bool", (draw.one(0, 1, 2),))
    return draw.sample(op("compress", axis=axis), draw.tensor(draw.dtype(*ANY), shape), condition)


def range_(draw: Draw) -> Sample:
    kind = draw.one("int64", "int32", "float32", "float64")
    limit = draw.numbers(draw.size(), dtype=kind, scalar=True)
    first, step = draw.one((0, 1), (1, 1), (-3, 2), (9, -2), (0, 5))
    return draw.sample(
        op("range"), draw.numbers(first, dtype=kind, scalar=True), limit, draw.numbers(step, dtype=kind, scalar=True)
    )


def triangle(draw: Draw) -> Sample:
    x = draw.tensor(draw.dtype(*NUMBERS, "bool"), draw.shape(draw.one(2, 3)))
    k = draw.one(None, draw.numbers(draw.one(-9, -1, 0, 1, 9), scalar=True))
    return draw.sample(op("triangle", upper=draw.flag()), x, k)


def topk(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3))
    axis = draw.rng.randrange(len(shape))
    k = draw.size()
    shape = (*shape[:axis], k + draw.size(), *shape[axis + 1 :])
    made = op("topk", axis=axis - draw.one(0, len(shape)), largest=draw.flag(), sorted=draw.flag())
    return draw.sample(made, draw.tensor(draw.dtype(*NUMBERS), shape), draw.numbers(k, scalar=draw.flag()))


def unique(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3), 1)
    x = draw.tensor(draw.dtype("float32", "int64", "uint8", "string", "bool"), shape)
    return draw.sample(op("unique", axis=draw.one(None, *range(-len(shape), len(shape))), sorted=draw.flag()), x)


def cumulative(draw: Draw) -> Sample:
    x = draw.tensor(draw.dtype(*NUMBERS), draw.shape(draw.one(1, 2, 3)))
    axis = draw.numbers(
        draw.one(*range(-len(x.dims), len(x.dims))), dtype=draw.one("int64", "int32"), scalar=draw.flag()
    )
    made = op("cumulative", kind=draw.one("sum", "prod"), exclusive=draw.flag(), reverse=draw.flag())
    return draw.sample(made, x, axis)


def reduce(draw: Draw) -> Sample:
    kind = draw.one("sum", "mean", "prod", "max", "min")
    x = draw.tensor(
        draw.dtype(*NUMBERS, *(("bool",) if kind in ("max", "min") else ())), draw.shape(draw.one(0, 1, 2, 3))
    )
    rank = len(x.dims)
    chosen = [axis - draw.one(0, rank) for axis in draw.rng.sample(range(rank), draw.one(*range(rank + 1)))]
    attribute, operand = draw.steered(*chosen)
    made = op("reduce", kind=kind, axes=attribute, keep_dims=draw.flag(), noop_with_empty_axes=draw.flag(0.3))
    return draw.sample(made, x, *(() if attribute is not None else (operand if draw.flag(0.8) else None,)))


def arg_reduce(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3), 1)
    axis = draw.one(*range(-len(shape), len(shape)))
    made = op("arg_reduce", kind=draw.one("max", "min"), axis=axis, keep_dims=draw.flag(), select_last=draw.flag())
    return draw.sample(made, draw.tensor(draw.dtype(*NUMBERS), shape))


def softmax(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(1, 2, 3))
    made = op("softmax", axis=draw.one(*range(-len(shape), len(shape))), log=draw.flag())
    return draw.sample(made, draw.tensor(draw.dtype(*FLOATS), shape))


def dot(draw: Draw) -> Sample:
    depth = draw.size()
    batch = draw.shape(draw.one(0, 0, 1, 2))
    left = [*(draw.one(dim, 1) for dim in batch), draw.size(), depth] if draw.flag(0.8) else [depth]
    right = [*batch[draw.one(0, len(batch)) :], depth, draw.size()] if draw.flag(0.8) else [depth]
    kind, wide = draw.one(*((name, None) for name in FLOATS), ("int8", "int32"), ("uint8", "int32"), ("int64", None))
    made = op("dot", dtype=wide and DTYPES[wide])
    return draw.sample(made, draw.tensor(kind, left), draw.tensor(kind, right))


def einsum(draw: Draw) -> Sample:
    equation = draw.one("ij,jk->ik", "ij,jk", "bij,bjk->bik", "ii->i", "ij->ji", "i,i->", "...i,...i->...", "ij,kj->ik")
    sizes: dict[str, DimLike] = {letter: draw.size() for letter in "bijk"}
    kind = draw.dtype(*FLOATS, "int64")
    operands: list[Operand] = []
    for term in equation.partition("->")[0].split(","):
        batch = draw.shape(draw.one(0, 1), 1) if "..." in term and not operands else []
        if "..." in term and operands and len(operands[0].dims) > 1:
            batch = operands[0].dims[:-1]
        operands.append(draw.tensor(kind, [*batch, *(sizes[letter] for letter in term.replace("...", ""))]))
    return draw.sample(op("einsum", equation=equation), *operands)


def determinant(draw: Draw) -> Sample:
    side = draw.size()
    return draw.sample(op("determinant"), draw.tensor(draw.dtype(*FLOATS), [*draw.shape(draw.one(0, 1)), side, side]))


def pointwise(draw: Draw) -> Sample:
    target = draw.shape(draw.one(0, 1, 2, 3))
    formula, kinds = _formula(draw)
    operands = [_broadcasting(draw, target, kind) for kind in kinds]
    return draw.sample(op("pointwise", formula=formula), *operands)


def _broadcasting(draw: Draw, target: Sequence[DimLike], kind: str) -> Operand:
    kept = target[draw.one(0, 0, len(target)) :]
    return draw.tensor(kind, [1 if draw.flag(0.2) else dim for dim in kept])


def _formula(draw: Draw) -> tuple[Formula, list[str]]:
    number, real, whole = draw.one(*NUMBERS), draw.one(*FLOATS), draw.one("int64", "int32", "uint8", "int8")
    return draw.one(
        (Formula.trace(lambda x, y: x * y + 1, 2), [number, number]),
        (Formula.trace(lambda x: x.max(0), 1), [number]),
        (Formula.trace(lambda x, y: (x < y).select(x, y), 2), [number, number]),
        (Formula.of("select"), ["bool", number, number]),
        (Formula.trace(lambda x: x.exp() / (x.exp() + 1.0), 1), [real]),
        (Formula.of("convert", DTYPES[draw.one(*NUMBERS, "bool")]), [number]),
        (Formula.trace(lambda x, y: x / y, 2), [whole, whole]),
        (Formula.trace(lambda x, y: x.mod(y), 2), [whole, whole]),
        (Formula.trace(lambda x, y: x.eq(y), 2), [number, number]),
        (Formula.trace(lambda x, y: x - y, 2), ["int64", "int64"]),
        (Formula.of("not"), ["bool"]),
    )


def bit_cast(draw: Draw) -> Sample:
    source, target = draw.one(("float32", "int32"), ("int8", "uint8"), ("float16", "bfloat16"), ("uint64", "float64"))
    return draw.sample(op("bit_cast", dtype=DTYPES[target]), draw.tensor(source, draw.shape(draw.one(0, 1, 2))))


def quantize(draw: Draw) -> Sample:
    return _quantisation(draw, "quantize")


def dequantize(draw: Draw) -> Sample:
    return _quantisation(draw, "dequantize")


def _quantisation(draw: Draw, name: str) -> Sample:
    whole = draw.one("int8", "uint8", "int16", "uint4", "int4", "float8_e4m3fn", "float8_e5m2")
    real = draw.one("float32", "float16", "bfloat16")
    shape = list(draw.shape(draw.one(1, 2, 3)))
    axis, block = draw.rng.randrange(len(shape)), 0
    scale_shape: list[DimLike] = draw.one([], [shape[axis]])
    if draw.flag(0.3):
        block = draw.one(1, 2, 3)
        blocks = draw.size()
        scale_shape = [*shape[:axis], blocks, *shape[axis + 1 :]]
        shape[axis] = blocks * block
    scale = draw.tensor(real, scale_shape, lambda rng, found, _: rng.choice([0.5, 1.0, 2.0], found))
    zero = draw.tensor(whole, scale_shape) if draw.flag() and not whole.startswith("float8") else None
    made = op(
        name, dtype=DTYPES[whole if name == "quantize" else real], axis=axis - draw.one(0, len(shape)), block_size=block
    )
    return draw.sample(made, draw.tensor(real if name == "quantize" else whole, shape), scale, zero)


def constant(draw: Draw) -> Sample:
    kind = draw.dtype(*ANY)
    values = draw.tensor(kind, draw.rng.choice([(), (0,), (2,), (2, 3)])).array({})
    return draw.sample(op("constant", literal=Literal.of(values, kind)))


def random(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(0, 1, 2))
    kind = draw.dtype(*FLOATS)
    options = {"distribution": draw.one("uniform", "normal"), "dtype": kind, "first": -1.0, "second": 2.0}
    if draw.flag():
        return draw.sample(op("random", **options, seed=3, node=1, dims=shape))
    return draw.sample(op("random", **options, seed=3, node=1), draw.tensor("int32", shape))


GENERATORS: dict[str, Callable[[Draw], Sample]] = {
    "gather": gather,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "one_hot": one_hot,
    "nonzero": nonzero,
    "compress": compress,
    "range": range_,
    "triangle": triangle,
    "topk": topk,
    "unique": unique,
    "cumulative": cumulative,
    "reduce": reduce,
    "arg_reduce": arg_reduce,
    "softmax": softmax,
    "dot": dot,
    "einsum": einsum,
    "determinant": determinant,
    "pointwise": pointwise,
    "bit_cast": bit_cast,
    "quantize": quantize,
    "dequantize": dequantize,
    "constant": constant,
    "random": random,
}
