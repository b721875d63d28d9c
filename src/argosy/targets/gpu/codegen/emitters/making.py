"""Emitters of ops that make elements out of their places: one_hot, range, dims, triangle."""

from __future__ import annotations

from argosy.ir.access import Access, identity
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction
from argosy.ops.dim_values import DimValues
from argosy.ops.index import OneHot, Triangle
from argosy.ops.shapes import normalize_axis
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements, element
from argosy.targets.lowering.accesses import axes_access, op_of, present


@element("one_hot")
def _one_hot(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, OneHot)
    where, values, result = present(instruction, 0), present(instruction, 2), instruction.result()
    axis = normalize_axis(op.axis, result.rank)
    axes = list(identity(result.shape).indices)
    inner = axes_access(result.shape, where.shape, [*axes[:axis], *axes[axis + 1 :]])
    raw = elements.of(where, elements.compose(access, inner))
    depth, place = elements.text.dim(result.shape[axis]), elements.text.dim(access.indices[axis])
    index = elements.let(scalar.apply("convert", [raw], [where.dtype], INT64))
    hit = f"tl.where({index} < 0, {index} + {depth}, {index}) == {place}"
    off = elements.of(values, axes_access(access.extents, values.shape, [0]))
    on = elements.of(values, axes_access(access.extents, values.shape, [1]))
    return elements.let(f"tl.where({hit}, {on}, {off})")


@element("range")
def _range(elements: Elements, instruction: Instruction, access: Access) -> str:
    result = instruction.result()
    start, delta = (elements.of(present(instruction, i), axes_access(access.extents, (), [])) for i in (0, 2))
    place = elements.text.dim(access.indices[0])
    kind = result.dtype
    counted = elements.let(f"({place} + tl.zeros([1], tl.int64)).to({scalar.compute_type(kind)})")
    moved = elements.let(scalar.apply("mul", [counted, delta], [kind, kind], kind))
    return elements.let(scalar.apply("add", [start, moved], [kind, kind], kind))


@element("dims")
def _dims(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, DimValues)
    if op.scalar:
        return elements.let(f"({elements.text.dim(op.values[0])} + tl.zeros([1], tl.int64))")
    place = elements.text.dim(access.indices[0])
    chain = elements.text.dim(op.values[-1])
    for number in range(len(op.values) - 2, -1, -1):
        chain = f"tl.where({place} == {number}, {elements.text.dim(op.values[number])}, {chain})"
    return elements.let(f"({chain} + tl.zeros([1], tl.int64))")


@element("triangle")
def _triangle(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Triangle)
    x = present(instruction, 0)
    k = "0"
    if len(instruction.operands) > 1 and instruction.operands[1] is not None:
        by = instruction.operands[1]
        k = elements.of(by, axes_access(access.extents, by.shape, [0] * by.rank))
    row, column = (elements.text.dim(index) for index in access.indices[-2:])
    kept = f"{column} - {row} {'>=' if op.upper else '<='} {k}"
    return elements.let(f"tl.where({kept}, {elements.of(x, access)}, {scalar.constant(0, x.dtype)})")
