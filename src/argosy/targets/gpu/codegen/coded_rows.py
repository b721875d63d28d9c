"""Few rows times weights in codes: each program sums some columns in registers, reading every byte of theirs once.

    sum over k of x[k] * (code[k] - zero) * scale = sum over stretches of scale * (sum in it of x[k] * (code[k] - zero))

A block is units by columns by the bytes of a unit. All is computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir.access import identity
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.blocks import power_of_two
from argosy.targets.gpu.codegen.coded import CodedRight
from argosy.targets.gpu.codegen.dot_shape import operand_access, shape_of
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.summing import Tile, finish
from argosy.targets.lowering.accesses import DeclinedError, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["RowsBlock", "coded_rows_kernel"]

Order = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class RowsBlock:
    """Columns of a program, units of a step, and warps."""

    columns: int
    units: int
    warps: int


def coded_rows_kernel(
    module: Module,
    anchor: Instruction,
    orders: Sequence[Order],
    order: Order,
    block: RowsBlock,
    coded: CodedRight,
    weights: Sequence[bool],
) -> Kernel:
    """The kernel of a `dot` of a fixed number of rows; the buffer of the codes holds them packed."""
    result, shape = anchor.result(), shape_of(anchor)
    rows = shape.rows
    if not isinstance(rows, int) or result.dtype.compute is not FLOAT32 or shape.column_axis is None:
        raise DeclinedError("the number of rows is symbolic")
    writer = KernelWriter(module, orders, (order,))
    text, elements = writer.text, writer.elements
    high, wide, deep = power_of_two(rows), block.columns, block.units
    pid = writer.program()
    if shape.batch:
        decompose(writer, writer.program(1), shape.batch)
    row = axis_name(shape.row_axis) if shape.row_axis is not None else "row"
    column = axis_name(shape.column_axis)
    writer.lanes = (row, column)
    ragged = coded.columns % wide != 0

    def root(name: str, expression: str, size: int, *, masked: bool) -> DimLike:
        text.root(name, expression)
        if masked:
            text.line(f"{name}_inside = {name} < {size}")
            elements.masks.append((f"{name}_inside", text.roots[name]))
        return symbol_dim(Symbol(f"@{name}", 0, size - 1)) if size > 1 else 0

    root(row, f"tl.arange(0, {high})[:, None]", rows, masked=high != rows)
    root(column, f"{pid} * {wide} + tl.arange(0, {wide})[None, :]", coded.columns, masked=ragged)
    mark = text.mark()
    for number in range(rows):
        text.line(f"total{number} = tl.zeros([{deep}, {wide}], tl.float32)")
    pointer, space = elements.pointers[coded.codes.instruction], identity(result.shape)
    masks = len(elements.masks)
    with text.block(f"for step in range(0, {coded.units}, {deep}):"), elements.scope():
        # Places of a block of bytes, and of the stretches that they are.
        partial = coded.units % deep != 0
        unit = root("u", f"step + tl.arange(0, {deep})[:, None, None]", coded.units, masked=partial)
        own = root("n", f"{pid} * {wide} + tl.arange(0, {wide})[None, :, None]", coded.columns, masked=ragged)
        flat_unit = root("v", f"step + tl.arange(0, {deep})[:, None]", coded.units, masked=partial)
        flat_own = root("o", f"{pid} * {wide} + tl.arange(0, {wide})[None, :]", coded.columns, masked=ragged)
        text.root("j", f"tl.arange(0, {coded.stretch})[None, None, :]")
        mask = elements.mask_for(frozenset("un"))
        masked = f", mask={mask}, other=0" if mask else ""
        at = f"{pointer} + (u * {coded.columns} + n) * {coded.stretch} + j"
        byte = text.let(f"tl.load({at}{masked}).to(tl.int32) & 255")
        for plane in range(coded.planes):
            with elements.scope():
                start = unit * coded.unit + plane * coded.stretch
                zero = coded.zero_point(elements, space, start, own)
                text.line(f"w = {coded.numbers(byte, plane, zero)}")
                scale = coded.parameter(
                    elements, coded.scale, space, flat_unit * coded.unit + plane * coded.stretch, flat_own
                )
                _add(writer, coded, anchor, plane, scale, rows)
    del elements.masks[masks:]
    text.line(f"acc = tl.zeros([{high}, {wide}], tl.float32)")
    for number in range(rows):
        sums = f"tl.sum(total{number}, 0)[None, :]"
        text.line(f"acc = tl.where({row} == {number}, {sums}, acc)" if rows > 1 else f"acc = acc + {sums}")
    finish(writer, mark, Tile(high, wide, coded.unit, block.warps), FLOAT32, result, pid, weights)
    grid = (ceildiv(coded.columns, wide), product(shape.batch), 1)
    return writer.kernel(Launch(grid, block.warps))


def _add(writer: KernelWriter, coded: CodedRight, anchor: Instruction, plane: int, scale: str, rows: int) -> None:
    """Add the products of a plane of codes, in `w`, to the sums of all rows."""
    text, elements = writer.text, writer.elements
    left, result, shape = present(anchor, 0), anchor.result(), shape_of(anchor)
    masks, step = len(elements.masks), plane * coded.stretch
    # Over columns too, though none depends on them: each thread then loads what it multiplies, and moves nothing.
    text.root("k", f"u * {coded.unit} + {step} + j + n * 0")
    ragged = coded.depth % coded.unit or any(name == "u_inside" for name, _ in elements.masks)
    if ragged:
        text.line(f"k_inside = k < {coded.depth}")
        elements.masks.append(("k_inside", text.roots["k"]))
    for number in range(rows):
        x = elements.of(left, operand_access(left, shape, result, "k", left=True, row=number))
        x = f"tl.where(k_inside, {x}, 0.0)" if ragged else x
        text.line(f"total{number} += tl.sum({x} * w, 2) * {scale}")
    del elements.masks[masks:]
