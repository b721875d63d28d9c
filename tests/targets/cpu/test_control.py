"""If, Loop and Scan as native code: branches of different sizes, values that grow, bodies inside bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Module, Symbol, TensorType, Value, symbol_dim
from argosy.ir.dtype import BOOL, FLOAT32, INT64
from argosy.ops.control import If, Loop, Scan
from argosy.ops.convolution import Conv
from argosy.ops.index import NonZero
from argosy.ops.reduce import Reduce
from argosy.ops.view import Concat, Reshape, Transpose
from tests.targets.cpu.against_ref import check

N = symbol_dim(Symbol("N"))
RNG = np.random.default_rng(3)


def body(builder: Builder, name: str, *kinds: TensorType) -> tuple[Builder, list[Value]]:
    inner = Builder(name, namer=builder.namer)
    return inner, [inner.parameter(f"{name}{index}", kind) for index, kind in enumerate(kinds)]


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def conditional() -> Module:
    """Both branches give another size, one depends on data."""
    builder = Builder()
    flag = builder.parameter("flag", TensorType(BOOL, ()))
    x = builder.parameter("x", TensorType(FLOAT32, (N,)))
    then, (a,) = body(builder, "then", TensorType(FLOAT32, (N,)))
    other, (b,) = body(builder, "other", TensorType(FLOAT32, (N,)))
    twice = then.module({"y": then.add(Concat(0), a, a)})
    places = other.add(NonZero(), b)
    picked = other.module({"y": other.convert(other.add(Reshape((-1,)), places), FLOAT32)})
    y = builder.add(If(twice, picked), flag, x, x)
    return builder.module({"y": y, "z": builder.pointwise(lambda v: v * 2.0, y)})


@pytest.mark.parametrize("flag", [True, False])
def test_branches_of_different_sizes(flag: bool) -> None:
    check(conditional(), [([np.array(flag), np.array(x, np.float32)], {}) for x in ([1, 0, 2], [], [0, 0])])


def growing(*, with_condition: bool) -> Module:
    """A value that grows with each iteration, a sum that may end the loop, and what each iteration gives."""
    builder = Builder()
    trip = builder.parameter("trip", TensorType(INT64, ()))
    x = builder.parameter("x", TensorType(FLOAT32, (2,)))
    size = symbol_dim(Symbol("held"))
    inner, (count, going, held, total, step) = body(
        builder, "body", TensorType(INT64, ()), TensorType(BOOL, ()), TensorType(FLOAT32, (size,)),
        TensorType(FLOAT32, ()), TensorType(FLOAT32, (2,)),
    )  # fmt: skip
    grown = inner.add(Concat(0), held, inner.pointwise("mul", step, inner.convert(count, FLOAT32)))
    added = inner.pointwise("add", total, inner.add(Reduce("sum", (0,), keep_dims=False), step))
    again = inner.pointwise(lambda v: v < 5.0, added) if with_condition else going
    module = inner.module({"again": again, "held": grown, "total": added, "each": inner.pointwise("neg", added)})
    start = builder.constant(np.array(True)) if with_condition else None
    results = builder.add_all(Loop(module, 2), trip, start, x, builder.constant(np.float32(0)), x)
    return builder.module([(f"y{index}", value) for index, value in enumerate(results)])


@pytest.mark.parametrize("with_condition", [True, False])
def test_values_that_grow(with_condition: bool) -> None:
    x = np.array([1.5, 0.5], np.float32)
    cases: list[tuple[list[Any], dict[str, int]]] = [([np.array(trip), x], {}) for trip in (0, 1, 4)]
    check(growing(with_condition=with_condition), cases)


def nested() -> Module:
    """A loop whose body holds a loop and a branch; both bodies convolve by a weight of the outside."""
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (1, 2, N)))
    weight = builder.constant(floats(2, 2, 3))
    image, counter, flag = TensorType(FLOAT32, (1, 2, N)), TensorType(INT64, ()), TensorType(BOOL, ())
    conv = Conv((1,), (1, 1), (1,))
    kind = TensorType(FLOAT32, (2, 2, 3))
    outer, (step, going, held, by) = body(builder, "outer", counter, flag, image, kind)
    inner, (_, still, value, factor) = body(outer, "inner", counter, flag, image, kind)
    deep = inner.module({"again": still, "v": inner.pointwise("abs", inner.add(conv, value, factor))})
    once = outer.add(Loop(deep, 1), outer.constant(np.array(2)), None, held, by)
    even = outer.pointwise(lambda v: v.mod(2).eq(0), step)
    then, (a,) = body(outer, "even", image)
    other, (b,) = body(outer, "odd", image)
    half = then.module({"v": then.pointwise(lambda v: v * 0.5, a)})
    kept = other.module({"v": b})
    chosen = outer.add(If(half, kept), even, once, once)
    module = outer.module({"again": going, "v": chosen})
    y = builder.add(Loop(module, 1), builder.constant(np.array(3)), None, x, weight)
    return builder.module({"y": y})


def test_bodies_in_bodies_read_weights_of_the_outside() -> None:
    check(nested(), [([floats(1, 2, size)], {}) for size in (5, 1, 19)])


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_scan(axis: int, backwards: bool) -> None:
    """A running sum over rows or columns, from either end, stacked along either axis."""
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (N, 3)))
    size = (3, N)[axis]
    row = TensorType(FLOAT32, (size,))
    inner, (state, element) = body(builder, "body", row, row)
    total = inner.pointwise("add", state, element)
    module = inner.module({"state": total, "rows": total, "columns": inner.pointwise("neg", element)})
    zero = builder.add(Reduce("min", (axis,), keep_dims=False), builder.pointwise(lambda v: v * 0.0, x))
    op = Scan(module, 1, (axis,), (backwards,), (0, -1), (False, backwards))
    results = builder.add_all(op, zero, x)
    turned = builder.add(Transpose((1, 0)), results[2])
    main = builder.module([("last", results[0]), ("rows", results[1]), ("columns", turned)])
    check(main, [([floats(rows, 3)], {}) for rows in (4, 1)])
