"""MultiHeadAttention of com.microsoft (ONNX Runtime, docs/ContribOperators.md)."""

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
    written,
)
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64
from argosy.ir.module import Value
from argosy.ops.dim_values import DimValues
from argosy.ops.joining import Split
from argosy.ops.slicing import Slice
from argosy.ops.view import Reshape, Squeeze, Transpose


@contrib_op(
    "MultiHeadAttention",
    "query:F key:F? value:F? bias:F? key_padding_mask:I? attention_bias:F? past_key:F? past_value:F?"
    " past_sequence_length:I? cache_indirection:I?",
)
def MultiHeadAttention(node: Node) -> Sequence[Value | None]:
    """Attention of queries to keys and values that are projected already; also gives these and the scores."""
    q, k, v = _operands(node)
    heads, own = node.attr_int("num_heads"), k.shape[2]
    k, v, present = _with_past(node, k, v)
    scores = scaled_scores(node, q, k, read_scale(node, q.shape[3]))
    bias, mask = node.optional(5), node.optional(4)
    if bias is not None:
        dims = scores.shape
        check_dims(node, "attention_bias", bias, *((b, n, *dims[2:]) for b in (dims[0], 1) for n in (heads, 1)))
        scores = node.pointwise("add", scores, node.builder.convert(bias, scores.dtype))
    if mask is not None:
        if mask.rank == 4:
            node.fail(f"key_padding_mask is {mask.type}, expected rank 1, 2 or 3")
        added = node.attr_float("mask_filter_value", -10000.0)
        scores = masked(node, "key_padding_mask", mask, scores, own, added)
    node.ignore("mask_filter_value")
    if node.attr_flag("unidirectional"):
        scores = causal(node, scores, k.shape[2] - own)
    if node.optional(9) is not None:
        node.unsupported("a beam search's cache_indirection is given")
    result = node.input(0).dtype
    y = merge_heads(node, attend(node, scores, v, result))
    return (y, *present, node.builder.convert(scores, result))[: node.output_count]


def _operands(node: Node) -> tuple[Value, Value, Value]:
    """Queries, keys and values as `[B, N, …, H]`, their biases added, unpacked where they are packed."""
    heads, query = node.attr_int("num_heads"), node.input(0)
    if query.rank == 5:
        if node.optional(1) is not None or node.optional(2) is not None:
            node.fail("the query holds keys and values too, so that key and value must be absent")
        check_heads(node, "the size of the queries", query.shape[4] * heads, heads)
        check_dims(node, "query", query, (*query.shape[:2], heads, 3, query.shape[4]))
        return _biased(node, *_unpacked(node, query, 3))
    if query.rank != 3:
        node.fail(f"query is {query.type}, expected [batch, sequence, size] or [batch, sequence, heads, 3, head size]")
    batch, size = query.shape[0], query.shape[2]
    check_heads(node, "the size of the queries", size, heads)
    q, key = split_heads(node, query, heads), node.input(1)
    if key.rank == 5:
        if node.optional(2) is not None:
            node.fail("the key holds values too, so that value must be absent")
        check_dims(node, "key", key, (batch, key.shape[1], heads, 2, q.shape[3]))
        return _biased(node, q, *_unpacked(node, key, 2))
    value = node.input(2)
    if value.rank not in (3, 4):
        node.fail(f"value is {value.type}, expected rank 3 or 4")
    if key.rank == 4:
        check_dims(node, "key", key, (batch, heads, key.shape[2], q.shape[3]))
        check_dims(node, "value", value, (batch, heads, key.shape[2], value.shape[-1]))
        return _biased(node, q, key, value, only_queries=True)
    if key.rank != 3:
        node.fail(f"key is {key.type}, expected rank 3, 4 or 5")
    check_dims(node, "key", key, (batch, key.shape[1], size))
    check_dims(node, "value", value, (batch, key.shape[1], value.shape[-1]))
    check_heads(node, "the size of the values", value.shape[2], heads)
    return _biased(node, q, split_heads(node, key, heads), split_heads(node, value, heads))


def _unpacked(node: Node, packed: Value, count: int) -> tuple[Value, ...]:
    """The `count` parts of `[B, S, N, count, H]`, each `[B, N, S, H]`."""
    parts = (node.add(Squeeze((3,)), part) for part in node.add_all(Split(3, count), packed))
    return tuple(node.add(Transpose((0, 2, 1, 3)), part) for part in parts)


def _biased(node: Node, q: Value, k: Value, v: Value, *, only_queries: bool = False) -> tuple[Value, Value, Value]:
    """Each with its part of the bias, rounded, in the compute type; keys and values of the past have theirs already."""
    short, wide, bias = q.dtype, q.dtype.compute, node.optional(3)
    q, k, v = (node.builder.convert(part, wide) for part in (q, k, v))
    if bias is None:
        return q, k, v
    heads = node.attr_int("num_heads")
    sizes: list[DimLike] = [part.shape[3] * heads for part in (q, k, v)]
    check_dims(node, "bias", bias, (sizes[0] + sizes[1] + sizes[2],))
    own = node.add_all(Split(0, 3, tuple(sizes)), node.builder.convert(bias, wide))
    added = [
        node.builder.convert(
            node.builder.convert(node.pointwise("add", part, node.add(Reshape((heads, 1, part.shape[3])), b)), short),
            wide,
        )
        for part, b in zip((q, k, v), own, strict=True)
    ]
    return (added[0], k, v) if only_queries else (added[0], added[1], added[2])


def _with_past(node: Node, k: Value, v: Value) -> tuple[Value, Value, tuple[Value, Value]]:
    """Keys and values with those of the past before them, and both as the results `present_key`, `present_value`.

    With `past_sequence_length` the past is a buffer of which so many keys count; the new ones are written there.
    """
    past_key, past_value, result = node.optional(6), node.optional(7), node.input(0).dtype
    if (past_key is None) != (past_value is None):
        node.fail("past_key and past_value must both be given, or neither")
    if past_key is None or past_value is None:
        return k, v, (node.builder.convert(k, result), node.builder.convert(v, result))
    for name, past, new in (("past_key", past_key, k), ("past_value", past_value, v)):
        length = past_key.shape[2] if past_key.rank == 4 else 0
        check_dims(node, name, past, (*new.shape[:2], length, new.shape[3]))
    old = [node.builder.convert(past, k.dtype) for past in (past_key, past_value)]
    count = node.optional(8)
    if count is None:
        k, v = appended(node, old[0], k), appended(node, old[1], v)
        return k, v, (node.builder.convert(k, result), node.builder.convert(v, result))
    start = node.builder.convert(node.add(Reshape((1,)), count), INT64)
    end = node.pointwise("add", start, node.add(DimValues((k.shape[2],), scalar=False)))
    full = [written(node, buffer, new, start) for buffer, new in zip(old, (k, v), strict=True)]
    k, v = (node.add(Slice(None, None, (2,), (1,)), buffer, node.constant([0], INT64), end) for buffer in full)
    return k, v, (node.builder.convert(full[0], result), node.builder.convert(full[1], result))
