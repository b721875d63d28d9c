"""Derivatives of ops against central differences: attributes, ranks, symbolic dims, repeated and missing parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import UnsupportedError
from argosy.ir import Builder, Env, TensorType, Value
from argosy.ir.dim import Symbol, symbol_dim
from argosy.ir.dtype import FLOAT32, FLOAT64, INT64, Array
from argosy.ir.interpreter import Interpreter
from argosy.ops.determinant import Determinant
from argosy.ops.einsum import Einsum
from argosy.ops.index import Compress, Gather, GatherElements, GatherND, OneHot, Range, Triangle
from argosy.ops.matmul import Dot
from argosy.ops.random import Random
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.scan import Cumulative
from argosy.ops.scatter import ScatterElements, ScatterND
from argosy.ops.sort import TopK
from argosy.ops.view import (
    Broadcast,
    Concat,
    Pad,
    Reshape,
    ReverseSequence,
    Shape,
    Slice,
    Split,
    Squeeze,
    Tile,
    Transpose,
    Unsqueeze,
)
from argosy.rewrite.gradient import gradients
from tests.rewrite.gradient.differences import check, numbers


def ints(*values: Any) -> Array:
    return np.array(values, np.int64)


# ---- products


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((1, 2, 3), (5, 3, 4)),
    ],
)  # fmt: skip
def test_dot(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check(lambda b, x, y: b.add(Dot(), x, y), numbers(*left), numbers(*right, seed=1))
    check(lambda b, x, y: b.add(Dot(), x, y), numbers(*left), numbers(*right, seed=1), symbolic=True)


def test_dot_of_narrow_operands() -> None:
    builder = Builder()
    kind = TensorType(FLOAT32, (2, 2))
    x, y = builder.parameter("x", kind), builder.parameter("y", kind)
    found = gradients(builder, builder.add(Dot(FLOAT64), x, y), [x, y])
    assert [value.dtype for value in found] == [FLOAT32, FLOAT32]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij->i", [(2, 3)]), ("ij->", [(2, 3)]), ("i,j->ij", [(2,), (3,)]),
        ("bij,bjk,k->bi", [(2, 3, 4), (2, 4, 5), (5,)]), ("ij,k->i", [(2, 3), (4,)]), ("ij,ij->ij", [(1, 3), (2, 3)]),
        ("ii->i", [(3, 3)]), ("ii->", [(3, 3)]), ("iij,jk->ik", [(2, 2, 3), (3, 4)]), ("iii->i", [(2, 2, 2)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]), ("...i->...", [(2, 3, 4)]), ("i...,...->i...", [(2, 3, 1), (4,)]),
        ("...,...", [(2, 1), (3, 1, 2)]),
    ],
)  # fmt: skip
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [numbers(*shape, seed=place) for place, shape in enumerate(shapes)]
    check(lambda b, *values: b.add(Einsum(equation), *values), *arrays)


# ---- reductions


@pytest.mark.parametrize("kind", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("axes", [(), (0,), (-1,), (0, 2), (2, 1)])
@pytest.mark.parametrize("keep", [False, True])
def test_reduce(kind: str, axes: tuple[int, ...], keep: bool) -> None:
    check(lambda b, x: b.add(Reduce(kind, axes, keep), x), numbers(2, 3, 4))
    check(lambda b, x: b.add(Reduce(kind, axes, keep), x), numbers(2, 3, 4), symbolic=True)


def test_reduce_by_an_operand_and_not_at_all() -> None:
    check(lambda b, x: b.add(Reduce("sum"), x, b.constant(ints(1))), numbers(2, 3))
    check(lambda b, x: b.add(Reduce("mean", (), noop_with_empty_axes=True), x), numbers(2, 3))


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [[1], [0, -1], [2, 1]])
def test_reduce_by_axes_that_only_the_run_knows(kind: str, keep: bool, axes: list[int]) -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT64, (2, 3, 4)))
    given = builder.parameter("axes", TensorType(INT64, (len(axes),)))
    y = builder.add(Reduce(kind, None, keep), x, given)
    (found,) = gradients(builder, builder.pointwise(lambda y: y * y, y), [x])
    values = numbers(2, 3, 4)
    static = Builder()
    fixed = static.parameter("x", TensorType(FLOAT64, (2, 3, 4)))
    reduced = static.add(Reduce(kind, tuple(axes), keep), fixed)
    (expected,) = gradients(static, static.pointwise(lambda y: y * y, reduced), [fixed])
    np.testing.assert_allclose(
        evaluated(builder, found, x=values, axes=np.array(axes)), evaluated(static, expected, x=values)
    )


def test_products_by_such_axes_are_refused() -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT64, (2, 3)))
    y = builder.add(Reduce("prod"), x, builder.parameter("axes", TensorType(INT64, (1,))))
    with pytest.raises(UnsupportedError, match="reduce has no derivative here: its axes are not known"):
        gradients(builder, y, [x])


def test_products_with_zeros() -> None:
    """The product of the others, where dividing by the element would not do."""
    check(lambda b, x: b.add(Reduce("prod", (0,)), x), np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 7.0]]))


def test_equal_extremes_share() -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT64, (4,)))
    (found,) = gradients(builder, builder.add(Reduce("max", (0,)), x), [x])
    value = Interpreter(builder.module({"g": found})).run([np.array([2.0, 5.0, 5.0, 1.0])], Env())[0]
    np.testing.assert_array_equal(value, [0.0, 0.5, 0.5, 0.0])


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("log", [False, True])
def test_softmax(axis: int, log: bool) -> None:
    check(lambda b, x: b.add(Softmax(axis, log), x), numbers(2, 3, 4))


def test_rows_that_are_masked_give_no_gradient() -> None:
    """A row of infinities has a softmax of NaN, which is replaced behind it."""
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT64, (2, 3)))
    mask = builder.constant(np.array([[0.0, 0.0, -np.inf], [-np.inf] * 3]))
    shares = builder.add(Softmax(-1), builder.pointwise("add", x, mask))
    kept = builder.pointwise(lambda s: s.isnan().select(0.0, s * s), shares)
    (found,) = gradients(builder, kept, [x])
    values = numbers(2, 3)
    value = evaluated(builder, found, x=values)
    shown = np.exp(values[0, :2])
    y = shown / shown.sum()
    np.testing.assert_allclose(value, [[*(y * (2 * y - (2 * y * y).sum())), 0.0], [0.0] * 3], atol=1e-15)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(exclusive: bool, reverse: bool) -> None:
    check(lambda b, x: b.add(Cumulative("sum", exclusive, reverse), x, b.constant(1)), numbers(2, 5))


def test_running_products_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="cumulative has no derivative here: it is a running prod"):
        check(lambda b, x: b.add(Cumulative("prod"), x, b.constant(0)), numbers(3))


# ---- views


def test_views() -> None:
    x = numbers(2, 3, 4)
    check(lambda b, x: b.add(Reshape((4, -1)), x), x)
    check(lambda b, x: b.add(Reshape((0, -1)), x), x, symbolic=True)
    check(lambda b, x: b.add(Transpose((2, 0, 1)), x), x)
    check(lambda b, x: b.add(Transpose(), x), x)
    check(lambda b, x: b.add(Unsqueeze((0, -1)), x), x)
    check(lambda b, x: b.add(Squeeze((0, 2)), x), numbers(1, 3, 1))


def test_broadcasts() -> None:
    check(lambda b, x: b.add(Broadcast((5, 2, 3)), x), numbers(2, 1))
    check(lambda b, x: b.add(Broadcast((2, 3)), x), np.array(1.5))
    check(lambda b, x, y: b.pointwise("mul", x, y), numbers(4, 1, 3), numbers(2, 1))


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((1, 3), (2, 3)), ((3,), (2, 1)), ((1, 1), (4, 1)), ((), (2,))])
def test_broadcasts_that_only_the_run_knows(shapes: tuple[tuple[int, ...], ...]) -> None:
    check(
        lambda b, x, y: b.pointwise(lambda x, y: x * y + x, x, y), *(numbers(*shape) for shape in shapes), symbolic=True
    )


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ((1,), (3,), (1,), None), ((0, -3), (2, -1), (0, 2), (1, 1)), ((-1,), (-9,), (2,), (-1,)),
        ((0,), (9,), (2,), (2,)), ((5,), (9,), (2,), None),
    ],
)  # fmt: skip
def test_slice(
    starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...], steps: tuple[int, ...] | None
) -> None:
    check(lambda b, x: b.add(Slice(starts, ends, axes, steps), x), numbers(2, 3, 5))
    check(lambda b, x: b.add(Slice(starts, ends, axes, steps), x), numbers(2, 3, 5), symbolic=True)


def test_slice_by_operands() -> None:
    def made(b: Builder, x: Value) -> Value:
        return b.add(Slice(), x, b.constant(ints(1)), b.constant(ints(3)), b.constant(ints(1)))

    check(made, numbers(2, 4))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(mode: str) -> None:
    check(lambda b, x: b.add(Pad(mode, (0, 2, 0, 1)), x), numbers(2, 4))
    check(lambda b, x: b.add(Pad(mode, (2, -1), (1,)), x), numbers(2, 4))
    check(lambda b, x: b.add(Pad(mode), x, b.constant(ints(1, 1)), None, b.constant(ints(0))), numbers(4, 2))


def test_the_value_of_a_pad() -> None:
    check(lambda b, x, v: b.add(Pad("constant", (1, 0, 2, 0)), x, None, v), numbers(2, 3), np.array(0.5))
    check(lambda b, x, v: b.add(Pad("constant", (1, -1, 2, 0)), x, None, v), numbers(2, 3), np.array(0.5))


def test_tile() -> None:
    check(lambda b, x: b.add(Tile((2, 3)), x), numbers(2, 3))
    check(lambda b, x: b.add(Tile((2, 3)), x), numbers(2, 3), symbolic=True)


def test_joins() -> None:
    check(lambda b, x, y: b.add(Concat(1), x, y, x), numbers(2, 3), numbers(2, 1))
    check(lambda b, x, y: b.add(Concat(-1), x, y), numbers(2, 3), numbers(2, 1), symbolic=True)

    def parts(b: Builder, x: Value) -> Value:
        first, _, third = b.add_all(Split(1, 3, (1, 2, 1)), x)
        return b.pointwise(lambda a, c: a * c * c, first, third)

    check(parts, numbers(2, 4))


def test_reverse_sequence_and_triangle() -> None:
    check(lambda b, x: b.add(ReverseSequence(1, 0), x, b.constant(ints(3, 1, 2))), numbers(4, 3))
    check(lambda b, x: b.add(Triangle(upper=True), x), numbers(2, 3, 4))
    check(lambda b, x: b.add(Triangle(upper=False), x, b.constant(-1)), numbers(4, 4))


# ---- indices


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [ints(1, 0, -1, 1), ints([0, 1], [1, 1]), np.array(1)])
def test_gather(axis: int, indices: Array) -> None:
    check(lambda b, x: b.add(Gather(axis), x, b.constant(indices)), numbers(2, 3, 4))
    check(lambda b, x: b.add(Gather(axis), x, b.constant(indices)), numbers(2, 3, 4), symbolic=True)


def test_other_gathers() -> None:
    check(lambda b, x: b.add(GatherElements(1), x, b.constant(ints([0, 0], [-1, 1]))), numbers(2, 3))
    check(lambda b, x: b.add(GatherND(), x, b.constant(ints([0, 1], [1, -1], [0, 1]))), numbers(2, 3, 2))
    check(lambda b, x: b.add(GatherND(1), x, b.constant(ints([1], [0]))), numbers(2, 3, 2))
    check(lambda b, x: b.add(Compress(1), x, b.constant(np.array([True, False, True]))), numbers(2, 3))
    check(lambda b, x: b.add(Compress(), x, b.constant(np.array([True, False, True]))), numbers(2, 3))


def test_values_of_one_hot_and_range() -> None:
    indices = ints([0, 2], [-1, 7])
    check(lambda b, v: b.add(OneHot(1), b.constant(indices), b.constant(3), v), numbers(2))

    def steps(b: Builder, start: Value, delta: Value) -> Value:
        return b.add(Range(), start, b.constant(10.0), delta)

    check(steps, np.array(0.25), np.array(1.5))


@pytest.mark.parametrize("largest", [False, True])
def test_topk(largest: bool) -> None:
    check(lambda b, x: b.add(TopK(1, largest), x, b.constant(ints(2))), numbers(3, 5))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatters(reduction: str) -> None:
    places, coordinates = ints([2, 0], [1, 2]), ints([1, 2], [0, 0])
    check(lambda b, x, u: b.add(ScatterElements(1, reduction), x, b.constant(places), u), numbers(2, 3), numbers(2, 2))
    check(lambda b, x, u: b.add(ScatterND(reduction), x, b.constant(coordinates), u), numbers(2, 3), numbers(2))


def test_scatters_that_combine_otherwise_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="scatter_nd has no derivative here: it combines by 'max'"):
        check(lambda b, x, u: b.add(ScatterND("max"), x, b.constant(ints([1])), u), numbers(2, 3), numbers(1, 3))


# ---- the walk


def test_paths_meet_again_and_end() -> None:
    """A value that is read several times, one that nothing reads, integers on the way, and a y that is an x."""

    def made(b: Builder, x: Value, y: Value) -> Value:
        b.pointwise("exp", y)
        left, right = b.pointwise("sin", x), b.pointwise("mul", x, y)
        sizes = b.convert(b.add(Shape(), x), FLOAT64)
        whole = b.convert(b.convert(x, INT64), FLOAT64)
        return b.pointwise(lambda a, c, s, w: a * c + a * s + w, left, right, sizes, whole)

    check(made, np.array([0.3, 1.7]), numbers(2))
    check(lambda *values: values[1], numbers(3), numbers(2))
    check(lambda b, *values: b.pointwise("neg", values[1]), numbers(3), numbers(2))


def test_random_numbers_are_constant() -> None:
    check(lambda b, x: b.pointwise("mul", x, b.add(Random("normal", FLOAT64, 0.0, 1.0, 1, 1), x)), numbers(4))


def test_second_derivatives() -> None:
    def slope(b: Builder, x: Value, w: Value) -> Value:
        hidden = b.pointwise("tanh", b.add(Dot(), x, w))
        (found,) = gradients(b, b.add(Softmax(-1), b.pointwise("mul", hidden, hidden)), [x])
        return b.pointwise("mul", found, found)

    check(slope, numbers(2, 3), numbers(3, 3), rtol=1e-5)


def evaluated(builder: Builder, value: Value, **feeds: Array) -> Any:
    module = builder.module({"g": value})
    return Interpreter(module).run([feeds[name] for name in module.parameter_names], Env())[0]


def test_cuts_and_other_values() -> None:
    """Y = h(x) z with h = x²: cut at h it is z, at another h too; with z constant; at another x."""
    builder = Builder()
    kind = TensorType(FLOAT64, (3,))
    x, z, other = (builder.parameter(name, kind) for name in ("x", "z", "other"))
    h = builder.pointwise(lambda x: x * x, x)
    y = builder.pointwise(lambda h, z: h * h * z, h, z)
    feeds = {"x": numbers(3), "z": numbers(3, seed=1), "other": numbers(3, seed=2)}
    inner = feeds["x"] ** 2
    by_h, by_x = gradients(builder, y, [h, x])
    np.testing.assert_allclose(evaluated(builder, by_h, **feeds), 2 * inner * feeds["z"])
    assert not evaluated(builder, by_x, **feeds).any()
    (moved,) = gradients(builder, y, [h], [z], at=[other, x])
    np.testing.assert_allclose(evaluated(builder, moved, **feeds), 2 * feeds["other"] * feeds["x"])
    (shifted,) = gradients(builder, y, [x], at=[other])
    np.testing.assert_allclose(evaluated(builder, shifted, **feeds), 4 * feeds["other"] ** 3 * feeds["z"])
    size = symbol_dim(Symbol("N"))
    long = builder.parameter("long", TensorType(FLOAT64, (size,)))
    with pytest.raises(Exception, match=r"the value given for 'x' is float64\[N\], expected float64\[3\]"):
        gradients(builder, y, [x], at=[long])


def test_tensors_of_unknown_rank() -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT64, (2, 3)))
    loose = builder.add(Reshape(), x, builder.parameter("shape", TensorType(INT64, (symbol_dim(Symbol("R")),))))
    y = builder.add(Reshape((6,)), builder.add(Transpose((1, 0)), loose))
    (found,) = gradients(builder, builder.pointwise(lambda y: y * y, y), [x])
    value = evaluated(builder, found, x=numbers(2, 3), shape=ints(3, 2))
    np.testing.assert_allclose(value, 2 * numbers(2, 3))


def test_deep_programs() -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT64, ()))
    value = x
    for _ in range(5000):
        value = builder.pointwise("add", value, x)
    (found,) = gradients(builder, value, [x])
    assert evaluated(builder, found, x=np.array(1.0)) == 5001


def test_ops_without_a_derivative_are_told_at_once() -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT64, (2, 2)))
    first = builder.add(Determinant(), x, source="Det (node 3 → 'd')")
    second = builder.add(Determinant(), builder.pointwise("neg", x), source="second")
    y = builder.pointwise("mul", first, second)
    with pytest.raises(UnsupportedError) as caught:
        gradients(builder, y, [x])
    assert caught.value.items == ("Det (node 3 → 'd'): determinant", "second: determinant")
    assert "name tensors that they compute in 'zs'" in caught.value.hint
    assert len(gradients(builder, y, [first], [second])) == 1
