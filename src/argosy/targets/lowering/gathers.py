"""Gathers: elements picked by the value of an index, in whatever language the elements are written."""

from __future__ import annotations

from typing import Protocol

from argosy.ir.access import Access, identity
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction, Value
from argosy.ops.index import Gather, GatherElements, GatherND
from argosy.ops.shapes import normalize_axis
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present

__all__ = ["Elements", "gather", "gather_elements", "gather_nd"]


class Elements(Protocol):
    """What writes elements of a kernel."""

    def of(self, value: Value, access: Access) -> str:
        """The variable with the elements of `value` at `access`."""
        ...

    def compose(self, outer: Access, inner: Access) -> Access:
        """The access of an operand, from the access of the result and the op's own map."""
        ...

    def index(self, value: Value, access: Access, size: DimLike) -> DimLike:
        """An integer element as an index into an axis of `size`; negative ones count from the end."""
        ...


def gather(elements: Elements, instruction: Instruction, access: Access) -> str:
    """Elements of whole slices, by an index along one axis."""
    op = op_of(instruction, Gather)
    data, where, result = present(instruction, 0), present(instruction, 1), instruction.result()
    axis = normalize_axis(op.axis, data.rank)
    axes = list(identity(result.shape).indices)
    inner = axes_access(result.shape, where.shape, axes[axis : axis + where.rank])
    place = elements.index(where, elements.compose(access, inner), data.shape[axis])
    indices = [*axes[:axis], place, *axes[axis + where.rank :]]
    return elements.of(data, elements.compose(access, axes_access(result.shape, data.shape, indices)))


def gather_elements(elements: Elements, instruction: Instruction, access: Access) -> str:
    """Elements by an index for each."""
    op = op_of(instruction, GatherElements)
    data, where, result = present(instruction, 0), present(instruction, 1), instruction.result()
    axis = normalize_axis(op.axis, data.rank)
    axes = list(identity(result.shape).indices)
    axes[axis] = elements.index(where, access, data.shape[axis])
    return elements.of(data, elements.compose(access, axes_access(result.shape, data.shape, axes)))


def gather_nd(elements: Elements, instruction: Instruction, access: Access) -> str:
    """Elements by a tuple of indices for each slice."""
    op = op_of(instruction, GatherND)
    data, where, result = present(instruction, 0), present(instruction, 1), instruction.result()
    depth = where.shape[-1]
    if not isinstance(depth, int):
        raise DeclinedError("the depth of the indices is symbolic")
    axes = list(identity(result.shape).indices)
    lead = axes[: where.rank - 1]
    places = []
    for level in range(depth):
        inner = axes_access(result.shape, where.shape, [*lead, level])
        size = data.shape[op.batch_dims + level]
        places.append(elements.index(where, elements.compose(access, inner), size))
    indices = [*axes[: op.batch_dims], *places, *axes[where.rank - 1 :]]
    return elements.of(data, elements.compose(access, axes_access(result.shape, data.shape, indices)))
