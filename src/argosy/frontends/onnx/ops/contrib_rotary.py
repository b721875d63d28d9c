"""RotaryEmbedding of com.microsoft (ONNX Runtime, docs/ContribOperators.md), not the standard's op of that name."""

from __future__ import annotations

from argosy.frontends.onnx.checks import check_dims
from argosy.frontends.onnx.contrib import contrib_op
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.ops.attention import merge_heads, split_heads
from argosy.frontends.onnx.ops.constants import counted
from argosy.ir.dim import DimLike, equal, floordiv
from argosy.ir.module import Value
from argosy.ops.index import Gather
from argosy.ops.joining import Concat, Split
from argosy.ops.view import Reshape, Squeeze, Unsqueeze


@contrib_op("RotaryEmbedding", "input:F position_ids:I cos_cache:F sin_cache:F")
def RotaryEmbedding(node: Node) -> Value:
    """Pairs of elements of each head turned by the angle of their position."""
    x, ids, cos, sin = (node.input(index) for index in range(4))
    node.ignore("is_packed_batching")  # positions say where each token stands, in ragged batches too
    scale = node.attr_float("scale", 1.0)
    if scale <= 0.0:
        node.fail(f"attribute 'scale' is {scale:g}, expected a positive number")
    if scale != 1.0:
        node.unsupported(f"attribute 'scale' is {scale:g}: what is scaled by it is nowhere said")
    if x.rank not in (3, 4):
        node.fail(f"the input is {x.type}, expected rank 3 or 4")
    half, heads = _half(node, cos), node.attr_int("num_heads", 0)
    check_dims(node, "sin_cache", sin, (cos.shape[0], half))
    split = x if x.rank == 4 else split_heads(node, x, _count(node, x.shape[2], half, heads))
    turn = angles(node, split, _positions(node, split, ids), cos, sin)
    turned = rotated(node, split, *turn, interleaved=node.attr_flag("interleaved"))
    return turned if x.rank == 4 else merge_heads(node, turned)


def _half(node: Node, cos: Value) -> DimLike:
    """Number of pairs that are turned; raises ModelError where attribute and cache contradict each other."""
    if cos.rank != 2:
        node.fail(f"cos_cache is {cos.type}, expected [positions, pairs]")
    size = node.attr_int("rotary_embedding_dim", 0)
    if size and node.attr_int("num_heads", 0) < 1:
        node.fail("attribute 'num_heads' is 0, expected a positive number beside rotary_embedding_dim")
    if size and equal(cos.shape[1] * 2, size) is False:
        node.fail(f"attribute 'rotary_embedding_dim' is {size}, cos_cache is {cos.type}")
    return cos.shape[1]


def _count(node: Node, size: DimLike, half: DimLike, heads: int) -> int:
    """Number of heads in the last axis of an input of rank 3, of `size`."""
    if node.attr_int("rotary_embedding_dim", 0):
        if isinstance(size, int) and size % heads:
            node.fail(f"the input has {size} elements a token, expected a multiple of the {heads} heads")
        return heads
    count = floordiv(size, half * 2)
    if not isinstance(count, int):
        if heads < 1:
            node.unsupported("the number of heads is not known", hint="give num_heads, or the shapes of the inputs")
        return heads
    if equal(count * half * 2, size) is False:
        node.fail(f"the input has {size} elements a token, expected a multiple of {half * 2}, twice that of cos_cache")
    return count


def _positions(node: Node, x: Value, ids: Value) -> Value:
    """Positions `[B, S]`, or `[S]` where only the first is given."""
    batch, length = x.shape[0], x.shape[2]
    check_dims(node, "position_ids", ids, (1,), (batch, length))
    return ids if ids.rank == 2 else node.pointwise("add", node.builder.convert(counted(node, x, 2), ids.dtype), ids)


def angles(node: Node, x: Value, positions: Value, cos: Value, sin: Value) -> tuple[Value, Value]:
    """The rows of the caches at `positions` (`[S]` or `[B, S]`), to stand against `x [B, N, S, …]`, in its type."""
    rows = (node.builder.convert(node.add(Gather(0), cache, positions), x.dtype) for cache in (cos, sin))
    left, right = (node.add(Unsqueeze((positions.rank - 1,)), row) for row in rows)
    return left, right


def rotated(node: Node, x: Value, cos: Value, sin: Value, *, interleaved: bool) -> Value:
    """The first elements of the last axis of `x`, twice as many as `cos` has, turned: (a, b) to (ac - bs, bc + as).

    A pair is two neighbours where `interleaved`, else an element and that as far behind it as there are pairs.
    """
    size, half = x.shape[-1], cos.shape[-1]
    if equal(half * 2, size) is False and isinstance(size, int) and isinstance(half, int) and half * 2 > size:
        node.fail(f"a head has {size} elements, the caches turn {half * 2}")
    rest = size - half * 2
    parts = (x,) if equal(rest, 0) else node.add_all(Split(x.rank - 1, 2, (half * 2, rest)), x)
    head = parts[0]
    if interleaved:
        pairs = node.add(Reshape((*head.shape[:-1], half, 2), allow_zero=True), head)
        a, b = (node.add(Squeeze((x.rank,)), part) for part in node.add_all(Split(x.rank, 2), pairs))
    else:
        a, b = node.add_all(Split(x.rank - 1, 2), head)
    left = node.pointwise(lambda a, b, c, s: a * c - b * s, a, b, cos, sin)
    right = node.pointwise(lambda a, b, c, s: b * c + a * s, a, b, cos, sin)
    if interleaved:
        stacked = node.add(Concat(x.rank), *(node.add(Unsqueeze((x.rank,)), part) for part in (left, right)))
        turned = node.add(Reshape(head.shape, allow_zero=True), stacked)
    else:
        turned = node.add(Concat(x.rank - 1), left, right)
    return turned if len(parts) == 1 else node.add(Concat(x.rank - 1), turned, parts[1])
