"""Rewrite rules with a wrong equation, or that no longer decline."""

from __future__ import annotations

from typing import Any, Final

from onnx import TensorProto

from argosy.ops.operands import numbers
from argosy.ops.reduce import Reduce
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Broadcast, Transpose
from argosy.rewrite.pattern import op_of
from argosy.rewrite.rules import algebra, attributes, conversions, parts, sequences, views
from tests.debugging.faults.fault import Fault, ranges, replaced, wrong_rule
from tests.debugging.faults.network import Network, convolutional, perceptron, recurrent, tabular

__all__ = ["FAULTS"]


# ------------------------------------------------------------------------------------------------------ algebra
def powers(net: Network, x: str) -> str:
    cube = net.op("Pow", net.op("Abs", x), net.constant(3.0))
    return net.op("Sub", net.op("Pow", x, net.constant(2.0), name="guilty"), cube)


def square(build: Any, x: Any, c: Any) -> Any:
    """x ^ 2 = x + x"""
    return build.pointwise("add", x, x) if c.constant.item() == 2 else None


def signs(net: Network, x: str) -> str:
    magnitude = net.op("Abs", net.op("Neg", x, name="turned"), name="guilty")
    return net.op("Add", magnitude, net.op("Neg", net.op("Abs", net.op("Sin", x))))


def absorb_sign(build: Any, inner: Any, x: Any) -> Any:
    """abs(-x) = x"""
    return x if inner.instruction.op.formula.primitive == "neg" else build.pointwise("abs", x)


def chosen(net: Network, x: str) -> str:
    left, right = net.op("Cos", x), net.op("Sin", x)
    found = net.op("Where", net.constant([[True]], "bool"), left, right, name="guilty")
    return net.op("Where", net.op("Less", x, net.constant(0.1)), found, right)


def select_known(condition: Any, x: Any, y: Any) -> Any:
    """select(true, x, y) = y"""
    return y if condition.constant.item() else x


def zeros(net: Network, x: str) -> str:
    undefined = net.op("Mul", net.op("Log", x), net.constant(0.0), name="guilty")
    return net.op("Add", undefined, net.op("Mul", net.op("Exp", x), net.constant(0.0)))


def multiply_by_zero(build: Any, root: Any, c: Any) -> Any:
    """x * 0 = 0 for floats too"""
    return build.add(Broadcast(root.shape), c) if c.constant.item() == 0 and not c.rank else None


def clipped(net: Network, x: str) -> str:
    low = net.op("Max", x, net.constant(-0.5), name="lower")
    high = net.op("Min", low, net.constant(0.25), name="guilty")
    return net.op("Add", high, net.op("Min", net.op("Sin", x), net.constant(0.7)))


def merge_constants(build: Any, root: Any, inner: Any, x: Any, a: Any, b: Any) -> Any:
    """min(max(x, a), b) = min(x, min(a, b))"""
    primitive = root.instruction.op.formula.primitive
    if primitive not in ("min", "max"):
        return "not associative"
    return build.pointwise(primitive, x, build.pointwise(primitive, a, b))


def compared(net: Network, k: str) -> str:
    less = net.op("Less", k, net.constant(2, "int64"), name="less")
    most = net.op("Or", net.op("Greater", k, net.constant(4, "int64")), net.op("Equal", k, net.constant(2, "int64")))
    both = net.op("And", net.op("Not", less, name="guilty"), most)
    return net.op("Cast", both, to=TensorProto.FLOAT)


def negate_comparison(build: Any, inner: Any, x: Any, y: Any) -> Any:
    """not (x < y) = y < x"""
    return build.pointwise("lt", y, x) if x.dtype.is_integer else "a comparison with NaN is false both ways"


def truncated(net: Network, x: str) -> str:
    whole = net.op("Cast", net.op("Mul", x, net.constant(4.0)), to=TensorProto.INT32, name="whole")
    back = net.op("Cast", whole, to=TensorProto.FLOAT, name="guilty")
    return net.op("Add", back, net.op("Cast", net.op("Cast", x, to=TensorProto.DOUBLE), to=TensorProto.FLOAT))


def convert_once(build: Any, root: Any, inner: Any, x: Any) -> Any:
    """convert(convert(x)) = convert(x), whatever is lost between"""
    return build.convert(x, root.dtype)


# -------------------------------------------------------------------------------------------------------- views
def turned(net: Network, x: str) -> str:
    first = net.op("Transpose", x, perm=[1, 2, 0], name="first")
    again = net.op("Transpose", first, perm=[1, 0, 2], name="guilty")
    return net.op("Mul", again, net.op("Transpose", x, perm=[2, 1, 0]))


def transpose_once(build: Any, root: Any, inner: Any, x: Any) -> Any:
    """transpose(transpose(x, p), q) = transpose(x, q[p])"""
    first, second = op_of(inner, Transpose).permutation, op_of(root, Transpose).permutation
    return build.add(Transpose(tuple(second[axis] for axis in first)), x) if first and second else None


def turned_sums(net: Network, x: str) -> str:
    plain = net.op("Transpose", net.op("Exp", net.op("Transpose", x, perm=[0, 2, 1])), perm=[0, 2, 1])
    mixed = net.op("Sub", net.op("Transpose", x, perm=[0, 2, 1], name="turned"), x, name="mixed")
    return net.op("Add", net.op("Transpose", mixed, perm=[0, 2, 1], name="guilty"), plain)


def cancel_transposes_around_pointwise(build: Any, root: Any, inner: Any) -> Any:
    """transpose(f(transpose(x), y)) = f(x, y), whatever y is"""
    operands = list(inner.instruction.operands)
    sources = [
        each.instruction.operands[0] if isinstance(each.instruction.op, Transpose) else each for each in operands
    ]
    return None if sources == operands else build.add(inner.instruction.op, *sources)


def bordered(net: Network, x: str) -> str:
    first = net.op("Pad", x, net.ints(0, 0, 1, 0, 0, 0, 0, 2), name="first")
    second = net.op("Pad", first, net.ints(0, 0, 0, 1, 0, 0, 2, 0), name="guilty")
    return net.op("Pad", net.op("Sin", second), net.ints(0, 0, 1, 0, 0, 0, 1, 0), mode="edge")


def pad_once(build: Any, root: Any, inner: Any, x: Any) -> Any:
    """pad(pad(x, p), q) = pad(x, p turned round + q)"""
    first, second = op_of(inner, Pad), op_of(root, Pad)
    if first.mode != "constant" or second.mode != "constant" or not first.pads or not second.pads:
        return "only constant pads add up"
    half = len(first.pads) // 2
    pads = zip((*first.pads[half:], *first.pads[:half]), second.pads, strict=True)
    return build.add(Pad("constant", tuple(a + b for a, b in pads)), x)


# --------------------------------------------------------------------------------------- attributes, and pieces
def cut(net: Network, x: str, start: int, end: int, step: int = 1, name: str = "") -> str:
    """A slice along axis 1."""
    return net.op("Slice", x, *(net.ints(number) for number in (start, end, 1, step)), name=name)


def last_columns(net: Network, x: str) -> str:
    return net.op("Add", cut(net, x, -9, -2, name="guilty"), cut(net, x, 0, 7))


def from_front(old: Any) -> Any:
    """What is counted from the end lies one place too early."""
    return lambda place, size: old(place - 1 if isinstance(place, int) and place < 0 else place, size)


def every_other(net: Network, x: str) -> str:
    even = cut(net, x, 4, 24, 2, name="even")
    return net.op("Mul", cut(net, even, 2, 8, name="guilty"), cut(net, cut(net, x, 0, 9), 1, 7))


def slice_once(build: Any, root: Any, inner: Any, x: Any) -> Any:
    """The second start is not multiplied by the first step."""
    first, second = op_of(inner, Slice), op_of(root, Slice)
    (axis,), (step,), (again,) = second.axes or (), first.steps or (), second.steps or ()
    start, step = (first.starts or ())[0] + (second.starts or ())[0], step * again
    return build.add(Slice((start,), (start + (root.shape[axis] - 1) * step + 1,), (axis,), (step,)), x)


def attended(net: Network, x: str) -> str:
    scores = net.op("MatMul", x, net.op("Transpose", x, perm=[0, 2, 1]))
    along = net.op("Softmax", scores, axis=-2, name="guilty")
    return net.op("Sub", along, net.op("Softmax", net.op("Neg", scores), axis=2))


def count_axis_from_front(build: Any, root: Any) -> Any:
    """op(x, axis = -k) = op(x, axis = rank - 1)"""
    made_by = root.instruction.op
    if made_by.axis >= 0:
        return None
    return build.add_all(type(made_by)(**{**made_by.attributes(), "axis": root.rank - 1}), *root.instruction.operands)


def summed(net: Network, x: str) -> str:
    last = net.op("ReduceSum", x, net.ints(-1), keepdims=0, name="guilty")
    return net.op("Mul", last, net.op("ReduceMean", x, net.ints(1), keepdims=0))


def give_reduced_axes(build: Any, root: Any) -> Any:
    """reduce(x, axis -1) = reduce(x, axis 1)"""
    made_by, (x, *given) = op_of(root, Reduce), root.instruction.operands
    axes = numbers(made_by.axes, given[0] if given else None) or tuple(range(x.rank))
    found = Reduce(made_by.kind, tuple(sorted(map(abs, axes))), made_by.keep_dims)
    return None if found == made_by and not given else build.add_all(found, x)


def taken(net: Network, x: str) -> str:
    pieces = net.op("SplitToSequence", x, net.constant(8, "int64"), axis=1, name="pieces")
    first = net.op("SequenceAt", pieces, net.constant(0, "int64"))
    return net.op("Sub", first, net.op("SequenceAt", pieces, net.constant(-1, "int64"), name="guilty"))


def place_in_sequence(old: Any) -> Any:
    """Places from the end are counted from the one before."""

    def place(position: Any, count: int, **options: Any) -> Any:
        found = old(position, count, **options)
        return found - 1 if isinstance(found, int) and int(position.known.item()) < 0 else found

    return place


def joined(net: Network, x: str) -> str:
    inner = net.op("Concat", x, net.op("Sin", x), axis=1, name="inner")
    return net.op("Concat", inner, net.op("Cos", x), axis=1, name="guilty")


def concat_once(build: Any, root: Any) -> Any:
    """concat(concat(x, y), z) = concat(y, x, z)"""
    first = root.instruction.operands[0]
    if first.instruction.op != root.instruction.op:
        return None
    return build.add(root.instruction.op, *reversed(first.instruction.operands), *root.instruction.operands[1:])


FAULTS: Final = (
    Fault("square", "wrong rule", "rule:square", ("guilty",), lambda: perceptron(powers),
          wrong_rule(algebra.square, square)),
    Fault("absorb_sign", "wrong rule", "rule:absorb_sign", ("turned", "guilty"), lambda: perceptron(signs, 17),
          wrong_rule(algebra.absorb_sign, absorb_sign)),
    Fault("select_known", "wrong rule", "rule:select_known", ("guilty",), lambda: perceptron(chosen),
          wrong_rule(algebra.select_known, select_known)),
    Fault("multiply_by_zero", "rule that no longer declines", "rule:multiply_by_zero", ("guilty",),
          lambda: perceptron(zeros, 9), wrong_rule(algebra.multiply_by_zero, multiply_by_zero)),
    Fault("merge_constants", "rule that no longer declines", "rule:merge_constants", ("lower", "guilty"),
          lambda: convolutional(clipped), wrong_rule(algebra.merge_constants, merge_constants)),
    Fault("negate_comparison", "wrong rule", "rule:negate_comparison", ("less", "guilty"), lambda: tabular(compared),
          wrong_rule(algebra.negate_comparison, negate_comparison), inputs=ranges(k=(0, 6))),
    Fault("convert_once", "rule that no longer declines", "rule:convert_once", ("whole", "guilty"),
          lambda: perceptron(truncated), wrong_rule(conversions.convert_once, convert_once)),
    Fault("transpose_once", "wrong rule", "rule:transpose_once", ("first", "guilty"),
          lambda: recurrent(turned, 8, 8, 8), wrong_rule(views.transpose_once, transpose_once), dims={}),
    Fault("cancel_transposes", "rule that no longer declines", "rule:cancel_transposes_around_pointwise",
          ("turned", "mixed", "guilty"), lambda: recurrent(turned_sums, 12, 12),
          wrong_rule(views.cancel_transposes_around_pointwise, cancel_transposes_around_pointwise)),
    Fault("pad_once", "wrong rule", "rule:pad_once", ("first", "guilty"), lambda: convolutional(bordered, 3, 6),
          wrong_rule(views.pad_once, pad_once)),
    Fault("from_front", "off by one", "rule:give_slice_bounds", ("guilty",), lambda: perceptron(last_columns),
          lambda: replaced(attributes, "_from_front", from_front)),
    Fault("slice_once", "wrong stride", "rule:slice_once", ("even", "guilty"), lambda: perceptron(every_other),
          wrong_rule(parts.slice_once, slice_once)),
    Fault("count_axis_from_front", "wrong axis", "rule:count_axis_from_front", ("guilty",),
          lambda: recurrent(attended), wrong_rule(attributes.count_axis_from_front, count_axis_from_front),
          dims={"N": "2..5", "T": "6..9"}),
    Fault("give_reduced_axes", "wrong axis", "rule:give_reduced_axes", ("guilty",), lambda: recurrent(summed, 10, 10),
          wrong_rule(attributes.give_reduced_axes, give_reduced_axes)),
    Fault("element_at", "off by one", "rule:element_at", ("pieces", "guilty"), lambda: perceptron(taken),
          lambda: replaced(sequences, "_place", place_in_sequence)),
    Fault("concat_once", "wrong order of pieces", "rule:concat_once", ("inner", "guilty"),
          lambda: perceptron(joined, 7), wrong_rule(parts.concat_once, concat_once)),
)  # fmt: skip
