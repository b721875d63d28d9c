"""Products: tiles of the result, summed over steps of the inner axis by `tl.dot`, which uses matrix instructions.

Both operands are elements like all others, so that whatever makes them is computed while a tile is loaded; what takes
the result is computed on the tile before it is stored. Element types without matrix instructions are summed by outer
products of columns and rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.module import Instruction, Module
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.coded import CodedRight
from argosy.targets.gpu.codegen.coded_step import coded_step
from argosy.targets.gpu.codegen.dot_shape import operand_access, shape_of
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.operands import MatrixWay, multiply
from argosy.targets.gpu.codegen.summing import Tile, finish, part_range
from argosy.targets.lowering.accesses import DeclinedError, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["dot_kernel"]

Order = tuple[int, ...] | None


def dot_kernel(
    module: Module,
    anchor: Instruction,
    orders: Sequence[Order],
    order: Order,
    tile: Tile,
    way: MatrixWay | None,
    weights: Sequence[bool] = (),
    *,
    coded: CodedRight | None = None,
    tf32: bool = False,
) -> Kernel:
    """The kernel of a module whose anchor is a `dot`, multiplied in some way, or by hand.

    `weights` says which parameters are the same in every run. Where the right operand is `coded`, the buffer of the
    codes holds them packed, and a step is a unit of it.
    """
    left, right, result = present(anchor, 0), present(anchor, 1), anchor.result()
    shape = shape_of(anchor)
    sums = way.sums if way else result.dtype.compute
    writer = KernelWriter(module, orders, (order,), (sums,) if tile.splits > 1 else ())
    text, elements = writer.text, writer.elements
    high, wide, deep = tile.rows, tile.columns, tile.inner
    down, across, batch = ceildiv(shape.rows, high), ceildiv(shape.columns, wide), product(shape.batch)
    pid = number = writer.program()
    _grouped(writer, pid, down, across, tile.group)
    if shape.batch:
        lead = writer.program(1)
        decompose(writer, lead, shape.batch)
        number = f"{lead} * {text.dim(across * down if isinstance(down, int) else down * across)} + {pid}"
    row = axis_name(shape.row_axis) if shape.row_axis is not None else "row"
    column = axis_name(shape.column_axis) if shape.column_axis is not None else "column"
    writer.lanes = (row, column)
    _range(writer, row, "down", high, "[:, None]", shape.rows)
    _range(writer, column, "across", wide, "[None, :]", shape.columns)
    step = coded.unit if coded else deep if way else 1
    count = ceildiv(shape.inner, step)
    base = ""
    if isinstance(count, int):
        count, base = part_range(writer, count, tile)
    mark = text.mark()
    text.line(f"acc = tl.zeros([{high}, {wide}], {scalar.compute_type(sums)})")
    once = isinstance(count, int) and count == 1 and tile.splits == 1
    loop = contextlib.nullcontext() if once else text.block(f"for step in range(0, {text.dim(count)}):")
    with loop, elements.scope():
        if not once:
            text.line(f"start = ({base}step) * {step}" if base else f"start = step * {step}")
        unit = "0" if once else f"{base}step"
        base = "" if once else "start + "
        if way and coded:
            coded_step(writer, anchor, coded, way, tile, (row, column), unit, tf32=tf32)
        elif way:
            _range(writer, "ka", base, deep, "[None, :]", shape.inner, counted=True)
            a_mask = "" if _fills(shape.inner, deep) else "ka_inside"
            at = operand_access(left, shape, result, "ka", left=True)
            a = way.tile(elements, 0, left, at, (high, deep), a_mask, (row, "ka"))
            _range(writer, "kb", base, deep, "[:, None]", shape.inner, counted=True)
            b_mask = "" if _fills(shape.inner, deep) else "kb_inside"
            at = operand_access(right, shape, result, "kb", left=False)
            b = way.tile(elements, 1, right, at, (deep, wide), b_mask, ("kb", column))
            text.line(f"acc = {multiply(a, b, 'acc', way, deep, tf32=tf32)}")
        else:
            step_name = "0" if once else "start"
            text.derive("ka", step_name)
            text.derive("kb", step_name)
            a = elements.of(left, operand_access(left, shape, result, "ka", left=True))
            b = elements.of(right, operand_access(right, shape, result, "kb", left=False))
            own = scalar.compute_type(sums)
            text.line(f"acc += {a}.to({own}) * {b}.to({own})")
    finish(writer, mark, tile, sums, result, number, weights)
    tiles = down * across if not isinstance(across, int) else across * down
    counters = 0
    if tile.splits > 1:
        if not isinstance(tiles, int) or not isinstance(batch, int) or not isinstance(count, int):
            raise DeclinedError("a product of symbolic sizes is not split")
        counters = tiles * batch
    grid = (tiles, batch, tile.splits)
    return writer.kernel(Launch(grid, tile.warps, tile.stages if way else 1), counters=counters)


def _grouped(writer: KernelWriter, pid: str, down: DimLike, across: DimLike, group: int) -> None:
    """Which tile a program makes: some rows of tiles at a time, whose operands are then in the cache."""
    text = writer.text
    if down == 1 or across == 1:
        text.line(f"down = {pid if across == 1 else 0}")
        text.line(f"across = {0 if across == 1 else pid}")
        return
    rows, columns = text.dim(down), text.dim(across)
    text.line(f"first = {pid} // ({group} * {columns}) * {group}")
    text.line(f"high = tl.minimum({rows} - first, {group})")
    text.line(f"down = first + {pid} % ({group} * {columns}) % high")
    text.line(f"across = {pid} % ({group} * {columns}) // high")


def _range(
    writer: KernelWriter, name: str, start: str, size: int, along: str, extent: DimLike, *, counted: bool = False
) -> None:
    """A block variable over `extent`, from tile `start` or from the place `start` itself; masked at the end."""
    text = writer.text
    base = start if counted else f"{start} * {size} + "
    text.root(name, f"{base}tl.arange(0, {size}){along}")
    if not _fills(extent, size):
        text.line(f"{name}_inside = {name} < {text.dim(extent)}")
        writer.elements.masks.append((f"{name}_inside", text.roots[name]))


def _fills(extent: DimLike, size: int) -> bool:
    """Whether tiles of a size fill an axis."""
    return isinstance(extent, int) and extent % size == 0
