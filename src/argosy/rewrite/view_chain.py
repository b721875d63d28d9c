"""Chains of views, seen through: the value that holds the elements, and the map that reads them."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir import access
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, bounds, dim_min
from argosy.ir.module import Instruction, Value
from argosy.ir.types import Dims
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Broadcast, Reshape, Squeeze, Transpose, Unsqueeze

__all__ = ["ViewChain", "see_through", "view_access"]


@dataclass(frozen=True, slots=True)
class ViewChain:
    """`value` is read as `source` by `access`.

    Where the map's conditions do not hold, the element is that of the scalar `fill`, or zero where it is None.
    """

    value: Value
    source: Value
    access: Access
    fill: Value | None = None


def see_through(value: Value) -> ViewChain:
    """The longest chain of views that ends at `value` and has a map.

    Reads views in the form that the normalise phase leaves. A view that has none (a pad that repeats edges, a
    broadcast of an axis that may or may not be 1, a second padding with another value) counts as the source.
    The rank of `value` must be known.
    """
    chain = ViewChain(value, value, access.identity(value.shape))
    while True:
        instruction = chain.source.instruction
        step = view_access(instruction)
        operand = instruction.operands[0] if instruction.operands else None
        if step is None or operand is None:
            return chain
        fill = chain.fill
        if isinstance(instruction.op, Pad) and step.conditions:
            fill = instruction.operands[2] if len(instruction.operands) > 2 else None
            if chain.access.conditions and fill != chain.fill:
                return chain
        chain = ViewChain(value, operand, chain.access.compose(step), fill)


def view_access(instruction: Instruction) -> Access | None:
    """The map of one view, None where the instruction is none or its map is not known."""
    if not instruction.operands or instruction.operands[0] is None or len(instruction.types) != 1:
        return None
    x, result = instruction.operands[0], instruction.result()
    if x.tensor.dims is None or result.tensor.dims is None:
        return None
    match instruction.op:
        case Reshape() | Squeeze() | Unsqueeze():
            return access.reshape(x.shape, result.shape)
        case Transpose(permutation=order):
            return access.transpose(x.shape, order if order is not None else tuple(reversed(range(x.rank))))
        case Broadcast():
            return access.broadcast(x.shape, result.shape)
        case Slice() as part:
            return _slice_access(part, x.shape, result.shape)
        case Pad(mode="constant", pads=pads, axes=None) if pads is not None:
            return access.pad(x.shape, result.shape, pads[: x.rank])
    return None


def _slice_access(part: Slice, source: Dims, result: Dims) -> Access | None:
    if part.starts is None or part.axes is None or part.steps is None or part.ends is None:
        return None
    starts: list[DimLike] = [0] * len(source)
    steps = [1] * len(source)
    for axis, start, step in zip(part.axes, part.starts, part.steps, strict=True):
        first = _first_place(start, step, source[axis])
        if first is None:
            return None
        starts[axis], steps[axis] = first, step
    return access.slice_by(source, result, starts, steps)


def _first_place(start: DimLike, step: int, size: DimLike) -> DimLike | None:
    """Where a slice begins, counted from the front and clamped as Slice does; None where its sign is unknown."""
    low, high = bounds(start)
    if high is not None and high < 0:
        start = start + size
        low = bounds(start)[0]
    if low is None or low < 0:
        return None
    return dim_min(start, size if step > 0 else size - 1)
