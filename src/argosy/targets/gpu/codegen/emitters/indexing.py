"""Emitters of the gathers: elements picked by the value of an index."""

from __future__ import annotations

from argosy.ir.access import Access, identity
from argosy.ir.module import Instruction
from argosy.ops.index import Gather, GatherElements, GatherND
from argosy.ops.shapes import normalize_axis
from argosy.targets.gpu.codegen.declined import DeclinedError
from argosy.targets.gpu.codegen.element import Elements, axes_access, element, op_of, present


@element("gather")
def _gather(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Gather)
    data, where, result = present(instruction, 0), present(instruction, 1), instruction.result()
    axis = normalize_axis(op.axis, data.rank)
    axes = list(identity(result.shape).indices)
    inner = axes_access(result.shape, where.shape, axes[axis : axis + where.rank])
    place = elements.index(where, elements.compose(access, inner), data.shape[axis])
    indices = [*axes[:axis], place, *axes[axis + where.rank :]]
    return elements.of(data, elements.compose(access, axes_access(result.shape, data.shape, indices)))


@element("gather_elements")
def _gather_elements(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, GatherElements)
    data, where, result = present(instruction, 0), present(instruction, 1), instruction.result()
    axis = normalize_axis(op.axis, data.rank)
    axes = list(identity(result.shape).indices)
    axes[axis] = elements.index(where, access, data.shape[axis])
    return elements.of(data, elements.compose(access, axes_access(result.shape, data.shape, axes)))


@element("gather_nd")
def _gather_nd(elements: Elements, instruction: Instruction, access: Access) -> str:
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
