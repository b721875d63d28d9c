"""A step of a tiled product whose right operand lies in codes: one load of bytes, a product for each plane of codes."""

from __future__ import annotations

from argosy.ir.access import axis_index, identity
from argosy.ir.dim import Symbol, symbol_dim
from argosy.ir.module import Instruction
from argosy.targets.gpu.codegen.coded import CodedRight
from argosy.targets.gpu.codegen.dot_shape import operand_access, shape_of
from argosy.targets.gpu.codegen.kernel import KernelWriter
from argosy.targets.gpu.codegen.operands import MatrixWay, multiply
from argosy.targets.gpu.codegen.summing import Tile
from argosy.targets.lowering.accesses import DeclinedError, present

__all__ = ["coded_step"]


def coded_step(
    writer: KernelWriter, anchor: Instruction, coded: CodedRight, way: MatrixWay, tile: Tile, lanes: tuple[str, str],
    unit: str, *, tf32: bool,
) -> None:  # fmt: skip
    """Add the products of unit `unit` of a `dot` to `acc`; `lanes` are the variables of its rows and columns."""
    text, elements = writer.text, writer.elements
    left, result, shape = present(anchor, 0), anchor.result(), shape_of(anchor)
    if shape.column_axis is None:
        raise DeclinedError("the right operand is a vector")
    row, column = lanes
    stretch, space = coded.stretch, identity(result.shape)
    text.derive("u", unit)
    number = symbol_dim(Symbol("@u", 0, coded.units - 1)) if coded.units > 1 else 0
    own = axis_index(shape.column_axis, coded.columns)
    text.root("j", f"tl.arange(0, {stretch})[:, None]")
    mask = elements.mask_for(text.roots[column])
    masked = f", mask={mask}, other=0" if mask else ""
    pointer = elements.pointers[coded.codes.instruction]
    at = f"{pointer} + (u * {coded.columns} + {column}) * {stretch} + j"
    byte = text.let(f"tl.load({at}{masked}).to(tl.int32) & 255")
    for plane in range(coded.planes):
        masks = len(elements.masks)
        with elements.scope():
            start = number * coded.unit + plane * stretch
            zero = coded.zero_point(elements, space, start, own)
            scale = coded.parameter(elements, coded.scale, space, start, own)
            weights = text.let(f"({coded.numbers(byte, plane, zero)}) * {scale}")
            text.root("ka", f"u * {coded.unit} + {plane * stretch} + tl.arange(0, {stretch})[None, :]")
            inside = "ka_inside" if coded.depth % coded.unit else ""
            if inside:
                text.line(f"ka_inside = ka < {coded.depth}")
                elements.masks.append((inside, text.roots["ka"]))
            place = operand_access(left, shape, result, "ka", left=True)
            a = way.tile(elements, 0, left, place, (tile.rows, stretch), inside, (row, "ka"))
            b = f"tl.broadcast_to({weights}, [{stretch}, {tile.columns}]).to(tl.{way.types[1]})"
            text.line(f"acc = {multiply(a, b, 'acc', way, stretch, tf32=tf32)}")
            del elements.masks[masks:]
