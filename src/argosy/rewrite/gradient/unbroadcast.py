"""The gradient of broadcasting: what was repeated is summed."""

from __future__ import annotations

from argosy.ir.builder import Builder
from argosy.ir.dim import equal
from argosy.ir.module import Value
from argosy.ops.dim_values import DimValues, Shape
from argosy.ops.index import NonZero
from argosy.ops.reduce import Reduce
from argosy.ops.view import Reshape
from argosy.rewrite.gradient.derivative import reshaped

__all__ = ["unbroadcast"]


def unbroadcast(build: Builder, gradient: Value, like: Value) -> Value:
    """`gradient`, which has the dims that `like` was broadcast to, summed over what was repeated."""
    shape = like.shape
    grown = gradient.rank - len(shape)
    repeated = list(range(grown))
    for axis, (own, wide) in enumerate(zip(shape, gradient.shape[grown:], strict=True), grown):
        if equal(own, wide):
            continue
        if not isinstance(own, int):
            return _by_sizes(build, gradient, like)
        if own == 1:
            repeated.append(axis)
    if repeated:
        gradient = build.add(Reduce("sum", tuple(repeated), keep_dims=False), gradient)
    return reshaped(build, gradient, shape)


def _by_sizes(build: Builder, gradient: Value, like: Value) -> Value:
    """The same where only a run knows which axes were repeated."""
    own = build.add(DimValues((1,) * (gradient.rank - like.rank) + like.shape))
    wide = build.add(Shape(), gradient)
    differing = build.add(NonZero(), build.pointwise(lambda a, b: (a == b).not_(), own, wide))
    axes = build.add(Reshape((-1,)), differing)
    return reshaped(build, build.add(Reduce("sum", None, noop_with_empty_axes=True), gradient, axes), like.shape)
