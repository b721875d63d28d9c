"""Attention and QAttention of com.microsoft: with projections (ONNX Runtime, docs/ContribOperators.md)."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.frontends.onnx.checks import check_dims
from argosy.frontends.onnx.contrib import contrib_op
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.attention import (
    appended,
    attend,
    causal,
    check_heads,
    masked,
    merge_heads,
    read_scale,
    scaled_scores,
    split_heads,
    split_state,
)
from argosy.frontends.onnx.ops.matmul import without_zero_point
from argosy.ir.dim import DimLike, equal, floordiv
from argosy.ir.dtype import INT32, DType
from argosy.ir.module import Value
from argosy.ops.joining import Concat, Split
from argosy.ops.matmul import Dot
from argosy.ops.view import Unsqueeze


@contrib_op("Attention", "input:F weights:F bias:F? mask_index:I? past:F? attention_bias:F? past_sequence_length:I?")
def Attention(node: Node) -> Sequence[Value | None]:
    """Self-attention of `input [B, S, I]` projected by `weights [I, D + D + Dv]`; also its keys and values."""
    x, weights = node.input(0), node.input(1)
    sizes = _projections(node, x, weights, node.optional(2))
    wide = x.dtype.compute
    projected = _with_bias(node, node.add(Dot(wide), x, weights), node.optional(2))
    return _attention(node, projected, sizes, x.dtype, node.optional(3), node.optional(4), node.optional(5))


@contrib_op(
    "QAttention",
    "input:Q1 weight:Q2 bias:F input_scale:F weight_scale:F mask_index:I? input_zero_point:Q1? weight_zero_point:Q2?"
    " past:F?",
)
def QAttention(node: Node) -> Sequence[Value | None]:
    """Attention whose projection is a product of quantised tensors."""
    x, weights, bias = node.input(0), node.input(1), node.input(2)
    sizes = _projections(node, x, weights, bias)
    wide = bias.dtype.compute
    left = without_zero_point(node, x, node.optional(6))
    sums = node.add(Dot(INT32), left, without_zero_point(node, weights, node.optional(7)))
    scales = [node.builder.convert(node.input(index), wide) for index in (3, 4)]
    real = node.pointwise(lambda s, a, b: s.convert(wide) * (a * b), sums, *scales)
    projected = _with_bias(node, real, bias)
    return _attention(node, projected, sizes, bias.dtype, node.optional(5), node.optional(8), None)


def _projections(node: Node, x: Value, weights: Value, bias: Value | None) -> tuple[DimLike, DimLike]:
    """D and Dv: the sizes of a query or key, and of a value, all heads together; raises ModelError where none fit."""
    heads = node.attr_int("num_heads")
    if x.rank != 3:
        node.fail(f"the input is {x.type}, expected [batch, sequence, size]")
    check_dims(node, "weights", weights, (x.shape[2], weights.shape[-1]))
    columns = weights.shape[1]
    given = node.attr_ints("qkv_hidden_sizes", ())
    if given:
        if len(given) != 3 or min(given) < 1 or given[0] != given[1] or equal(sum(given), columns) is False:
            node.fail(
                f"attribute 'qkv_hidden_sizes' is {list(given)}, expected three positive numbers, the first two equal,"
                f" that add up to the {columns} columns of the weights"
            )
        sizes: tuple[DimLike, DimLike] = (given[0], given[2])
    else:
        if isinstance(columns, int) and columns % 3:
            node.fail(f"the weights have {columns} columns, expected a multiple of 3 without qkv_hidden_sizes")
        sizes = (floordiv(columns, 3),) * 2
    for what, size in zip(("the size of the queries", "the size of the values"), sizes, strict=True):
        check_heads(node, what, size, heads)
    if bias is not None:
        check_dims(node, "bias", bias, (columns,))
    return sizes


def _with_bias(node: Node, x: Value, bias: Value | None) -> Value:
    return x if bias is None else node.pointwise("add", x, node.builder.convert(bias, x.dtype))


def _attention(
    node: Node,
    projected: Value,
    sizes: tuple[DimLike, DimLike],
    result: DType,
    mask: Value | None,
    past: Value | None,
    bias: Value | None,
) -> Sequence[Value | None]:
    """Attention of the projected input, computed in its type; `past` is the state `[2, B, N, P, H]`."""
    heads = node.attr_int("num_heads")
    size, value_size = sizes
    parts = node.add_all(Split(2, 3, (size, size, value_size)), projected)
    q, k, v = (split_heads(node, part, heads) for part in parts)
    own = k.shape[2]
    if past is not None:
        head = floordiv(size, heads)
        check_dims(node, "past", past, (2, q.shape[0], heads, past.shape[3] if past.rank == 5 else 0, head))
        if equal(size, value_size) is False:
            node.fail("with a past state, keys and values must have one size")
    if node.attr_flag("past_present_share_buffer"):
        node.unsupported("past and present share a buffer (past_present_share_buffer)")
    old = (None, None) if past is None else split_state(node, node.builder.convert(past, k.dtype))
    k, v = appended(node, old[0], k), appended(node, old[1], v)
    present = None
    if node.wants(1):
        stacked = node.add(Concat(0), *(node.add(Unsqueeze((0,)), half) for half in (k, v)))
        present = node.builder.convert(stacked, result)
    scores = scaled_scores(node, q, k, read_scale(node, q.shape[3]))
    if bias is not None:
        dims = scores.shape
        check_dims(node, "attention_bias", bias, *((b, n, *dims[2:]) for b in (dims[0], 1) for n in (heads, 1)))
        scores = node.pointwise("add", scores, node.builder.convert(bias, scores.dtype))
    added = node.attr_float("mask_filter_value", -10000.0)
    if mask is not None:
        scores = masked(node, "mask_index", mask, scores, own, added)
    if node.attr_flag("unidirectional"):
        scores = causal(node, scores, k.shape[2] - own)
    if node.attr_flag("do_rotary"):
        node.unsupported("rotary embedding in Attention (do_rotary)", hint="use RotaryEmbedding and MultiHeadAttention")
    node.ignore("rotary_embedding_dim")
    return (merge_heads(node, attend(node, scores, v, result)), present)[: node.output_count]
