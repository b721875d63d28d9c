"""Signal processing: Fourier transforms, windows, and the matrix of the mel scale."""

from __future__ import annotations

from collections.abc import Callable

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32, FLOAT64, INT64
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.index import Range
from argosy.ops.signal import Fourier, Frames, MelWeights
from argosy.ops.view import Reshape, Unsqueeze

_TURN = 6.283185307179586


def _known(node: Node, index: int) -> DimLike | None:
    known = node.known_ints(index)
    return known[0] if known is not None and len(known) == 1 else None


@onnx_op("DFT", since=20)
def DFT(node: Node) -> Value:
    """The axis as an input; by default the last but one."""
    axis = -2 if node.optional(2) is None else _known(node, 2)
    known_axis = axis if isinstance(axis, int) else None
    return _dft(node, known_axis, node.optional(2) if known_axis is None else None)


@onnx_op("DFT", since=17)
def DFT_17(node: Node) -> Value:
    """The axis as an attribute."""
    return _dft(node, node.attr_int("axis", 1), None)


def _dft(node: Node, axis: int | None, axis_operand: Value | None) -> Value:
    length = _known(node, 1)
    op = Fourier(length, axis, node.attr_flag("inverse"), node.attr_flag("onesided"))
    given = node.optional(1) if length is None else None
    return node.add(op, node.input(0), given, axis_operand)


@onnx_op("STFT", since=17)
def STFT(node: Node) -> Value:
    """The transforms of overlapping frames, each multiplied by the window."""
    x, window = node.input(0), node.optional(2)
    if x.rank not in (2, 3) or (window is not None and window.rank != 1):
        node.fail(f"the signal is {x.type}, expected [batch, length, 1 or 2] and a window of one axis")
    x = node.add(Unsqueeze((2,)), x) if x.rank == 2 else x
    step, length = _known(node, 1), _known(node, 3)
    length_operand = node.optional(3) if length is None else None
    if node.optional(3) is None:
        length = x.shape[1] if window is None else window.shape[0]
    frames = node.add(Frames(length, step), x, length_operand, node.input(1) if step is None else None)
    if window is not None:
        frames = node.pointwise("mul", frames, node.add(Unsqueeze((1,)), window))
    return node.add(Fourier(None, -2, inverse=False, onesided=node.attr_flag("onesided", default=True)), frames)


def _window(node: Node, formula: Callable[[Expr, Expr], Expr]) -> Value:
    """The formula of n and N for n = 0 … size - 1, N being the size, or one less for a symmetric window."""
    size = node.builder.convert(node.input(0), INT64)
    size = node.add(Reshape(()), size) if size.rank else size
    places = node.add(Range(), node.constant(0, INT64), size, node.constant(1, INT64))
    less = 0.0 if node.attr_flag("periodic", default=True) else 1.0
    count = node.pointwise(lambda s: (s.convert(FLOAT64) - less).max(1.0), size)
    values = node.pointwise(formula, node.builder.convert(places, FLOAT64), count)
    return node.builder.convert(values, node.attr_dtype("output_datatype", FLOAT32))


@onnx_op("HannWindow", since=17)
def HannWindow(node: Node) -> Value:
    """1/2 - 1/2 cos(2πn/N)."""
    return _window(node, lambda n, size: 0.5 - (n * _TURN / size).cos() * 0.5)


@onnx_op("HammingWindow", since=17)
def HammingWindow(node: Node) -> Value:
    """25/46 - 21/46 cos(2πn/N)."""
    return _window(node, lambda n, size: 25.0 / 46.0 - (n * _TURN / size).cos() * (21.0 / 46.0))


@onnx_op("BlackmanWindow", since=17)
def BlackmanWindow(node: Node) -> Value:
    """0.42 - 1/2 cos(2πn/N) + 0.08 cos(4πn/N)."""
    return _window(
        node,
        lambda n, size: (n * _TURN / size).cos() * -0.5 + (n * (2.0 * _TURN) / size).cos() * 0.08 + 0.42,
    )


@onnx_op("MelWeightMatrix", since=17)
def MelWeightMatrix(node: Node) -> Value:
    """Triangular bins, equally spaced on the mel scale."""
    op = MelWeights(node.attr_dtype("output_datatype", FLOAT32))
    return node.add(op, *(node.input(index) for index in range(5)))
