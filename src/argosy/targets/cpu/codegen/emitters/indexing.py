"""Emitters of the ops that choose elements by index, and of those that make indices."""

from __future__ import annotations

import dataclasses

from argosy.ir import dim as dims
from argosy.ir.access import Access, axis_index
from argosy.ir.access import pad as pad_map
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction
from argosy.ops.dim_values import DimValues
from argosy.ops.index import Gather, GatherElements, GatherND, OneHot, Triangle
from argosy.ops.shapes import normalize_axis
from argosy.ops.slicing import Pad
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.element import DeclinedError, Elements, axes_access, element, op_of, present


def _axes(shape: tuple[DimLike, ...]) -> list[DimLike]:
    return [axis_index(axis, extent) for axis, extent in enumerate(shape)]


@element("tile")
def _tile(elements: Elements, instruction: Instruction, access: Access) -> str:
    x, result = present(instruction, 0), instruction.result()
    indices = [
        0 if isinstance(size, int) and size == 1 else dims.mod(index, size)
        for index, size in zip(_axes(result.shape), x.shape, strict=True)
    ]
    return elements.of(x, elements.compose(access, axes_access(result.shape, x.shape, indices)))


@element("gather")
def _gather(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Gather)
    data, where, result = present(instruction, 0), present(instruction, 1), instruction.result()
    axis = normalize_axis(op.axis, data.rank)
    axes = _axes(result.shape)
    inner = axes_access(result.shape, where.shape, axes[axis : axis + where.rank])
    place = elements.index(where, elements.compose(access, inner), data.shape[axis])
    indices = [*axes[:axis], place, *axes[axis + where.rank :]]
    return elements.of(data, elements.compose(access, axes_access(result.shape, data.shape, indices)))


@element("gather_elements")
def _gather_elements(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, GatherElements)
    data, where, result = present(instruction, 0), present(instruction, 1), instruction.result()
    axis = normalize_axis(op.axis, data.rank)
    axes = _axes(result.shape)
    axes[axis] = elements.index(where, access, data.shape[axis])
    return elements.of(data, elements.compose(access, axes_access(result.shape, data.shape, axes)))


@element("gather_nd")
def _gather_nd(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, GatherND)
    data, where, result = present(instruction, 0), present(instruction, 1), instruction.result()
    depth = where.shape[-1]
    if not isinstance(depth, int):
        raise DeclinedError("the depth of the indices is symbolic")
    axes = _axes(result.shape)
    lead = axes[: where.rank - 1]
    places = []
    for level in range(depth):
        inner = axes_access(result.shape, where.shape, [*lead, level])
        size = data.shape[op.batch_dims + level]
        places.append(elements.index(where, elements.compose(access, inner), size))
    indices = [*axes[: op.batch_dims], *places, *axes[where.rank - 1 :]]
    return elements.of(data, elements.compose(access, axes_access(result.shape, data.shape, indices)))


@element("one_hot")
def _one_hot(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, OneHot)
    where, values, result = present(instruction, 0), present(instruction, 2), instruction.result()
    axis = normalize_axis(op.axis, result.rank)
    axes = _axes(result.shape)
    inner = axes_access(result.shape, where.shape, [*axes[:axis], *axes[axis + 1 :]])
    raw = elements.of(where, elements.compose(access, inner))
    depth, place = elements.text.dim(result.shape[axis]), elements.position(access.indices[axis])
    if where.dtype.is_float:
        raise DeclinedError("one_hot over float indices")
    hit = f"((int64){raw} + ((int64){raw} < 0 ? {depth} : 0)) == {place}"
    off = elements.of(values, axes_access(access.extents, values.shape, [0]))
    on = elements.of(values, axes_access(access.extents, values.shape, [1]))
    return elements.let(result.dtype, f"({hit}) ? {on} : {off}")


@element("range")
def _range(elements: Elements, instruction: Instruction, access: Access) -> str:
    result = instruction.result()
    start, delta = (elements.of(present(instruction, i), axes_access(access.extents, (), [])) for i in (0, 2))
    place = elements.position(access.indices[0])
    ctype = scalar.compute_type(result.dtype)
    return elements.let(result.dtype, f"({ctype})({start} + ({ctype}){place} * {delta})")


@element("dims")
def _dims(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, DimValues)
    if op.scalar:
        return elements.number(op.values[0])
    place = elements.position(access.indices[0])
    chain = elements.text.dim(op.values[-1])
    for number in range(len(op.values) - 2, -1, -1):
        chain = f"({place} == {number} ? {elements.text.dim(op.values[number])} : {chain})"
    return elements.let(instruction.result().dtype, chain)


@element("triangle")
def _triangle(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Triangle)
    x = present(instruction, 0)
    k = "0"
    if len(instruction.operands) > 1 and instruction.operands[1] is not None:
        by = instruction.operands[1]
        k = elements.of(by, axes_access(access.extents, by.shape, [0] * by.rank))
    row, column = (elements.position(index) for index in access.indices[-2:])
    kept = f"{column} - {row} {'>=' if op.upper else '<='} {k}"
    return elements.let(x.dtype, f"({kept}) ? {elements.of(x, access)} : {scalar.constant(0, x.dtype)}")


@element("pad")
def _pad(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Pad)
    x, result = present(instruction, 0), instruction.result()
    if op.pads is None or op.axes is not None:
        raise DeclinedError("the pads are known only when the program runs")
    before = op.pads[: x.rank]
    if op.mode == "constant":
        return _constant_pad(elements, instruction, access, pad_map(x.shape, result.shape, before))
    indices: list[DimLike] = []
    for index, amount, size in zip(_axes(result.shape), before, x.shape, strict=True):
        indices.append(_folded(op.mode, index - amount, amount, size))
    return elements.of(x, elements.compose(access, axes_access(result.shape, x.shape, indices)))


def _folded(mode: str, place: DimLike, before: DimLike, size: DimLike) -> DimLike:
    if isinstance(before, int) and before == 0 and mode == "constant":
        return place
    if mode == "edge":
        return dims.dim_max(dims.dim_min(place, size - 1), 0)
    if mode == "wrap":
        return dims.mod(place, size)
    if mode == "reflect":
        if isinstance(size, int) and size == 1:
            return 0
        period = size * 2 - 2 if isinstance(size, int) else (size - 1) * 2
        folded = dims.mod(place, period)
        return dims.dim_min(folded, period - folded)
    raise DeclinedError(f"pad mode {mode}")


def _constant_pad(elements: Elements, instruction: Instruction, access: Access, step: Access) -> str:
    """`inside ? x : fill`, without a read outside."""
    x = present(instruction, 0)
    place = elements.compose(access, step)
    if not place.conditions:
        return elements.of(x, place)
    fill = scalar.constant(0, x.dtype)
    value = instruction.operands[2] if len(instruction.operands) > 2 else None
    if value is not None:
        fill = elements.of(value, axes_access(access.extents, value.shape, [0] * value.rank))
    name = elements.text.fresh()
    elements.text.line(f"{scalar.compute_type(x.dtype)} {name} = {fill};")
    at = elements.position
    checks = " && ".join(
        f"{at(each.lower)} <= {at(each.index)} && {at(each.index)} < {at(each.upper)}" for each in place.conditions
    )
    with elements.text.block(f"if ({checks})"), elements.scope():
        elements.text.line(f"{name} = {elements.of(x, dataclasses.replace(place, conditions=()))};")
    return name
