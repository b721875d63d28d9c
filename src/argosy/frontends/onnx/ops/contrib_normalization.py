"""Normalisations of com.microsoft (ONNX Runtime, docs/ContribOperators.md); they round once, at the end."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.frontends.onnx.contrib import contrib_op
from argosy.frontends.onnx.formulas import sigmoid
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.constants import counted
from argosy.frontends.onnx.ops.contrib_convolution import channels_first, channels_last
from argosy.frontends.onnx.ops.normalization import (
    by_channel,
    mean_over,
    moments_of,
    normalized,
    root_mean_square,
    standardized_by_group,
    stashed,
)
from argosy.ir.dim import equal
from argosy.ir.dtype import INT32
from argosy.ir.module import Value
from argosy.ops.index import Gather
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import normalize_axis
from argosy.ops.view import Broadcast, Reshape, Shape


def _total(node: Node, terms: Sequence[Value | None]) -> tuple[Value, Value]:
    """The sum of the terms that are given: in their compute type, and rounded to their type."""
    given = [value for value in terms if value is not None]
    dtype = given[0].dtype
    wide = [node.builder.convert(value, dtype.compute) for value in given]
    total = node.pointwise(lambda first, *others: sum(others[1:], first + others[0]), *wide)
    return total, node.builder.convert(total, dtype)


def _skipped(node: Node, *vectors: str) -> tuple[Value, Value]:
    """Input + skip (+ bias): in the compute type, and rounded to the type of the input.

    `vectors` are the inputs from 2 on, of which "bias" is one.
    """
    x = node.input(0)
    if x.rank not in (2, 3):
        node.fail(f"the input is {x.type}, expected rank 2 or 3")
    for index, name in enumerate(vectors, 2):
        value = node.optional(index)
        if value is not None and (value.rank != 1 or equal(value.shape[0], x.shape[-1]) is False):
            node.fail(f"{name} is {value.type}, expected [{x.shape[-1]}]")
    return _total(node, (x, node.input(1), node.optional(2 + vectors.index("bias"))))


@contrib_op("SkipLayerNormalization", "input:F skip:F gamma:F beta:F? bias:F?")
def SkipLayerNormalization(node: Node) -> Sequence[Value]:
    """Layer normalisation of input + skip + bias over the last axis; the sum is the fourth result."""
    total, rounded = _skipped(node, "gamma", "beta", "bias")
    moments = moments_of(node, total, (total.rank - 1,))
    epsilon = node.attr_float("epsilon", 1e-12)
    y, inverse = normalized(node, moments, epsilon, node.input(2), node.optional(3), node.input(0).dtype)
    return (y, moments.mean, inverse, rounded)[: node.output_count]


@contrib_op("SkipSimplifiedLayerNormalization", "input:F skip:F gamma:F bias:F?")
def SkipSimplifiedLayerNormalization(node: Node) -> Sequence[Value | None]:
    """Root-mean-square normalisation of input + skip + bias over the last axis; the sum is the fourth result."""
    total, rounded = _skipped(node, "gamma", "bias")
    epsilon = node.attr_float("epsilon", 1e-12)
    y, inverse = root_mean_square(node, total, (total.rank - 1,), epsilon, node.input(2), node.input(0).dtype)
    # Nothing says what "mean" is here: ONNX Runtime leaves it unset, MIGraphX gives the mean of the squares.
    squares = mean_over(node, node.pointwise(lambda x: x * x, total), (total.rank - 1,)) if node.wants(1) else None
    return (y, squares, inverse, rounded)[: node.output_count]


@contrib_op("SimplifiedLayerNormalization", "X:F1 scale:F2")
def SimplifiedLayerNormalization(node: Node) -> Sequence[Value]:
    """Root-mean-square normalisation over the axes from `axis` on, in the scale's type; also gives 1 / root."""
    x, scale = node.input(0), node.input(1)
    axes = range(normalize_axis(node.attr_int("axis", -1), x.rank), x.rank)
    epsilon = node.attr_float("epsilon", 1e-5)
    return root_mean_square(node, stashed(node, x), axes, epsilon, scale, scale.dtype)[: node.output_count]


@contrib_op(
    "EmbedLayerNormalization",
    "input_ids:I segment_ids:I? word_embedding:F position_embedding:F segment_embedding:F? gamma:F beta:F mask:I?"
    " position_ids:I?",
)
def EmbedLayerNormalization(node: Node) -> Sequence[Value]:
    """Layer normalisation of the sum of word, position and segment embeddings; also the mask's counts, and the sum."""
    ids, segments, table = node.input(0), node.optional(1), node.optional(4)
    if ids.rank != 2:
        node.fail(f"input_ids is {ids.type}, expected [batch, sequence]")
    if (segments is None) != (table is None):
        node.fail("segment_ids and segment_embedding must both be given, or neither")
    positions = node.optional(8)
    places = counted(node, ids, 1) if positions is None else positions
    terms = [node.add(Gather(0), node.input(2), ids), node.add(Gather(0), node.input(3), places)]
    if segments is not None and table is not None:
        terms.append(node.add(Gather(0), table, segments))
    total, rounded = _total(node, terms)
    moments = moments_of(node, total, (2,))
    y, _ = normalized(node, moments, node.attr_float("epsilon", 1e-12), node.input(5), node.input(6), rounded.dtype)
    node.ignore("mask_index_type")
    return (y, _words(node, ids, node.optional(7)), rounded)[: node.output_count]


def _words(node: Node, ids: Value, mask: Value | None) -> Value:
    """How many ones each row of the mask has; zeros without a mask."""
    if mask is None:
        batch = node.add(Shape(0, 1), ids)
        return node.add(Broadcast(), node.constant(0, INT32), batch)
    ones = node.pointwise(lambda m: (m == 1).convert(INT32), mask)
    return node.add(Reduce("sum", (1,), keep_dims=False), ones)


@contrib_op("GroupNorm", "X:F1 gamma:F2 beta:F2")
def GroupNorm(node: Node) -> Value:
    """Group normalisation, and SiLU where `activation` is 1; channels come last unless `channels_last` is 0."""
    x = node.input(0)
    return _group_norm(node, _first(node, x), x)


@contrib_op("SkipGroupNorm", "X:F1 gamma:F2 beta:F2 skip:F1 bias:F1?")
def SkipGroupNorm(node: Node) -> Sequence[Value]:
    """GroupNorm of X + skip + bias; the sum is the second result."""
    x, skip, bias = node.input(0), node.input(3), node.optional(4)
    if skip.rank == 2:
        skip = node.add(Reshape((skip.shape[0], *(1,) * (x.rank - 2), skip.shape[1]), allow_zero=True), skip)
        skip = skip if _is_last(node) else channels_first(node, skip)
    if bias is not None and not _is_last(node):
        bias = by_channel(node, bias, x.rank)
    total, rounded = _total(node, (x, skip, bias))
    return (_group_norm(node, _first(node, total), x), rounded)[: node.output_count]


def _is_last(node: Node) -> bool:
    return node.attr_flag("channels_last", default=True)


def _first(node: Node, x: Value) -> Value:
    return channels_first(node, x) if _is_last(node) else x


def _group_norm(node: Node, x: Value, like: Value) -> Value:
    """The group normalisation of `x [N, C, …]`, in the layout and the type of `like`."""
    activation = node.attr_int("activation")
    if activation not in (0, 1):
        node.fail(f"attribute 'activation' is {activation}, expected 0 (none) or 1 (SiLU)")
    for index, name in ((1, "gamma"), (2, "beta")):
        if node.input(index).rank != 1 or equal(node.input(index).shape[0], x.shape[1]) is False:
            node.fail(f"{name} is {node.input(index).type}, expected [{x.shape[1]}], an element for each channel")
    standard = standardized_by_group(node, x, node.attr_int("groups"), node.attr_float("epsilon", 1e-5))
    scale, bias = (
        node.builder.convert(by_channel(node, node.input(index), x.rank), standard.dtype) for index in (1, 2)
    )
    y = node.pointwise(lambda x, s, b: x * s + b, standard, scale, bias)
    if activation:
        y = node.pointwise(lambda x: x * sigmoid(x), y)
    return node.builder.convert(channels_last(node, y) if _is_last(node) else y, like.dtype)
