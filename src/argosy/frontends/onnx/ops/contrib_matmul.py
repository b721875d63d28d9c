"""Matrix products of com.microsoft (ONNX Runtime, docs/ContribOperators.md)."""

from __future__ import annotations

import numpy as np

from argosy.frontends.onnx.contrib import contrib_op
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.matmul import integer_dot, scaled_dot, swap_axes, without_zero_point
from argosy.frontends.onnx.ops.quantization import quantize_by_range, requantized
from argosy.ir.dim import DimLike, equal
from argosy.ir.dtype import FLOAT32, INT32, UINT8, DType, dtype
from argosy.ir.module import Value
from argosy.ops.index import Gather
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize
from argosy.ops.shapes import product
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Reshape, Transpose, Unsqueeze

_FP4 = tuple(value / 12 for value in (0.0, 0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0))
_FP4_CODES = (*_FP4, *(-value for value in _FP4))
"""Values of the codes of bitsandbytes' fp4: the high bit is the sign."""
_NF4_CODES = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""Values of the codes of NormalFloat4 (Dettmers et al., QLoRA, arXiv:2305.14314, appendix E)."""


@contrib_op("FusedMatMul", "A:F B:F")
def FusedMatMul(node: Node) -> Value:
    """Alpha A' B'; `transA` swaps the last two axes, `transBatchA` moves the first one behind the others before."""
    a, b = node.input(0), node.input(1)
    a = _move_batch(node, a) if node.attr_flag("transBatchA") else a
    b = _move_batch(node, b) if node.attr_flag("transBatchB") else b
    a = swap_axes(node, a) if node.attr_flag("transA") else a
    b = swap_axes(node, b) if node.attr_flag("transB") else b
    return scaled_dot(node, a, b, node.attr_float("alpha", 1.0))


def _move_batch(node: Node, x: Value) -> Value:
    """Axis 0 moved before the last axis."""
    return node.add(Transpose((*range(1, x.rank - 1), 0, x.rank - 1)), x) if x.rank > 2 else x


@contrib_op("MatMulIntegerToFloat", "A:Q1 B:Q2 a_scale:F b_scale:F a_zero_point:Q1? b_zero_point:Q2? bias:F?")
def MatMulIntegerToFloat(node: Node) -> Value:
    """(A - a_zero_point) a_scale times (B - b_zero_point) b_scale, plus a bias.

    A parameter belongs to the tensor, or has an element for each column of A or of B.
    """
    a, b = node.input(0), node.input(1)
    a_scale, b_scale, a_zero, b_zero = node.input(2), node.input(3), node.optional(4), node.optional(5)
    for what, matrix in (("A", a), ("B", b)):
        if matrix.rank < 1:
            node.fail(f"{what} is {matrix.type}, expected rank 1 or more")
    for what, parameter, matrix in (
        ("a_scale", a_scale, a), ("b_scale", b_scale, b), ("a_zero_point", a_zero, a), ("b_zero_point", b_zero, b),
    ):  # fmt: skip
        if parameter is not None:
            _check_columns(node, what, parameter, matrix.shape[-1])
    left, right = without_zero_point(node, a, a_zero), without_zero_point(node, b, b_zero)
    result, wide = a_scale.dtype, a_scale.dtype.compute
    scale = node.builder.convert(b_scale, wide)
    if equal(product(a_scale.shape), 1):
        sums = node.builder.convert(node.add(Dot(INT32), left, right), wide)
        scale = node.pointwise("mul", scale, node.builder.convert(a_scale, wide))
    else:
        real = node.pointwise(lambda a, s: a.convert(wide) * s.convert(wide), left, a_scale)
        sums = node.add(Dot(wide), real, node.builder.convert(right, wide))
    return _scaled(node, sums, scale, node.optional(6), result)


def _check_columns(node: Node, what: str, parameter: Value, columns: DimLike) -> None:
    if parameter.rank > 1 or (
        parameter.rank == 1 and equal(parameter.shape[0], 1) is False and equal(parameter.shape[0], columns) is False
    ):
        node.fail(f"{what} is {parameter.type}, expected one element, or one for each of the {columns} columns")


def _scaled(node: Node, sums: Value, scale: Value, bias: Value | None, result: DType) -> Value:
    """`sums * scale + bias` in the compute type of `result`, rounded once to it."""
    given = [sums, scale, *([] if bias is None else [node.builder.convert(bias, sums.dtype)])]
    total = node.pointwise(lambda x, s, *b: x * s + b[0] if b else x * s, *given)
    return node.builder.convert(total, result)


@contrib_op("DynamicQuantizeMatMul", "A:R B:Q b_scale:R b_zero_point:Q? bias:R?")
def DynamicQuantizeMatMul(node: Node) -> Value:
    """A, quantised by its range to uint8, times the quantised B, plus a bias."""
    b, b_scale, b_zero = node.input(1), node.input(2), node.optional(3)
    a, a_scale, a_zero = quantize_by_range(node, node.input(0))
    sums = node.builder.convert(integer_dot(node, a, a_zero, b, b_zero), FLOAT32)
    return _scaled(node, sums, node.pointwise("mul", a_scale, b_scale), node.optional(4), FLOAT32)


@contrib_op(
    "QGemm",
    "A:Q1 a_scale:R a_zero_point:Q1 B:Q2 b_scale:R b_zero_point:Q2 C:S? y_scale:R? y_zero_point:Q3?",
)
def QGemm(node: Node) -> Value:
    """Alpha A' B' + C of quantised matrices, quantised again where `y_zero_point` is given, else float32."""
    a = swap_axes(node, node.input(0)) if node.attr_flag("transA") else node.input(0)
    b = swap_axes(node, node.input(3)) if node.attr_flag("transB") else node.input(3)
    sums = integer_dot(node, a, node.input(2), b, node.input(5))
    c = node.optional(6)
    sums = sums if c is None else node.pointwise("add", sums, c)
    alpha = node.attr_float("alpha", 1.0)
    scale = node.pointwise(lambda a, b: a * b * alpha, node.input(1), node.input(4))
    zero_point = node.optional(8)
    if zero_point is None:
        return _scaled(node, node.builder.convert(sums, FLOAT32), scale, None, FLOAT32)
    scaled = node.pointwise(lambda x, s, y: x.convert(FLOAT32) * (s / y), sums, scale, node.input(7))
    return requantized(node, scaled, zero_point, zero_point.dtype)


@contrib_op("MatMulNBits", "A:F B:U scales:F zero_points:*? g_idx:I? bias:F?")
def MatMulNBits(node: Node) -> Value:
    """A times the transpose of B `[N, K]`, whose rows are quantised by blocks to `bits` bits.

    B is `[N, blocks, bytes]`, the first element of a byte in its low bits; packed zero points likewise.
    """
    node.ignore("accuracy_level")  # by how little A may be rounded on the way; it isn't
    a, scales = node.input(0), node.input(2)
    rows, depth, block = node.attr_int("N"), node.attr_int("K"), node.attr_int("block_size")
    bits = node.attr_int("bits", 4)
    if block < 16 or block & (block - 1):
        node.fail(f"attribute 'block_size' is {block}, expected a power of 2 from 16 on")
    if bits not in (2, 4, 8):
        node.unsupported(f"attribute 'bits' is {bits}, expected 2, 4 or 8")
    if node.attr_int("weight_prepacked", 0):
        node.unsupported("the weight is packed for one kind of device (weight_prepacked)")
    if node.optional(4) is not None:
        node.unsupported("the deprecated input g_idx is given")
    blocks = -(-depth // block)
    _check_depth(node, a, depth)
    wide = a.dtype.compute
    codes = _unpacked(node, _sized(node, 1, (rows, blocks, block * bits // 8)), bits)
    zero = _zero_points(node, rows, blocks, bits)
    if zero.dtype.is_float:
        scale = node.builder.convert(_sized(node, 2, (rows, blocks, 1)), wide)
        spread = node.add(Unsqueeze((2,)), zero)
        weights = node.pointwise(lambda q, z, s: (q.convert(wide) - z.convert(wide)) * s, codes, spread, scale)
        matrix = _columns(node, weights, depth)
    else:
        kind = UINT8 if bits == 8 else dtype(f"uint{bits}")
        codes, zero = (node.builder.convert(value, kind) for value in (_columns(node, codes, depth), zero))
        matrix = node.add(Dequantize(wide, 1, block), codes, _sized(node, 2, (rows, blocks)), zero)
    return _product(node, a, swap_axes(node, matrix), node.optional(5), scales.dtype)


def _columns(node: Node, x: Value, depth: int) -> Value:
    """The blocks of a matrix `[rows, blocks, block]` side by side, without what fills the last."""
    rows, blocks, block = x.shape
    flat = node.add(Reshape((rows, blocks * block)), x)
    return flat if equal(blocks * block, depth) else node.add(Slice((0,), (depth,), (1,)), flat)


def _zero_points(node: Node, rows: int, blocks: int, bits: int) -> Value:
    """The zero points as `[rows, blocks]`: bytes are unpacked, floats are what they are; one for all by default."""
    given = node.optional(3)
    if given is None:
        return node.constant(np.array(1 << (bits - 1), np.uint8))
    if given.dtype.is_float:
        return _sized(node, 3, (rows, blocks))
    if given.dtype is not UINT8:
        node.fail(f"input 3 ('zero_points' of MatMulNBits) is {given.dtype}, expected uint8 or a float")
    codes = _unpacked(node, _sized(node, 3, (rows, -(-blocks * bits // 8))), bits)
    return codes if equal(codes.shape[1], blocks) else node.add(Slice((0,), (blocks,), (1,)), codes)


def _sized(node: Node, index: int, dims: tuple[int, ...]) -> Value:
    """Input `index` as `dims`: files have it flat or with axes of 1 left out."""
    value = node.input(index)
    if equal(product(value.shape), product(dims)) is False:
        node.fail(f"input {index} is {value.type}, expected {list(dims)}")
    return node.add(Reshape(dims), value)


def _unpacked(node: Node, packed: Value, bits: int, *, high_first: bool = False) -> Value:
    """Bytes `[…, n]` as codes `[…, n * 8 / bits]` in uint8."""
    if bits == 8:
        return packed
    shifts = range(0, 8, bits)
    mask = 2**bits - 1
    places = node.constant(np.array([*reversed(shifts)] if high_first else [*shifts], np.uint8))
    spread = node.pointwise(lambda x, s: x.shr(s).bitand(mask), node.add(Unsqueeze((-1,)), packed), places)
    *outer, last = packed.shape
    return node.add(Reshape((*outer, last * len(shifts)), allow_zero=True), spread)


def _check_depth(node: Node, a: Value, depth: int) -> None:
    if a.rank < 1 or equal(a.shape[-1], depth) is False:
        node.fail(f"A is {a.type}, its last axis must have {depth} elements")


def _product(node: Node, a: Value, b: Value, bias: Value | None, result: DType) -> Value:
    """`a b + bias`, computed in the type of `b` and rounded once."""
    wide = b.dtype
    total = node.add(Dot(wide), a, b)
    if bias is not None:
        total = node.pointwise("add", total, node.builder.convert(bias, wide))
    return node.builder.convert(total, result)


@contrib_op("MatMulBnb4", "A:F B:U absmax:F")
def MatMulBnb4(node: Node) -> Value:
    """A times B' (or B where `transB` is 0), B `[N, K]` being stored as codes of 4 bits, the first in the high bits.

    Every `block_size` codes of the flattened B share an element of `absmax`, which scales them.
    """
    node.ignore("training_mode")
    a, absmax = node.input(0), node.input(2)
    rows, depth, block = node.attr_int("N"), node.attr_int("K"), node.attr_int("block_size")
    kind = node.attr_int("quant_type")
    if kind not in (0, 1):
        node.fail(f"attribute 'quant_type' is {kind}, expected 0 (FP4) or 1 (NF4)")
    if block < 16 or block & (block - 1):
        node.fail(f"attribute 'block_size' is {block}, expected a power of 2 from 16 on")
    transposed = node.attr_flag("transB", default=True)
    _check_depth(node, a, depth if transposed else rows)
    count = rows * depth
    blocks = -(-count // block)
    stored = count + count % 2
    flat = _unpacked(node, _sized(node, 1, (stored // 2,)), 4, high_first=True)
    if blocks * block != stored:
        flat = node.add(Pad("constant", (0, blocks * block - stored)), flat)
    table = node.constant(np.array((_FP4_CODES, _NF4_CODES)[kind], np.float32))
    wide = a.dtype.compute
    codes = node.add(Reshape((blocks, block)), node.builder.convert(flat, INT32))
    values = node.builder.convert(node.add(Gather(0), table, codes), wide)
    scale = node.builder.convert(_sized(node, 2, (blocks, 1)), wide)
    scaled = node.add(Reshape((blocks * block,)), node.pointwise("mul", values, scale))
    if blocks * block != count:
        scaled = node.add(Slice((0,), (count,), (0,)), scaled)
    matrix = node.add(Reshape((rows, depth)), scaled)
    return _product(node, a, swap_axes(node, matrix) if transposed else matrix, None, absmax.dtype)
