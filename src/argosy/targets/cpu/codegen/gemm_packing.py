"""Packing the operands of tiled matrix products, and when the left one need not be."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.copying import (
    copy_block,
    copy_run,
    decompose,
    is_view,
    lies_along,
    share,
    transpose_text,
)
from argosy.targets.cpu.codegen.gemm import Gemm
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.part import part_of
from argosy.targets.cpu.codegen.short_panels import pack_groups
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import KINDS, VectorElements
from argosy.targets.cpu.codegen.walking import coefficient, merged_extents
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["direct_step", "left_type", "pack_left", "pack_right", "right_type"]

_SETS: Final = 64
_WAYS: Final = 4
"""Lines of a tile's rows that may share a set of the first cache, of the 8 that it has at least."""


def left_type(gemm: Gemm) -> TensorType:
    """The packed left operand."""
    return TensorType(gemm.products.left, (*gemm.left_batch, gemm.blocks, gemm.rows, gemm.pitch))


def right_type(gemm: Gemm) -> TensorType:
    """The packed right operand."""
    return TensorType(gemm.products.right, (*gemm.right.shape[:-2], gemm.panels, gemm.panel_rows, gemm.panel_row))


def pack_left(module: Module, gemm: Gemm) -> Kernel:
    """The left operand in blocks of the depth, a row at a time; what lies behind the last number of a row is unused."""
    left, kind = gemm.left, gemm.products.left
    writer = KernelWriter(module, [kind])
    text = writer.text
    lead = left.shape[:-1]
    total = product(lead)
    depth, rows, blocks = text.dim(gemm.depth), text.dim(gemm.rows), text.dim(gemm.blocks)
    with share(writer, "row", total):
        decompose(text, "row", lead)
        with text.loop("block", "0", blocks):
            text.line(f"const int64 first = block * {gemm.block}, end = min_int64(first + {gemm.block}, {depth});")
            place = f"((row / {rows} * {blocks} + block) * {rows} + row % {rows}) * {gemm.pitch}"
            text.line(f"{scalar.storage_type(kind)} *restrict to = y0 + {place};")
            with text.block(f"for (int64 k = first; k < end; k += {BLOCK}, to += {BLOCK})"):
                copy_run(writer, left, left.rank - 1, "k", "(end - k)", "to", kind)
                if gemm.products.flip:
                    text.line(f"for (int64 lane = 0; lane < {BLOCK}; ++lane) to[lane] ^= 0x80;")
    return writer.kernel(chunk_count(product(left.shape), total))


def pack_right(module: Module, gemm: Gemm) -> Kernel:
    """The right operand in panels, a panel at a time; columns beyond the last are zeros."""
    if gemm.products.group > 1:
        return pack_groups(module, gemm.right, gemm.products, gemm.tile, gemm.depth)
    right, width, vectors = gemm.right, gemm.tile.columns, gemm.tile.vectors
    writer = KernelWriter(module, [gemm.sums])
    text = writer.text
    lead = right.shape[:-2]
    total = product(lead) * gemm.panels
    along, across = right.rank - 2, right.rank - 1
    row = axis_name(along)
    depth, columns, panels = (text.dim(size) for size in (gemm.depth, gemm.columns, gemm.panels))
    turned = gemm.sums is FLOAT32 and lies_along(module, right, along)
    with share(writer, "panel", total):
        text.line(f"const int64 first = panel % {panels} * {width};")
        decompose(text, f"panel / {panels}", lead)
        text.line(f"{gemm.sums} *restrict to = y0 + panel * {depth} * {width};")
        begin = "0"
        if turned:
            begin = "done"
            text.line(f"const int64 done = first + {width} <= {columns} ? {depth} / {BLOCK} * {BLOCK} : 0;")
            with text.block(f"for (int64 {row} = 0; {row} < done; {row} += {BLOCK})"):
                for vector in range(vectors):
                    place = f"to + {row} * {width} + {vector * BLOCK}"
                    copy_block(writer, right, along, across, f"(first + {vector * BLOCK})", place, width)
        with text.loop(row, begin, depth):
            for vector in range(vectors):
                column = f"(first + {vector * BLOCK})"
                place = f"to + {row} * {width} + {vector * BLOCK}"
                copy_run(writer, right, across, column, f"({columns} - {column})", place, gemm.sums)
    kernel = writer.kernel(chunk_count(product(right.shape), total))
    return replace(kernel, text=transpose_text("float32") + kernel.text) if turned else kernel


def direct_step(module: Module, gemm: Gemm) -> int | None:
    """How far apart the rows of the left operand lie where it can be read as it is; None where it must be packed.

    That is a constant distance at which the rows of a tile do not crowd the same sets of the cache.
    """
    left = gemm.left
    along = left.rank - 1
    part = part_of(module, [left]).module
    kind, group = gemm.products.left, gemm.products.group
    if left.dtype is not kind or kind not in KINDS or not is_view(part) or gemm.products.flip:
        return None
    if group > 1 and not (isinstance(gemm.depth, int) and gemm.depth % group == 0):
        return None  # the last group would reach beyond the row
    elements = VectorElements(KernelWriter(part, [kind]).text, dict.fromkeys(part.parameters, "x"), along)
    try:
        elements.of(left, maps.identity(left.shape))
    except DeclinedError:
        return None
    if any(coefficient(offset, along) != 1 for offset in elements.offsets):
        return None
    if left.rank == 1:
        return 0
    merged = merged_extents(left.shape[:along], elements.offsets)
    if gemm.folded and not all(isinstance(size, int) and size == 1 for size in merged[:-1]):
        return None
    step = coefficient(elements.offsets[0], along - 1) if len(elements.offsets) == 1 else None
    if not isinstance(step, int):
        return None
    rows = min(gemm.rows, gemm.tile.rows) if isinstance(gemm.rows, int) else gemm.tile.rows
    lines = [row * step * kind.bits // 8 // 64 % _SETS for row in range(rows)]
    return step if max((lines.count(line) for line in lines), default=0) <= _WAYS else None
