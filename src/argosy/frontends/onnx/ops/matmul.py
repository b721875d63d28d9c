"""Matrix products."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import FLOAT64, INT32
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.matmul import Dot
from argosy.ops.view import Transpose, Unsqueeze


@onnx_op("MatMul")
def MatMul(node: Node) -> Value:
    """numpy.matmul."""
    return node.add(Dot(), node.input(0), node.input(1))


@onnx_op("Gemm")
def Gemm(node: Node) -> Value:
    """Alpha A' B' + beta C, where A' and B' may be transposed; C is broadcast to the product's shape."""
    return gemm(node)


def gemm(node: Node) -> Value:
    """What Gemm computes, for its fused relatives too."""
    node.ignore("broadcast")  # of opsets 1 and 6: where it is 0, C has the full shape already
    alpha, beta = node.attr_float("alpha", 1.0), node.attr_float("beta", 1.0)
    a = swap_axes(node, node.input(0)) if node.attr_flag("transA") else node.input(0)
    b = swap_axes(node, node.input(1)) if node.attr_flag("transB") else node.input(1)
    c = node.optional(2)
    if not a.rank == b.rank == 2:
        node.fail(f"A and B must have rank 2, found {a.type} and {b.type}")
    if a.dtype.is_integer and not (alpha.is_integer() and beta.is_integer()):
        return _fraction_of_integers(node, node.add(Dot(), a, b), alpha, c, beta)
    if c is None or beta == 0.0:
        return scaled_dot(node, a, b, alpha)
    result, wide = a.dtype, a.dtype.compute
    # The sum is rounded once, after C is added.
    product = node.add(Dot(wide), a, b)

    def total(p: Expr, q: Expr) -> Expr:
        scaled = p if alpha == 1.0 else p * alpha
        offset = q if wide is result else q.convert(wide)
        added = scaled + (offset if beta == 1.0 else offset * beta)
        return added if wide is result else added.convert(result)

    return node.pointwise(total, product, c)


@onnx_op("MatMulInteger", since=10)
def MatMulInteger(node: Node) -> Value:
    """(A - a_zero_point) (B - b_zero_point) with int32 sums; zero points per tensor, row of A or column of B."""
    return integer_dot(node, node.input(0), node.optional(2), node.input(1), node.optional(3))


def _fraction_of_integers(node: Node, product: Value, alpha: float, c: Value | None, beta: float) -> Value:
    """Integers times a factor that is none: computed in float64 and truncated, as in onnx.reference."""
    if c is None:
        return node.pointwise(lambda p: (p.convert(FLOAT64) * alpha).convert(product.dtype), product)
    return node.pointwise(
        lambda p, q: (p.convert(FLOAT64) * alpha + q.convert(FLOAT64) * beta).convert(product.dtype), product, c
    )


def integer_dot(node: Node, a: Value, a_zero: Value | None, b: Value, b_zero: Value | None) -> Value:
    """The int32 product of two 8-bit tensors without their zero points."""
    if a_zero is not None and a_zero.rank == 1 and a.rank > 1:
        a_zero = node.add(Unsqueeze((1,)), a_zero)  # one for each row
    return node.add(Dot(INT32), without_zero_point(node, a, a_zero), without_zero_point(node, b, b_zero))


def without_zero_point(node: Node, x: Value, zero_point: Value | None) -> Value:
    """`x - zero_point` in int32; `x` itself where the zero point is absent or known to be 0."""
    if x.dtype.bits != 8 or not x.dtype.is_integer:
        node.fail(f"expected a tensor of int8 or uint8, found {x.type}")
    if zero_point is not None and zero_point.dtype is not x.dtype:
        node.fail(f"the zero point of a tensor of {x.dtype} has type {zero_point.dtype}")
    if zero_point is None or (zero_point.known is not None and not zero_point.known.any()):
        return x
    return node.pointwise(lambda x, z: x.convert(INT32) - z.convert(INT32), x, zero_point)


def swap_axes(node: Node, x: Value) -> Value:
    """The last two axes exchanged; a vector stays as it is."""
    return node.add(Transpose((*range(x.rank - 2), x.rank - 1, x.rank - 2)), x) if x.rank > 1 else x


def scaled_dot(node: Node, a: Value, b: Value, alpha: float) -> Value:
    """Alpha a b, rounded once."""
    if alpha == 1.0:
        return node.add(Dot(), a, b)
    result = a.dtype
    product = node.add(Dot(result.compute), a, b)
    if result.compute is result:
        return node.pointwise(lambda p: p * alpha, product)
    return node.pointwise(lambda p: (p * alpha).convert(result), product)
