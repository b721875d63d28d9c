"""GroupQueryAttention of com.microsoft (ONNX Runtime, docs/ContribOperators.md).

Letters in shapes: B batch, N query heads, K key heads, S queries, C capacity of the cache, H size of a head.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.frontends.onnx.checks import check_dims
from argosy.frontends.onnx.contrib import contrib_op
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.attention import (
    EXCLUDED,
    check_heads,
    merge_heads,
    read_scale,
    scaled_scores,
    split_heads,
    written,
)
from argosy.frontends.onnx.ops.constants import counted
from argosy.frontends.onnx.ops.contrib_rotary import angles, rotated
from argosy.frontends.onnx.ops.normalization import root_mean_square
from argosy.ir.dim import DimLike, dim_max, equal, floordiv
from argosy.ir.dtype import INT64
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.dim_values import DimValues, Shape
from argosy.ops.joining import Concat, Split
from argosy.ops.matmul import Dot
from argosy.ops.reduce import Softmax
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Broadcast, Reshape, Unsqueeze


@contrib_op(
    "GroupQueryAttention",
    "query:F key:F1? value:F1? past_key:*? past_value:*? seqlens_k:I total_sequence_length:I cos_cache:F? sin_cache:F?"
    " position_ids:I? attention_bias:F? head_sink:F? k_scale:R? v_scale:R? q_norm_weight:F? k_norm_weight:F?"
    " query_seqlens:I?",
)
def GroupQueryAttention(node: Node) -> Sequence[Value | None]:
    """Attention in which query heads share a key head, over a cache of keys and values; also gives the cache."""
    _refuse(node)
    q, k, v = _operands(node)
    q, k = _normalized(node, q, 14, "q"), _normalized(node, k, 15, "k")
    ends, starts = _extents(node, q)
    if node.attr_flag("do_rotary"):
        turn = _turn(node, q, starts)
        interleaved = node.attr_flag("rotary_interleaved")
        q, k = (rotated(node, x, *turn, interleaved=interleaved) for x in (q, k))
    node.ignore("rotary_interleaved")
    keys, values = (written(node, _cache(node, index, new), new, starts) for index, new in ((3, k), (4, v)))
    scores = _scores(node, q, keys, starts, ends)
    weights = _softmax(node, scores)
    y = merge_heads(node, _grouped_dot(node, weights, values))
    return (
        node.builder.convert(y, node.input(0).dtype),
        keys,
        values,
        _asked_scores(node, scores, weights),
    )[: node.output_count]


def _refuse(node: Node) -> None:
    """Raise ModelError or UnsupportedError for what the attributes and inputs ask that is not done."""
    if node.attr_flag("sliding_window_cache"):
        node.unsupported("the cache evicts what leaves the window (sliding_window_cache)")
    quantised = [name for name in ("k_quant_type", "v_quant_type") if node.attr_string(name, "NONE") != "NONE"]
    node.ignore("kv_cache_bit_width")
    past = node.optional(3)
    if quantised or (past is not None and past.dtype is not node.input(0).dtype):
        node.unsupported("the cache is quantised")
    if (past is None) != (node.optional(4) is None):
        node.fail("past_key and past_value must both be given, or neither")


def _given(node: Node, index: int) -> Value | None:
    """Key or value; a tensor of one element stands for an absent one in some files."""
    value = node.optional(index)
    if value is None or not (value.rank == 1 and equal(value.shape[0], 1)):
        return value
    node.lenient(f"input {index} is {value.type}, expected rank 3 or none; taken as absent")
    return None


def _operands(node: Node) -> tuple[Value, Value, Value]:
    """Queries `[B, N, S, H]`, keys and values `[B, K, S, H]`."""
    query, key, value = node.input(0), _given(node, 1), _given(node, 2)
    heads, shared = node.attr_int("num_heads"), node.attr_int("kv_num_heads")
    if shared < 1 or heads < 1 or heads % shared:
        node.fail(f"num_heads is {heads} and kv_num_heads {shared}, expected the first to be a multiple of the second")
    if query.rank != 3:
        node.fail(f"query is {query.type}, expected [batch, sequence, size]")
    if key is None or value is None:
        if key is not None or value is not None:
            node.fail("key and value must both be given, or neither")
        total = heads + 2 * shared
        check_heads(node, "the size of the packed query", query.shape[2], total)
        size = floordiv(query.shape[2], total)
        parts: Sequence[Value] = node.add_all(Split(2, 3, (size * heads, size * shared, size * shared)), query)
    else:
        check_heads(node, "the size of the query", query.shape[2], heads)
        size = floordiv(query.shape[2], heads)
        for name, given in (("key", key), ("value", value)):
            if given.dtype is not query.dtype:
                node.fail(f"{name} is {given.dtype}, the query is {query.dtype}")
            check_dims(node, name, given, (*query.shape[:2], size * shared))
        parts = (query, key, value)
    q, k, v = (split_heads(node, part, count) for part, count in zip(parts, (heads, shared, shared), strict=True))
    return q, k, v


def _normalized(node: Node, x: Value, index: int, letter: str) -> Value:
    """`x` normalised head by head, where input `index` gives a weight."""
    weight = node.optional(index)
    epsilon = node.attr_float(f"{letter}_norm_epsilon", node.attr_float("qk_norm_epsilon", 1e-6))
    if (node.optional(14) is None) != (node.optional(15) is None):
        node.fail("q_norm_weight and k_norm_weight must both be given, or neither")
    if weight is None:
        return x
    check_dims(node, f"{letter}_norm_weight", weight, (x.shape[3],))
    wide = node.builder.convert(x, x.dtype.compute)
    return root_mean_square(node, wide, (3,), epsilon, weight, x.dtype)[0]


def _extents(node: Node, q: Value) -> tuple[Value, Value]:
    """For each of the batch how many keys there are with this step (int64 `[B]`), and how many there were before."""
    sizes, batch = node.input(5), q.shape[0]
    check_dims(node, "seqlens_k", sizes, (batch,), (batch, 1))
    flat = node.builder.convert(node.add(Reshape((batch,)), sizes), INT64)
    ends = node.pointwise(lambda n: n + 1, flat)
    count = node.optional(16)
    if count is not None:
        check_dims(node, "query_seqlens", count, (batch,))
        return ends, node.pointwise("sub", ends, node.builder.convert(count, INT64))
    length = node.add(DimValues((q.shape[2],), scalar=True))
    return ends, node.pointwise(lambda end, size: (end - size).max(0), ends, length)


def _turn(node: Node, q: Value, starts: Value) -> tuple[Value, Value]:
    """Cosines and sines for the positions of the queries, which are those of the new keys."""
    cos, sin = node.optional(7), node.optional(8)
    if cos is None or sin is None:
        node.fail("do_rotary is 1, but cos_cache or sin_cache is missing")
    if cos.rank != 2:
        node.fail(f"cos_cache is {cos.type}, expected [positions, pairs]")
    check_dims(node, "sin_cache", sin, (cos.shape[0], cos.shape[1]))
    given = node.optional(9)
    if given is not None:
        check_dims(node, "position_ids", given, (q.shape[0], q.shape[2]))
        return angles(node, q, given, cos, sin)
    last = node.add(DimValues((cos.shape[0] - 1,), scalar=True))
    # Rows that pad a chunk may lie behind the end of the caches; nothing is read of what becomes of them.
    positions = node.pointwise(
        lambda start, s, last: (start + s).min(last), node.add(Unsqueeze((1,)), starts), counted(node, q, 2), last
    )
    return angles(node, q, positions, cos, sin)


def _capacity(node: Node, past: Value | None) -> DimLike | None:
    """C: as many keys as the past holds, or as there are in all if that is more; None where only the run knows."""
    known = node.known_ints(6)
    if known is None:
        return None
    return known[0] if past is None else dim_max(past.shape[2], known[0])


def _cache(node: Node, index: int, new: Value) -> Value:
    """The past keys or values with room for C, `[B, K, C, H]`; zeros behind them."""
    past = node.optional(index)
    batch, heads, _, size = new.shape
    capacity = _capacity(node, past)
    if past is None:
        zero = node.constant(np.zeros((1, 1, 1, 1)), new.dtype)
        if capacity is not None:
            return node.add(Broadcast((batch, heads, capacity, size)), zero)
        ends = (node.add(Shape(0, 2), new), node.add(Shape(3, 4), new))
        return node.add(Broadcast(), zero, node.add(Concat(0), ends[0], _total(node), ends[1]))
    check_dims(node, ("past_key", "past_value")[index - 3], past, (batch, heads, _past_length(node), size))
    if capacity is not None:
        more = capacity - past.shape[2]
        return past if equal(more, 0) else node.add(Pad("constant", (0, more), (2,)), past)
    length = node.add(Shape(2, 3), past)
    more_at_run = node.pointwise(lambda total, length: (total - length).max(0), _total(node), length)
    pads = node.add(Concat(0), node.constant([0], INT64), more_at_run)
    return node.add(Pad("constant", None, (2,)), past, pads)


def _past_length(node: Node) -> DimLike:
    past = node.input(3)
    return past.shape[2] if past.rank == 4 else 0


def _total(node: Node) -> Value:
    """The input total_sequence_length as int64 `[1]`."""
    return node.builder.convert(node.add(Reshape((1,)), node.input(6)), INT64)


def _scores(node: Node, q: Value, keys: Value, starts: Value, ends: Value) -> Value:
    """`[B, N, S, C]` in the compute type, those of keys out of sight `EXCLUDED`."""
    scale = read_scale(node, q.shape[3])
    batch, heads, length, size = q.shape
    shared = keys.shape[1]
    grouped = node.add(Reshape((batch, shared, floordiv(heads, shared) * length, size), allow_zero=True), q)
    scores = scaled_scores(node, grouped, keys, scale)
    scores = node.add(Reshape((batch, heads, length, keys.shape[2]), allow_zero=True), scores)
    cap = node.attr_float("softcap", 0.0)
    if cap > 0.0:
        scores = node.pointwise(lambda x: (x / cap).tanh() * cap, scores)
    bias = node.optional(10)
    if bias is not None:
        scores = node.pointwise("add", scores, _bias(node, bias, scores))
    window, looks_back = node.attr_int("local_window_size", -1), node.attr_flag("causal", default=True)
    if window > 0 and not looks_back:
        node.fail("local_window_size needs causal attention")

    def hidden(t: Expr, s: Expr, start: Expr, end: Expr) -> Expr:
        hidden = end <= t
        if looks_back:
            hidden = hidden.apply("or", start + s < t)
        if window > 0:
            hidden = hidden.apply("or", t <= start + s - window)
        return hidden

    queries = node.add(Unsqueeze((1,)), counted(node, scores, 2))
    edges = (node.add(Unsqueeze((1, 2, 3)), edge) for edge in (starts, ends))
    out_of_sight = node.pointwise(hidden, counted(node, scores, 3), queries, *edges)
    return node.pointwise(lambda hidden, x: hidden.select(EXCLUDED, x), out_of_sight, scores)


def _bias(node: Node, bias: Value, scores: Value) -> Value:
    """The bias `[B or 1, N or 1, S, total]`, with zeros up to C."""
    batch, heads, length, capacity = scores.shape
    check_dims(node, "attention_bias", bias, *((b, n, length, bias.shape[-1]) for b in (batch, 1) for n in (heads, 1)))
    wide = node.builder.convert(bias, scores.dtype)
    more = capacity - bias.shape[3]
    return wide if equal(more, 0) else node.add(Pad("constant", (0, more), (3,)), wide)


def _softmax(node: Node, scores: Value) -> Value:
    """Over the keys; with a sink, of a logit by head, or of 0 where `smooth_softmax` is 1, that takes a share away."""
    sink = node.optional(11)
    heads = scores.shape[1]
    if sink is not None:
        check_dims(node, "head_sink", sink, (heads,))
        column = node.add(Unsqueeze((1, 2)), node.builder.convert(sink, scores.dtype))
    elif node.attr_int("smooth_softmax", -1) == 1:
        column = node.constant(np.zeros((1, 1, 1)), scores.dtype)
    else:
        return node.add(Softmax(-1), scores)
    node.ignore("smooth_softmax")
    batch, _, length, capacity = scores.shape
    wider = node.add(Concat(3), scores, node.add(Broadcast((batch, heads, length, 1)), column))
    return node.add(Slice((0,), (capacity,), (3,)), node.add(Softmax(-1), wider))


def _grouped_dot(node: Node, weights: Value, values: Value) -> Value:
    """`[B, N, S, C]` times `[B, K, C, H]` as `[B, N, S, H]`."""
    batch, heads, length, capacity = weights.shape
    shared, size = values.shape[1], values.shape[3]
    grouped = node.add(Reshape((batch, shared, floordiv(heads, shared) * length, capacity), allow_zero=True), weights)
    product = node.add(Dot(weights.dtype), grouped, values)
    return node.add(Reshape((batch, heads, length, size), allow_zero=True), product)


def _asked_scores(node: Node, scores: Value, weights: Value) -> Value | None:
    """The scores before (`qk_output` 1) or after the softmax (2), for as many keys as there are in all."""
    kind = node.attr_int("qk_output", 0)
    if not kind or not node.wants(3):
        return None
    chosen = scores if kind == 1 else weights
    known = node.known_ints(6)
    if known is None:
        zero = node.constant([0], INT64)
        kept = node.add(Slice(None, None, (3,), (1,)), chosen, zero, _total(node))
    else:
        kept = node.add(Slice((0,), (known[0],), (3,)), chosen)
    return node.builder.convert(kept, node.input(0).dtype)
