"""Sizes that only the run knows and that do not fit each other: refused by native code as the interpreter does.

Each program runs with sizes that fit, and with some that do not; the node is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from argosy.errors import UsageError
from argosy.ir import Builder, Module, Symbol, TensorType, Value, symbol_dim
from argosy.ir.dtype import BOOL, DTYPES, FLOAT32, INT64
from argosy.ops.control import If
from argosy.ops.convolution import Conv
from argosy.ops.einsum import Einsum
from argosy.ops.index import GatherElements, NonZero
from argosy.ops.matmul import Dot
from argosy.ops.pooling import Pool
from argosy.ops.quantize import Dequantize
from argosy.ops.reduce import ArgReduce
from argosy.ops.scatter import ScatterElements
from argosy.ops.slicing import Pad
from argosy.ops.trees import TreeEnsemble
from argosy.ops.view import Broadcast, Concat, Reshape, Split, Squeeze
from tests.targets.cpu.against_ref import check, compiled

N, M, K = (symbol_dim(Symbol(name)) for name in "NMK")
RANDOM = np.random.default_rng(5)
Dims = Sequence[Any]


def neg(builder: Builder, value: Value) -> Value:
    """What stands on either side of a view, so that it is fused."""
    return builder.pointwise("neg", value, source="beside the node")


def program(kinds: Sequence[Dims | TensorType], build: Callable[..., Value]) -> Module:
    builder = Builder()
    types = [kind if isinstance(kind, TensorType) else TensorType(FLOAT32, tuple(kind)) for kind in kinds]
    values = [builder.parameter(f"x{index}", kind) for index, kind in enumerate(types)]
    return builder.module({"y": build(builder, *values)})


def conv(builder: Builder, x: Value, weight: Value) -> Value:
    return builder.add(Conv((1, 1), (0, 0, 0, 0), (1, 1)), x, weight, source="node")


def trees(builder: Builder, x: Value) -> Value:
    """A branch on feature 1, and two leaves."""
    nodes = (
        np.array([1, 0, 0]), np.zeros(3, np.float32), np.array([0, 255, 255], np.uint8), np.array([1, 1, 2]),
        np.array([2, 1, 2]), np.zeros(3, np.bool_), np.array([0]), np.array([0, 0, 1, 2]), np.array([0, 0]),
        np.array([1.5, -2.0], np.float32),
    )  # fmt: skip
    constants = [builder.constant(node) for node in nodes]
    return builder.add(TreeEnsemble("sum", 1, 1, FLOAT32, 2), x, *constants, source="node")


# The dims of the operands, the op, shapes that fit, and shapes that do not.
CASES: dict[str, tuple[Sequence[Dims], Callable[..., Value], Sequence[Any], Sequence[Any]]] = {
    "pointwise": (
        [(N,), (M,)], lambda b, x, y: b.pointwise("add", x, y, source="node"),
        ([(2,), (2,)], [(1,), (3,)], [(0,), (0,)]), ([(2,), (3,)], [(0,), (2,)]),
    ),
    "einsum": (
        [(N, M), (M, K)], lambda b, x, y: b.add(Einsum("ij,ij->i"), x, y, source="node"),
        ([(2, 2), (2, 2)], [(1, 3), (3, 3)]), ([(2, 3), (3, 2)], [(2, 0), (0, 0)]),
    ),
    "position of the greatest": (
        [(3, N)], lambda b, x: b.add(ArgReduce("max", 1), x, source="node"), ([(3, 2)], [(3, 1)]), ([(3, 0)],),
    ),
    "trees": (
        [(3, N)], trees, ([(3, 2)], [(3, 5)]), ([(3, 1)], [(3, 0)]),
    ),
    "pointwise with a number": (
        [(N, 3), (4, 1)], lambda b, x, y: b.pointwise("add", x, y, source="node"), ([(4, 3), (4, 1)], [(1, 3), (4, 1)]),
        ([(2, 3), (4, 1)], [(5, 3), (4, 1)]),
    ),
    "pointwise with none": (
        [(N, 3), (0, 1)], lambda b, x, y: b.pointwise("add", x, y, source="node"), ([(0, 3), (0, 1)], [(1, 3), (0, 1)]),
        ([(2, 3), (0, 1)],),
    ),
    "dot": (
        [(N, M), (K, 20)], lambda b, x, y: b.add(Dot(), x, y, source="node"), ([(2, 4), (4, 20)],),
        ([(20, 30), (40, 20)], [(20, 40), (30, 20)]),
    ),
    "batches of dots": (
        [(N, 3, 4), (M, 4, 2)], lambda b, x, y: b.add(Dot(), x, y, source="node"),
        ([(2, 3, 4), (2, 4, 2)], [(1, 3, 4), (2, 4, 2)]), ([(2, 3, 4), (3, 4, 2)],),
    ),
    "concat": (
        [(N, M), (K, 4)], lambda b, x, y: b.add(Concat(0), x, y, source="node"), ([(2, 4), (3, 4)],),
        ([(2, 3), (3, 4)], [(2, 5), (3, 4)]),
    ),
    "fused reshape": (
        [(N, M)], lambda b, x: neg(b, b.add(Reshape((N, 2)), neg(b, x), source="node")), ([(2, 2)],),
        ([(2, 3)], [(2, 1)]),
    ),
    "reshape with a rest": (
        [(N, M)], lambda b, x: neg(b, b.add(Reshape((4, -1)), neg(b, x), source="node")), ([(2, 6)],), ([(2, 3)],),
    ),
    "fused expand": (
        [(N, M)], lambda b, x: neg(b, b.add(Broadcast((3, 4)), neg(b, x), source="node")), ([(3, 4)], [(1, 4)]),
        ([(2, 4)], [(3, 5)]),
    ),
    "fused squeeze": (
        [(N, M)], lambda b, x: neg(b, b.add(Squeeze((0,)), neg(b, x), source="node")), ([(1, 4)],), ([(2, 4)],),
    ),
    "fused split": (
        [(N, 2)], lambda b, x: neg(b, b.add_all(Split(0, 2, (2, 3)), neg(b, x), source="node")[1]), ([(5, 2)],),
        ([(4, 2)], [(6, 2)]),
    ),
    "the first of equal pieces": (
        [(N,)], lambda b, x: neg(b, b.add_all(Split(0, 5), neg(b, x), source="node")[0]),
        ([(5,)], [(10,)], [(9,)], [(0,)]), ([(6,)], [(7,)], [(2,)], [(1,)], [(11,)]),
    ),
    "the first of pieces as equal as may be": (
        [(N,)], lambda b, x: neg(b, b.add_all(Split(0, 2), neg(b, x), source="node")[0]), ([(5,)], [(4,)], [(1,)]), (),
    ),
    "filters in groups": (
        [(1, 4, 5), (N, 2, 3)], lambda b, x, w: b.add(Conv((1,), (0, 0), (1,), 2), x, w, source="node"),
        ([(1, 4, 5), (4, 2, 3)], [(1, 4, 5), (0, 2, 3)]), ([(1, 4, 5), (3, 2, 3)],),
    ),
    "an empty window": (
        [(1, 4, 5), (2, 4, N)], lambda b, x, w: b.add(Conv((1,), (0, 0), (1,)), x, w, source="node"),
        ([(1, 4, 5), (2, 4, 3)],), ([(1, 4, 5), (2, 4, 0)], [(1, 4, 5), (2, 4, 6)]),
    ),
    "pads that take away": (
        [(N,)], lambda b, x: neg(b, b.add(Pad("constant", (-2, 3)), neg(b, x), source="node")),
        ([(2,)], [(4,)]), ([(1,)], [(0,)]),
    ),
    "edges that are repeated": (
        [(N,)], lambda b, x: neg(b, b.add(Pad("edge", (1, 2)), neg(b, x), source="node")), ([(1,)], [(4,)]), ([(0,)],),
    ),
    "channels": ([(1, N, 8, 8), (4, 3, 3, 3)], conv, ([(1, 3, 8, 8), (4, 3, 3, 3)],), ([(1, 2, 8, 8), (4, 3, 3, 3)],)),
    "a window": ([(1, 3, N, 8), (4, 3, 3, 3)], conv, ([(1, 3, 8, 8), (4, 3, 3, 3)],), ([(1, 3, 2, 8), (4, 3, 3, 3)],)),
    "a window of a pool": (
        [(1, 2, N)], lambda b, x: b.add(Pool("max", (4,), (1,), (1, 1), (1,)), x, source="node"), ([(1, 2, 2)],),
        ([(1, 2, 1)],),
    ),
}  # fmt: skip


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_sizes_that_do_not_fit_are_refused(case: str) -> None:
    kinds, build, good, bad = CASES[case]
    module = program(kinds, build)
    check(module, [([floats(*shape) for shape in shapes], {}) for shapes in (*good, *bad)], case)
    session = compiled(module)
    for shapes in bad:
        with pytest.raises(UsageError, match="node") as caught:
            session.run({f"x{index}": floats(*shape) for index, shape in enumerate(shapes)})
        assert caught.value.hint.startswith("it read ")


def test_indices_that_reach_over_the_data_are_refused() -> None:
    index = TensorType(INT64, (2, M))
    module = program([(3, N), index], lambda b, x, i: b.add(GatherElements(0), x, i))
    indices = [np.zeros((2, size), np.int64) for size in (2, 4, 5)]
    check(module, [([floats(3, 4), given], {}) for given in indices])
    update = program([(3, N), index, (2, K)], lambda b, x, i, u: b.add(ScatterElements(0), x, i, u))
    check(update, [([floats(3, 4), given, floats(2, size)], {}) for given in indices for size in (2, 4, 5)])


def test_a_scale_for_each_channel_is_one_for_each_or_one_for_all() -> None:
    module = program([TensorType(DTYPES["int8"], (2, N)), (M,)], lambda b, x, s: b.add(Dequantize(FLOAT32, 1), x, s))
    values = np.arange(6, dtype=np.int8).reshape(2, 3)
    session = compiled(module)
    for size in (1, 3):
        scale = np.arange(1, size + 1, dtype=np.float32)
        np.testing.assert_array_equal(session.run({"x0": values, "x1": scale})["y"], values * scale)
    for fewer, size in ((3, 2), (1, 3), (1, 0)):
        with pytest.raises(UsageError):
            session.run({"x0": values[:, :fewer], "x1": floats(size)})


def test_sizes_that_depend_on_data_are_checked_too() -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (N,)))
    count = builder.convert(builder.add(NonZero(), x), FLOAT32)
    module = builder.module({"y": builder.pointwise("add", count, builder.constant(np.ones(3, np.float32)))})
    check(module, [([np.array(x, np.float32)], {}) for x in ([1, 0, 2, 3], [0, 1], [1, 1], [1, 2, 3, 4, 0])])


@pytest.mark.parametrize("flag", [True, False])
def test_what_one_branch_demands_the_other_does_not(flag: bool) -> None:
    """A check inside a branch is no check for what follows."""
    builder = Builder()
    kinds = [TensorType(FLOAT32, (N,)), TensorType(FLOAT32, (M,))]
    condition = builder.parameter("c", TensorType(BOOL, ()))
    x, y = (builder.parameter(name, kind) for name, kind in zip("xy", kinds, strict=True))
    branches = []
    for name in ("then", "other"):
        inner = Builder(name, namer=builder.namer)
        a, b = (inner.parameter(f"{name}{index}", kind) for index, kind in enumerate(kinds))
        branches.append(
            inner.module({"v": inner.pointwise("add", a, b) if name == "then" else inner.pointwise("neg", a)})
        )
    chosen = builder.add(If(*branches), condition, x, y, x, y)
    module = builder.module({"chosen": chosen, "product": builder.pointwise("mul", neg(builder, x), y)})
    sizes = ((2, 2), (2, 3), (1, 3))
    check(module, [([np.array(flag), floats(n), floats(m)], {}) for n, m in sizes])
