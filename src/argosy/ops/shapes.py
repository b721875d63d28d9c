"""Rules on dims that several op families share: broadcasting and axes."""

from __future__ import annotations

from argosy.errors import ModelError
from argosy.ir.dim import DimLike, dim_max, equal
from argosy.ir.types import Dims
from argosy.ops.demands import demand_broadcast

__all__ = ["broadcast", "broadcast_dim", "normalize_axis", "product"]


def broadcast_dim(left: DimLike, right: DimLike) -> DimLike:
    """One dim of a multidirectional broadcast (ONNX "Broadcasting"; numpy's rule).

    A symbolic dim against a number other than 1 must be 1 or that number at run time, so the number is the
    result. Of two symbolic dims that may differ either may be 1: the result is their maximum (sizes of 0
    apart, where only the run knows).
    """
    if isinstance(left, int) and left == 1:
        return right
    if isinstance(right, int) and right == 1:
        return left
    same = equal(left, right)
    if same is False and isinstance(left, int) and isinstance(right, int):
        raise ModelError(f"the dims {left} and {right} do not broadcast")
    if same:
        return left
    demand_broadcast(left, right)
    if isinstance(left, int):
        return left
    return right if isinstance(right, int) else dim_max(left, right)


def broadcast(*shapes: Dims) -> Dims:
    """Dims of the multidirectional broadcast of `shapes`; raises ModelError where they do not fit."""
    result: list[DimLike] = []
    for shape in shapes:
        padding = len(shape) - len(result)
        result[:0] = [1] * padding
        offset = len(result) - len(shape)
        for axis, dim in enumerate(shape):
            try:
                result[offset + axis] = broadcast_dim(result[offset + axis], dim)
            except ModelError as error:
                told = " and ".join(f"[{', '.join(map(str, dims))}]" for dims in shapes)
                raise ModelError(f"{error.what}: the shapes are {told}") from None
    return tuple(result)


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front; raises ModelError where it is outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise ModelError(f"{what} is {axis}, expected {-rank}..{rank - 1} for rank {rank}")
    return axis + rank if axis < 0 else axis


def product(dims: Dims) -> DimLike:
    """The number of elements."""
    total: DimLike = 1
    for dim in dims:
        total = dim * total
    return total
