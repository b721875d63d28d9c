"""What the attention ops of com.microsoft share: heads, masks, and attention itself, composed of dots and a softmax.

Letters in shapes: B batch, N heads, S queries, T keys (those of the past included), H size of a head.
Everything is computed in the compute type of the operands; only the result is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.frontends.onnx.checks import check_dims
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.constants import counted
from argosy.ir.dim import DimLike, equal, floordiv
from argosy.ir.dtype import DType
from argosy.ir.module import Value
from argosy.ops.dim_values import DimValues, Shape
from argosy.ops.joining import Concat, Split
from argosy.ops.matmul import Dot
from argosy.ops.operands import shape_text
from argosy.ops.reduce import Softmax
from argosy.ops.scatter import ScatterElements
from argosy.ops.slicing import Slice
from argosy.ops.view import Broadcast, Reshape, Squeeze, Transpose, Unsqueeze

__all__ = [
    "EXCLUDED",
    "appended",
    "attend",
    "causal",
    "check_heads",
    "masked",
    "merge_heads",
    "read_scale",
    "scaled_scores",
    "split_heads",
    "split_state",
    "written",
]

EXCLUDED: Final = -3.4028234663852886e38
"""Score of a key that a query must not see: the least float32, so that a row of nothing else has no NaN."""


def check_heads(node: Node, what: str, size: DimLike, heads: int) -> None:
    """Raise ModelError unless there is a positive number of heads that `size` divides into."""
    if heads < 1:
        node.fail(f"attribute 'num_heads' is {heads}, expected a positive number")
    if isinstance(size, int) and (size < 1 or size % heads):
        node.fail(f"{what} is {size}, expected a positive multiple of the {heads} heads")


def read_scale(node: Node, size: DimLike) -> float:
    """The attribute `scale`; 1 / √H where it is absent or 0."""
    scale = node.attr_float("scale", 0.0)
    if scale:
        return scale
    if not isinstance(size, int):
        node.unsupported("the size of a head is not known", hint="give the shapes of the model's inputs")
    return float(size) ** -0.5


def split_heads(node: Node, x: Value, heads: int) -> Value:
    """`[B, S, N H]` as `[B, N, S, H]`."""
    batch, length, size = x.shape
    split = node.add(Reshape((batch, length, heads, floordiv(size, heads)), allow_zero=True), x)
    return node.add(Transpose((0, 2, 1, 3)), split)


def merge_heads(node: Node, x: Value) -> Value:
    """`[B, N, S, H]` as `[B, S, N H]`."""
    batch, heads, length, size = x.shape
    return node.add(Reshape((batch, length, heads * size), allow_zero=True), node.add(Transpose((0, 2, 1, 3)), x))


def split_state(node: Node, state: Value) -> tuple[Value, Value]:
    """Keys and values of a state `[2, B, N, T, H]`, each `[B, N, T, H]`."""
    keys, values = (node.add(Squeeze((0,)), half) for half in node.add_all(Split(0, 2), state))
    return keys, values


def appended(node: Node, past: Value | None, new: Value) -> Value:
    """`new` behind `past` along the axis of the keys, both `[B, N, …, H]`."""
    return new if past is None else node.add(Concat(2), past, new)


def scaled_scores(node: Node, q: Value, k: Value, scale: float) -> Value:
    """`scale q k'` `[B, N, S, T]` in the compute type."""
    wide = q.dtype.compute
    scores = node.add(Dot(wide), q, node.add(Transpose((*range(k.rank - 2), k.rank - 1, k.rank - 2)), k))
    return node.pointwise(lambda s: s * scale, scores)


def attend(node: Node, scores: Value, v: Value, result: DType) -> Value:
    """The average of `v` weighted by the softmax of the scores, `[B, N, S, H]`."""
    return node.builder.convert(node.add(Dot(scores.dtype), node.add(Softmax(-1), scores), v), result)


def causal(node: Node, scores: Value, past: DimLike) -> Value:
    """The scores, `EXCLUDED` where key t comes after query s, which stands at `past + s`."""
    queries = node.add(Unsqueeze((1,)), counted(node, scores, scores.rank - 2))
    keys = counted(node, scores, scores.rank - 1)
    first = node.add(DimValues((past,), scalar=True))
    later = node.pointwise(lambda t, s, p: s + p < t, keys, queries, first)
    return node.pointwise(lambda later, x: later.select(EXCLUDED, x), later, scores)


def masked(node: Node, name: str, mask: Value, scores: Value, own: DimLike, added: float) -> Value:
    """`scores [B, N, S, T]`, `added` to those of keys that do not count.

    `mask` is 1 where a key counts, 0 where not: `[B, T]`, `[B, S, T]`, or `[B, 1, M, M]` of which rows and columns
    up to T count; or it has positions: `[B]` where the keys end, `[2 B]` where they end and then where they start.
    `own` is the number of keys that are not of the past.
    """
    batch, _, queries, keys = scores.shape
    if mask.rank == 1:
        return _masked_by_position(node, name, mask, scores, added)
    if mask.rank == 4:
        check_dims(node, name, mask, (batch, 1, mask.shape[2], mask.shape[2]))
        past = keys - own
        mask = node.add(Slice((past, 0), (past + queries, keys), (2, 3)), mask)
    elif mask.rank == 3:
        check_dims(node, name, mask, (batch, queries, keys))
        mask = node.add(Unsqueeze((1,)), mask)
    else:
        check_dims(node, name, mask, (batch, keys))
        mask = node.add(Unsqueeze((1, 2)), mask)
    return node.pointwise(lambda x, m: (m > 0).select(x, x + added), scores, mask)


def _masked_by_position(node: Node, name: str, mask: Value, scores: Value, added: float) -> Value:
    batch, size = scores.shape[0], mask.shape[0]
    halves: Sequence[Value]
    if equal(size, batch):
        halves = [mask]
    elif equal(size, batch * 2):
        halves = node.add_all(Split(0, 2), mask)
    elif equal(size, batch * 3 + 2):
        node.unsupported(f"{name} of 3 B + 2 elements: lengths and their sums")
    elif equal(size, batch) is False and equal(size, batch * 2) is False:
        node.fail(f"{name} is {mask.type}, expected {shape_text((batch,))} or {shape_text((batch * 2,))}")
    else:
        node.unsupported(f"{name} is {mask.type}: whether it holds ends, or ends and starts, is not known")
    keys = counted(node, scores, 3)
    # Each position as [B, 1, 1, 1], to compare with the keys.
    bounds = [node.add(Unsqueeze((1, 2, 3)), node.builder.convert(half, keys.dtype)) for half in halves]
    if len(bounds) == 1:
        return node.pointwise(lambda x, t, end: (t < end).select(x, x + added), scores, keys, *bounds)
    return node.pointwise(
        lambda x, t, end, start: (t < end).apply("and", start <= t).select(x, x + added), scores, keys, *bounds
    )


def written(node: Node, buffer: Value, new: Value, starts: Value) -> Value:
    """A buffer `[B, N, M, H]` with the keys `new [B, N, S, H]` written at `starts` (int64, `[B]` or `[1]`) and on."""
    positions = node.add(Unsqueeze((1,)), counted(node, new, 2))
    places = node.pointwise("add", positions, node.add(Unsqueeze((1, 2, 3)), starts))
    return node.add(ScatterElements(2), buffer, node.add(Broadcast(), places, node.add(Shape(), new)), new)
