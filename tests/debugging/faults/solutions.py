"""CPU solutions with wrong kernels: their code, sizes, windows and what is prepared of weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final
from unittest import mock

import numpy as np
from onnx import TensorProto

from argosy.ir.access import Access
from argosy.ops.slicing import Slice
from argosy.targets.cpu.codegen import element, gemm, winograd
from argosy.targets.cpu.codegen.emitters import views as emitters
from argosy.targets.cpu.solutions import blocked_convolution, blocked_images, dot, joining
from argosy.targets.cpu.solutions.attention import TiledAttention
from argosy.targets.cpu.solutions.blocked_convolution import DirectConvolution
from argosy.targets.cpu.solutions.blocked_images import BlockedPool
from argosy.targets.cpu.solutions.loops import ElementwiseLoops, ReductionLoops
from argosy.targets.cpu.solutions.packed_recurrent import PackedRecurrence
from argosy.targets.cpu.solutions.resize import ResizePasses
from argosy.targets.cpu.solutions.scan import CumulativeLoops
from argosy.targets.cpu.solutions.scatter import ScatterLoops
from argosy.targets.cpu.solutions.softmax import SoftmaxRows
from argosy.targets.cpu.solutions.sort import TopKHeap
from argosy.targets.cpu.solutions.vector_reduction import ReductionAcross
from tests.debugging.faults.fault import Fault, changed_kernels, ranges, replaced, wrong_kernel
from tests.debugging.faults.network import Network, convolutional, perceptron, recurrent, tabular

__all__ = ["FAULTS"]


# ------------------------------------------------------------------------------------------------- element by element
def errors(net: Network, x: str) -> str:
    return net.op("Add", net.op("Erf", x, name="guilty"), net.op("Tanh", net.op("Neg", x)))


def large(net: Network, k: str) -> str:
    few = net.op("Less", k, net.constant(100, "uint8"), name="guilty")
    return net.op("Cast", net.op("Xor", few, net.op("Equal", k, net.constant(7, "uint8"))), to=TensorProto.FLOAT)


def embedded(net: Network, k: str) -> str:
    rows = net.op("Gather", net.weight(300, 4), k, name="guilty")
    return net.op("Mul", rows, net.op("Gather", net.weight(5, 4), net.op("Mod", k, net.constant(5, "int64"))))


def pieces(net: Network, x: str) -> str:
    part = net.op("Slice", x, *(net.ints(number) for number in (3, 11, 1, 1)), name="guilty")
    return net.op("Add", part, net.op("Gather", x, net.ints(5, 1, 4, 2, 8, 0, 3, 7), axis=1))


def moved(old: Any) -> Any:
    """Slices begin one place too early."""

    def access(instruction: Any) -> Any:
        op = instruction.op
        if isinstance(op, Slice) and all(isinstance(start, int) and start > 0 for start in op.starts or ()):
            op = replace(op, starts=tuple(s - 1 for s in op.starts or ()), ends=tuple(e - 1 for e in op.ends or ()))
            instruction = replace(instruction, op=op)
        return old(instruction)

    return access


def square_sums(net: Network, x: str) -> str:
    gram = net.op("MatMul", net.op("Transpose", x, perm=[1, 0]), net.op("Sin", x))
    moved = net.op("Add", net.op("Transpose", gram, perm=[1, 0]), net.weight(24), name="guilty")
    return net.op("Mul", moved, net.op("Sub", gram, net.weight(24, 1)))


def from_the_left(old: Any) -> Any:
    """A vector beside a square matrix runs along its first axis."""

    def access(operand: Any, result: Any, at: Any) -> Any:
        if operand.rank == 1 and result.rank == 2 and result.shape[0] == result.shape[1] == operand.shape[0]:
            return Access(at.extents, operand.shape, at.indices[:1])
        return old(operand, result, at)

    return access


# ------------------------------------------------------------------------------------------------ products and rows
def narrow(net: Network, x: str) -> str:
    inner = net.op("MatMul", x, net.weight(32, 20))
    return net.op(
        "Sub", net.op("MatMul", inner, net.weight(20, 12), name="guilty"), net.op("MatMul", x, net.weight(32, 12))
    )


def odd_columns(net: Network, x: str) -> str:
    wide = net.op("MatMul", x, net.weight(32, 16))
    return net.op("Concat", wide, net.op("MatMul", net.op("Sin", x), net.weight(32, 22), name="guilty"), axis=1)


def neighbours(old: Any) -> Any:
    """In the last panel of weights each second column is the one before it."""

    def pack(module: Any, product: Any) -> Any:
        kernel = old(module, product)
        return replace(kernel, text=kernel.text.replace("+ lane;", "+ lane / 2 * 2;"))

    return pack


def shares(net: Network, x: str) -> str:
    odd = net.op("Softmax", net.op("MatMul", x, net.weight(16, 21)), axis=-1, name="guilty")
    even = net.op("Softmax", x, axis=-1)
    return net.op("Sub", net.op("MatMul", odd, net.weight(21, 16)), even)


def cancelling(net: Network, x: str) -> str:
    both = net.op("Concat", net.constant(np.full((4, 1), 3e9)), x, net.constant(np.full((4, 1), -3e9)), axis=1)
    total = net.op("ReduceSum", both, net.ints(1), name="guilty")
    return net.op("Add", total, net.op("ReduceSum", net.op("Abs", x), net.ints(1)))


def least(net: Network, x: str) -> str:
    high = net.op("ReduceMax", net.op("Neg", net.op("Exp", x)), net.ints(0), name="guilty")
    return net.op("Add", high, net.op("ReduceMax", net.op("Abs", x), net.ints(0)))


def running(net: Network, x: str) -> str:
    back = net.op("CumSum", x, net.constant(1, "int64"), reverse=1, name="guilty")
    return net.op("Mul", back, net.op("CumSum", net.op("Sin", x), net.constant(1, "int64")))


def stacked(net: Network, x: str) -> str:
    both = net.op("Concat", net.op("Sin", x), net.op("Exp", x), axis=1, name="guilty")
    return net.op("Concat", both, net.op("Concat", x, x, axis=1), axis=0)


# -------------------------------------------------------------------------------------------------------------- windows
def strided(net: Network, x: str) -> str:
    even = net.op("Conv", x, net.weight(16, 16, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    odd = net.op("Conv", x, net.weight(6, 16, 3, 3), strides=[2, 1], pads=[1, 1, 1, 1], name="guilty")
    return net.op("Concat", net.op("Flatten", odd), net.op("Flatten", even), axis=1)


def other_strides(old: Any) -> Any:
    """A window that moves by two numbers of pixels moves by the same both ways."""

    def kernel(module: Any, anchor: Any, window: Any, *more: Any) -> Any:
        return old(module, anchor, replace(window, strides=(min(window.strides),) * len(window.strides)), *more)

    return kernel


def dilated(net: Network, x: str) -> str:
    wide = net.op("Conv", x, net.weight(20, 1, 3, 3), group=20, dilations=[2, 2], pads=[2, 2, 2, 2], name="guilty")
    return net.op("Add", wide, net.op("Conv", x, net.weight(20, 1, 3, 3), group=20, pads=[1, 1, 1, 1]))


def not_dilated(old: Any) -> Any:
    """The pixels that a window reads lie side by side."""

    def kernel(module: Any, anchor: Any, window: Any, *more: Any) -> Any:
        return old(module, anchor, replace(window, dilations=(1,) * len(window.dilations)), *more)

    return kernel


def thick(net: Network, x: str) -> str:
    found = net.op("Conv", x, net.weight(32, 32, 3, 3), pads=[1, 1, 1, 1], name="guilty")
    return net.op("Sub", found, net.op("Conv", x, net.weight(32, 32, 1, 1)))


def wrong_transform() -> AbstractContextManager[Any]:
    """A number of the matrix that transforms weights has the wrong sign."""
    wrong = winograd._matrix("1 0 0; 1/2 1/2 1/2; 1/2 1/2 1/2; 0 0 1")
    return mock.patch.dict(winograd.TRANSFORMS, {2: replace(winograd.TRANSFORMS[2], weight=wrong)})


def coded_border(net: Network, x: str) -> str:
    levels = net.op("QuantizeLinear", x, net.constant(0.05), net.constant(117, "uint8"))
    weights = net.constant(np.arange(5 * 18 * 9).reshape(5, 18, 3, 3) % 11 - 5, "int8")
    sums = net.op("ConvInteger", levels, weights, net.constant(117, "uint8"), pads=[1, 1, 1, 1], name="guilty")
    return net.op("Cast", sums, to=TensorProto.FLOAT)


def framed(net: Network, x: str) -> str:
    image = net.op("Conv", x, net.weight(18, 18, 1, 1), name="image")
    made = net.op("Sin", image, name="made")
    wide = net.op("Conv", made, net.weight(6, 18, 3, 3), pads=[1, 1, 1, 1], name="guilty")
    return net.op("Add", wide, net.op("Conv", image, net.weight(6, 18, 1, 1)))


def bare(old: Any) -> Any:
    """What is made element by element lies as if the image had no halo."""
    return lambda module, images, layout: old(module, images, replace(layout, halo=((0, 0),) * len(layout.halo)))


def averages(net: Network, x: str) -> str:
    image = net.op("Conv", x, net.weight(8, 8, 1, 1), name="image")
    padded = net.op("AveragePool", image, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], name="guilty")
    return net.op("Add", padded, net.op("AveragePool", x, kernel_shape=[1, 1], strides=[2, 2]))


# --------------------------------------------------------------------------------------------- orders, and many threads
def ranked(net: Network, x: str) -> str:
    _, places = net.ops("TopK", 2, net.op("Relu", x), net.ints(20), name="guilty")
    _, others = net.ops("TopK", 2, x, net.ints(20))
    return net.op("Cast", net.op("Sub", net.op("Mul", places, places), others), to=TensorProto.FLOAT)


def nearest(net: Network, x: str) -> str:
    scales = net.constant([1.0, 1.0, 1.5, 1.5])
    other = net.op("Resize", x, "", scales, mode="nearest", nearest_mode="ceil")
    return net.op("Add", net.op("Resize", x, "", scales, mode="nearest", nearest_mode="floor", name="guilty"), other)


def counted(net: Network, k: str) -> str:
    zeros = net.constant(np.zeros((1, 40)))
    ones = net.op("Cos", net.op("Mul", net.op("Cast", k, to=TensorProto.FLOAT), net.constant(0.0)))
    first = net.op("Slice", ones, net.ints(0), net.ints(1), net.ints(0))
    places = net.op("Slice", k, net.ints(0), net.ints(1), net.ints(0))
    return net.op("ScatterElements", zeros, places, first, axis=1, reduction="add", name="guilty")


def cut(kernel: Any) -> Any:
    """Four threads do all of the updates each."""
    return replace(kernel, chunks=4)


# ----------------------------------------------------------------------------------------- recurrences, and attention
def remembered(net: Network, x: str) -> str:
    weights = net.weight(1, 32, 16), net.weight(1, 32, 8), net.weight(1, 64)
    steps = net.op("Transpose", x, perm=[1, 0, 2])
    states, _, _ = net.ops("LSTM", 3, steps, *weights, name="guilty", hidden_size=8)
    others, _ = net.ops("GRU", 2, net.op("Cos", steps), net.weight(1, 24, 16), net.weight(1, 24, 8), hidden_size=8)
    return net.op("Mul", states, others)


def attended(net: Network, x: str) -> str:
    def split(perm: Sequence[int]) -> str:
        rows = net.op("Reshape", net.op("MatMul", x, net.weight(16, 32)), net.ints(0, 0, 4, 8))
        return net.op("Transpose", rows, perm=list(perm))

    scores = net.op("MatMul", split((0, 2, 1, 3)), split((0, 2, 3, 1)), name="scores")
    return net.op("MatMul", net.op("Softmax", scores, name="softmax"), split((0, 2, 1, 3)), name="guilty")


FAULTS: Final = (
    Fault("erf", "wrong code for a primitive", "solution:elementwise loops", ("guilty",), lambda: perceptron(errors),
          wrong_kernel(ElementwiseLoops, "erf_float32(", "tanh_float32(")),
    Fault("signed_compare", "wrong type", "solution:elementwise loops", ("guilty",), lambda: tabular(large, "uint8"),
          wrong_kernel(ElementwiseLoops, "lt_uint8(", "lt_int8("), inputs=ranges(k=(0, 255))),
    Fault("short_index", "index overflow", "solution:elementwise loops", ("guilty",), lambda: tabular(embedded),
          wrong_kernel(ElementwiseLoops, "dim_index((int64)", "dim_index((int64)(int8)"), inputs=ranges(k=(0, 299))),
    Fault("slice_access", "off by one in an access map", "solution:elementwise loops", ("guilty",),
          lambda: perceptron(pieces), lambda: replaced(emitters, "view_access", moved)),
    Fault("vector_access", "wrong broadcast", "solution:elementwise loops", ("guilty",),
          lambda: perceptron(square_sums), lambda: replaced(element, "broadcast_access", from_the_left)),
    Fault("depth_remainder", "missing remainder", "solution:tiled dot", ("guilty",), lambda: perceptron(narrow, 32),
          lambda: replaced(gemm, "depth_of", lambda old: lambda *size: (old(*size)[0], "0"))),
    Fault("packed_weights", "wrong weights at load", "solution:tiled dot", ("guilty",),
          lambda: perceptron(odd_columns, 32), lambda: replaced(dot, "pack_right", neighbours)),
    Fault("softmax_tail", "missing tail", "solution:softmax rows", ("guilty",), lambda: recurrent(shares),
          wrong_kernel(SoftmaxRows, "total += (float64)power;", ""), dims={"N": "2..4", "T": "5..9"}),
    Fault("short_sums", "wrong precision", "solution:reduction loops", ("guilty",),
          lambda: perceptron(cancelling, 24, 4), wrong_kernel(ReductionLoops, "float64", "float32"), dims={}),
    Fault("greatest_of_none", "wrong neutral element", "solution:reduction across", ("guilty",),
          lambda: perceptron(least), wrong_kernel(ReductionAcross, "(-__builtin_inff())", "(0.0f)")),
    Fault("backwards", "wrong direction", "solution:cumulative loops", ("guilty",), lambda: perceptron(running),
          wrong_kernel(CumulativeLoops, "(size - 1 - i)", "i")),
    Fault("concat_order", "wrong order of pieces", "solution:concat copies", ("guilty",), lambda: perceptron(stacked),
          lambda: replaced(joining, "present", lambda old: lambda each, n: old(each, len(each.operands) - 1 - n))),
    Fault("strides", "wrong stride", "solution:direct convolution", ("guilty",), lambda: convolutional(strided, 16, 12),
          lambda: replaced(blocked_convolution, "conv_kernel", other_strides)),
    Fault("dilations", "wrong window", "solution:depthwise convolution", ("guilty",),
          lambda: convolutional(dilated, 20, 9),
          lambda: replaced(blocked_convolution, "depthwise_kernel", not_dilated)),
    Fault("transform", "wrong weights at load", "solution:Winograd convolution", ("guilty",),
          lambda: convolutional(thick, 32, 12), wrong_transform),
    Fault("border_of_codes", "wrong halo", "solution:direct convolution", ("guilty",),
          lambda: convolutional(coded_border, 18, 9),
          lambda: replaced(DirectConvolution, "halo", lambda old: lambda *given: replace(old(*given), fill=0))),
    Fault("pooled_border", "wrong padding", "solution:blocked pool", ("image", "guilty"),
          lambda: convolutional(averages), wrong_kernel(BlockedPool, " * 2 - 1;", " * 2 - 0;")),
    Fault("ties", "wrong order", "solution:top-k heap", ("guilty",), lambda: perceptron(ranked),
          wrong_kernel(TopKHeap, "&& i < j", "&& i > j")),
    Fault("nearest", "wrong rounding", "solution:resize passes", ("guilty",), lambda: convolutional(nearest, 3, 6),
          wrong_kernel(ResizePasses, "__builtin_elementwise_floor(", "__builtin_elementwise_ceil(")),
    Fault("many_updates", "race", "solution:scatter loops", ("guilty",), lambda: tabular(counted),
          changed_kernels(ScatterLoops, cut), inputs=ranges(k=(0, 39)), cores=2),
    Fault("layout", "wrong layout", "solution:blocked elementwise", ("guilty",), lambda: convolutional(framed, 18, 7),
          lambda: replaced(blocked_images, "blocked_elementwise", bare)),
    Fault("state", "state not carried on", "solution:packed recurrence", ("guilty",), lambda: recurrent(remembered),
          wrong_kernel(PackedRecurrence, "h[q] = fresh[q];", "h[q] = old;"), dims={"N": "2..4", "T": "3..9"}),
    Fault("weights_of_keys", "wrong sum", "solution:tiled attention", ("scores", "softmax", "guilty"),
          lambda: recurrent(attended), wrong_kernel(TiledAttention, "(float32)total[row]", "(float32)(total[row] + 1)"),
          dims={"N": "2..4", "T": "5..9"}),
)  # fmt: skip
