"""Reductions, positions of extremes, and softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import Dim
from argosy.ir.dtype import FLOAT64, INT64
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.dim_values import DimValues
from argosy.ops.index import Range
from argosy.ops.reduce import ArgReduce, Reduce, Softmax
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.view import Reshape, Squeeze, Unsqueeze

_SIMPLE = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min"}


@dataclass(frozen=True, slots=True)
class _Axes:
    """What a Reduce node says about its axes; `operand` gives them at run time where `axes` is None."""

    axes: tuple[int, ...] | None
    operand: Value | None
    keep_dims: bool
    noop: bool

    def reduce(self, node: Node, kind: str, x: Value, *, keep_dims: bool | None = None) -> Value:
        """`x` reduced by `kind`."""
        keep = self.keep_dims if keep_dims is None else keep_dims
        operands = (x,) if self.operand is None else (x, self.operand)
        return node.add(Reduce(kind, self.axes, keep, self.noop), *operands)


def _from_attribute(node: Node) -> _Axes:
    return _Axes(node.attr_ints("axes", ()), None, node.attr_flag("keepdims", default=True), noop=False)


def _from_input(node: Node) -> _Axes:
    keep, noop = node.attr_flag("keepdims", default=True), node.attr_flag("noop_with_empty_axes")
    operand, known = node.optional(1), node.known_ints(1)
    if operand is None:
        return _Axes((), None, keep, noop)
    if known is None or any(isinstance(axis, Dim) for axis in known):
        return _Axes(None, operand, keep, noop)
    return _Axes(tuple(int(axis) for axis in known if not isinstance(axis, Dim)), None, keep, noop)


def _simple(node: Node, axes: _Axes) -> Value:
    return axes.reduce(node, _SIMPLE[node.proto.op_type], node.input(0))


def _widened(node: Node, compute: Callable[[Value], Value], *, always_float: bool = False) -> Value:
    """`compute` on the input in its compute type, so that the result is rounded once; integers by way of float64."""
    x = node.input(0)
    wide = FLOAT64 if always_float and x.dtype.is_integer else x.dtype.compute
    return node.builder.convert(compute(node.builder.convert(x, wide)), x.dtype)


def _square(x: Expr) -> Expr:
    return x * x


def _l1(node: Node, axes: _Axes) -> Value:
    return _widened(node, lambda x: axes.reduce(node, "sum", node.pointwise("abs", x)))


def _l2(node: Node, axes: _Axes) -> Value:
    def norm(x: Value) -> Value:
        return node.pointwise("sqrt", axes.reduce(node, "sum", node.pointwise(_square, x)))

    return _widened(node, norm, always_float=True)


def _sum_square(node: Node, axes: _Axes) -> Value:
    return _widened(node, lambda x: axes.reduce(node, "sum", node.pointwise(_square, x)))


def _log_sum(node: Node, axes: _Axes) -> Value:
    return _widened(node, lambda x: node.pointwise("log", axes.reduce(node, "sum", x)), always_float=True)


def _log_sum_exp(node: Node, axes: _Axes) -> Value:
    """log(sum(exp(x - m))) + m with the largest element m (0 where that is infinite), so that nothing overflows."""

    def logarithm(x: Value) -> Value:
        largest = axes.reduce(node, "max", x, keep_dims=True)
        powers = node.pointwise(lambda x, m: (x - m.isinf().select(0.0, m)).exp(), x, largest)
        total = axes.reduce(node, "sum", powers)
        if not axes.keep_dims:
            largest = _without_axes(node, axes, x, largest)
        return node.pointwise(lambda s, m: s.log() + m.isinf().select(0.0, m), total, largest)

    return _widened(node, logarithm, always_float=True)


def _without_axes(node: Node, axes: _Axes, x: Value, largest: Value) -> Value:
    if axes.axes is None:
        return axes.reduce(node, "max", x)
    if axes.axes:
        return node.add(Squeeze(axes.axes), largest)
    return largest if axes.noop else node.add(Reshape(()), largest)


_COMPOSED = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceSumSquare": _sum_square,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
}


@onnx_op(*_SIMPLE)
def reduce_simple_1(node: Node) -> Value:
    """Axes as an attribute."""
    return _simple(node, _from_attribute(node))


@onnx_op("ReduceSum", since=13)
@onnx_op("ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", since=18)
def reduce_simple(node: Node) -> Value:
    """Axes as an input."""
    return _simple(node, _from_input(node))


@onnx_op(*_COMPOSED)
def reduce_composed_1(node: Node) -> Value:
    """Axes as an attribute, formulas before and after."""
    return _COMPOSED[node.proto.op_type](node, _from_attribute(node))


@onnx_op(*_COMPOSED, since=18)
def reduce_composed(node: Node) -> Value:
    """Axes as an input, formulas before and after (which stay where no axis is reduced)."""
    return _COMPOSED[node.proto.op_type](node, _from_input(node))


@onnx_op("ArgMax", "ArgMin")
def arg_extreme(node: Node) -> Value:
    """Position of the greatest or least element along an axis."""
    kind = "max" if node.proto.op_type == "ArgMax" else "min"
    keep, last = node.attr_flag("keepdims", default=True), node.attr_flag("select_last_index")
    return node.add(ArgReduce(kind, node.attr_int("axis", 0), keep, last), node.input(0))


def _flattened(node: Node, compute: Callable[[Value], Value]) -> Value:
    """`compute` over the last axis of `x` as a matrix, whose rows hold the axes from `axis` on: before opset 13."""
    x = node.input(0)
    axis = node.attr_int("axis", 1)
    axis = axis if axis == x.rank else normalize_axis(axis, x.rank)
    if axis == x.rank - 1:
        return compute(x)
    rows = Reshape((product(x.shape[:axis]), product(x.shape[axis:])), allow_zero=True)
    return node.add(Reshape(x.shape, allow_zero=True), compute(node.add(rows, x)))


@onnx_op("Softmax", "LogSoftmax")
def softmax_1(node: Node) -> Value:
    """Over all axes from `axis` on together."""
    log = node.proto.op_type == "LogSoftmax"
    return _flattened(node, lambda x: node.add(Softmax(-1, log), x))


@onnx_op("Softmax", "LogSoftmax", since=13)
def softmax(node: Node) -> Value:
    """Over one axis."""
    return node.add(Softmax(node.attr_int("axis", -1), node.proto.op_type == "LogSoftmax"), node.input(0))


def _hardmax(node: Node, x: Value, axis: int) -> Value:
    """1 where the first greatest element along `axis` is, 0 elsewhere."""
    axis = normalize_axis(axis, x.rank)
    if any(isinstance(size, int) and size == 0 for size in x.shape):
        return x  # of nothing, nothing is the greatest
    place = node.add(ArgReduce("max", axis), x)
    size = node.add(DimValues((x.shape[axis],), scalar=True))
    places = node.add(Range(), node.constant(0, INT64), size, node.constant(1, INT64))
    behind = x.rank - axis - 1
    if behind:
        places = node.add(Unsqueeze(tuple(range(1, 1 + behind))), places)
    return node.pointwise(lambda p, q: (p == q).convert(x.dtype), place, places)


@onnx_op("Hardmax", since=13)
def Hardmax(node: Node) -> Value:
    """Over one axis."""
    return _hardmax(node, node.input(0), node.attr_int("axis", -1))


@onnx_op("Hardmax")
def Hardmax_1(node: Node) -> Value:
    """Over all axes from `axis` on together."""
    return _flattened(node, lambda x: _hardmax(node, x, -1))
