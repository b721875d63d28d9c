"""Tiled matrix products: both operands packed, then a loop over panels and tiles.

The right operand is packed into panels `[batch][panels][depth][columns]`, zeros beyond the end; the left one
into blocks `[batch][depth / 16][rows][16]`, where the rows of a tile lie side by side and never at a multiple of
4 KiB, which would throw each other out of the first cache. A left operand whose rows lie well is read as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import Dim, DimLike, ceildiv, floordiv
from argosy.ir.dtype import FLOAT32, DType
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.c_text import CText, axis_name
from argosy.targets.cpu.codegen.copying import (
    TRANSPOSE,
    address,
    copy_block,
    copy_run,
    decompose,
    is_view,
    lies_along,
    share,
)
from argosy.targets.cpu.codegen.element import present
from argosy.targets.cpu.codegen.epilogue import Epilogue
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.loops import coefficient, merged_extents
from argosy.targets.cpu.codegen.part import part_of
from argosy.targets.cpu.codegen.product_loops import operand_index
from argosy.targets.cpu.codegen.tile import BLOCK, Depth, Tile, balanced, depth_of, micro_function, vector_type
from argosy.targets.cpu.codegen.vector_elements import VectorElements

__all__ = ["Gemm", "direct_step", "gemm_kernel", "left_type", "pack_left", "pack_right", "right_type"]

_SETS: Final = 64
_WAYS: Final = 4
"""Lines of a tile's rows that may share a set of the first cache, of the 8 that it has at least."""


@dataclass(frozen=True, slots=True)
class Gemm:
    """A dot as a matrix product: `rows` axes of the result that are walked as rows, the batch before them."""

    anchor: Instruction
    tile: Tile

    @property
    def left(self) -> Value:
        """The operand whose rows are rows of the result."""
        return present(self.anchor, 0)

    @property
    def right(self) -> Value:
        """The operand whose columns are columns of the result."""
        return present(self.anchor, 1)

    @property
    def result(self) -> Value:
        """The product."""
        return self.anchor.result()

    @property
    def sums(self) -> DType:
        """The type of the sums."""
        return self.result.dtype.compute

    @property
    def folded(self) -> bool:
        """Whether the batch of the left operand is more rows, for the right one has no batch."""
        return self.right.rank == 2

    @property
    def batch_axes(self) -> int:
        """Leading axes of the result that are batch."""
        return 0 if self.folded else self.result.rank - min(self.left.rank, 2)

    @property
    def row_shape(self) -> tuple[DimLike, ...]:
        """The axes of the result that are rows; none for a vector times a matrix."""
        return self.result.shape[self.batch_axes : -1] if self.left.rank > 1 else ()

    @property
    def rows(self) -> DimLike:
        """Rows of one product of the batch."""
        return product(self.row_shape)

    @property
    def depth(self) -> DimLike:
        """Numbers to a sum: a number where either operand tells, so that packed weights have a known size."""
        return self.right.shape[-2] if isinstance(self.right.shape[-2], int) else self.left.shape[-1]

    @property
    def columns(self) -> DimLike:
        """Columns of the result."""
        return self.right.shape[-1]

    @property
    def panels(self) -> DimLike:
        """Panels of the right operand."""
        return ceildiv(self.columns, self.tile.columns)

    @property
    def pitch(self) -> DimLike:
        """Rows from one block of the packed left operand to the next."""
        if isinstance(self.rows, Dim):
            return floordiv(self.rows, 2) * 2 + 1
        return self.rows + (self.rows % _SETS == 0)

    @property
    def left_batch(self) -> tuple[DimLike, ...]:
        """Batch axes of the left operand."""
        return () if self.folded else self.left.shape[:-2]


def left_type(gemm: Gemm) -> TensorType:
    """The packed left operand."""
    return TensorType(gemm.sums, (*gemm.left_batch, ceildiv(gemm.depth, BLOCK), gemm.pitch, BLOCK))


def right_type(gemm: Gemm) -> TensorType:
    """The packed right operand."""
    return TensorType(gemm.sums, (*gemm.right.shape[:-2], gemm.panels, gemm.depth, gemm.tile.columns))


def pack_left(module: Module, gemm: Gemm) -> Kernel:
    """The left operand in blocks, a row at a time; behind the last number of a row are zeros."""
    left = gemm.left
    writer = KernelWriter(module, [gemm.sums])
    text = writer.text
    lead = left.shape[:-1]
    total = product(lead)
    depth, rows = text.dim(gemm.depth), text.dim(gemm.rows)
    blocks, pitch = text.dim(ceildiv(gemm.depth, BLOCK)), text.dim(gemm.pitch)
    with share(writer, "row", total):
        decompose(text, "row", lead)
        place = f"(row / {rows} * {blocks} * {pitch} + row % {rows}) * {BLOCK}"
        text.line(f"{gemm.sums} *restrict to = y0 + {place};")
        with text.block(f"for (int64 k = 0; k < {depth}; k += {BLOCK}, to += {pitch} * {BLOCK})"):
            copy_run(writer, left, left.rank - 1, "k", f"({depth} - k)", "to", gemm.sums)
    return writer.kernel(chunk_count(product(left.shape), total))


def pack_right(module: Module, gemm: Gemm) -> Kernel:
    """The right operand in panels, a panel at a time; columns beyond the last are zeros."""
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
    return replace(kernel, text=TRANSPOSE + kernel.text) if turned else kernel


def direct_step(module: Module, gemm: Gemm) -> int | None:
    """How far apart the rows of the left operand lie where it can be read as it is; None where it must be packed.

    That is a constant distance at which the rows of a tile do not crowd the same sets of the cache.
    """
    left = gemm.left
    along = left.rank - 1
    part = part_of(module, [left]).module
    if gemm.sums is not FLOAT32 or not is_view(part) or not lies_along(part, left, along):
        return None
    if left.rank == 1:
        return 0
    elements = VectorElements(KernelWriter(part, [FLOAT32]).text, dict.fromkeys(part.parameters, "x"), along)
    elements.of(left, maps.identity(left.shape))
    merged = merged_extents(left.shape[:along], elements.offsets)
    if gemm.folded and not all(isinstance(size, int) and size == 1 for size in merged[:-1]):
        return None
    step = coefficient(elements.offsets[0], along - 1) if len(elements.offsets) == 1 else None
    if not isinstance(step, int):
        return None
    lines = [row * step * FLOAT32.bits // 8 // 64 % _SETS for row in range(gemm.tile.rows)]
    return step if max(lines.count(line) for line in lines) <= _WAYS else None


def gemm_kernel(module: Module, gemm: Gemm, direct: int | None) -> Kernel:
    """The product from packed panels and, but where `direct` gives the step of its rows, a packed left operand.

    `module` is the part of the op from the anchor to the root, and the left operand's where it is read directly.
    """
    temporaries = [gemm.sums] if direct is not None else [gemm.sums, gemm.sums]
    writer = KernelWriter(module, [module.results[0].dtype], temporaries)
    text, tile, result = writer.text, gemm.tile, gemm.result
    epilogue = Epilogue(module, result)
    vector = vector_type(gemm.sums)
    count = text.let("int64", text.dim(ceildiv(gemm.rows, tile.rows)))
    panels = text.let("int64", text.dim(gemm.panels))
    batch = result.shape[: gemm.batch_axes]
    functions, calls = _micro_functions(gemm, direct, text)
    units = product(batch) * gemm.panels * ceildiv(gemm.rows, tile.rows)
    with share(writer, "unit", units):
        text.line(f"const int64 part = unit % {count}, panel = unit / {count} % {panels};")
        decompose(text, f"unit / {count} / {panels}", batch)
        rows = text.dim(gemm.rows)
        text.line(f"const int64 size = {rows} / {count}, larger = {rows} % {count};")
        text.line("const int64 first = part * size + min_int64(part, larger), rows = size + (part < larger);")
        matrix = text.dim(_flat(operand_index(batch, gemm.right.shape[:-2]), gemm.right.shape[:-2]))
        place = f"({matrix} * {panels} + panel) * {text.dim(gemm.depth)} * {tile.columns}"
        text.line(f"const {gemm.sums} *restrict b = temporary0 + {place};")
        _left_pointer(writer, gemm, direct, batch)
        text.line(f"{vector} sums[{tile.rows * tile.vectors}];")
        with text.block("switch (rows)"):
            for height, call in calls.items():
                text.line(f"case {height}: {call} break;")
        with text.loop("row", "0", "rows"):
            _row_places(writer, epilogue, gemm)
            with text.loop("v", "0", str(tile.vectors)):
                text.line(f"const int64 column = panel * {tile.columns} + v * {BLOCK};")
                place = f"((const {gemm.sums} *)(sums + row * {tile.vectors} + v))"
                epilogue.store(writer, place, "column", vectors=epilogue.vectorises(result.rank - 1))
    work = floordiv(product(result.shape) * gemm.depth, BLOCK)
    kernel = writer.kernel(chunk_count(work, units))
    return replace(kernel, text=functions + kernel.text)


def _micro_functions(gemm: Gemm, direct: int | None, text: CText) -> tuple[str, dict[int, str]]:
    """Functions for the heights that tiles may have, as text, and the call for each height."""
    tile = gemm.tile
    if isinstance(gemm.rows, int):
        _, height, taller = balanced(gemm.rows, tile.rows)
        heights = {height, height + 1} if taller else {height}
    else:
        heights = set(range(1, tile.rows + 1))
    parameters: list[str] = []
    arguments: list[str] = []
    sizes: tuple[tuple[str, DimLike], ...] = (("depth", gemm.depth), ("pitch", gemm.pitch if direct is None else 0))
    for name, size in sizes:
        if isinstance(size, Dim):
            parameters.append(name)
            arguments.append(text.dim(size))
    blocks, tail = depth_of(gemm.depth)
    row, plane = BLOCK, f"pitch * {BLOCK}" if isinstance(gemm.pitch, Dim) else str(gemm.pitch * BLOCK)
    if direct is not None:
        row, plane = direct, str(BLOCK)
    functions = "typedef uint64 uint64x16 __attribute__((ext_vector_type(16)));\n" if gemm.sums.bits == 64 else ""
    calls = {}
    for height in sorted(heights - {0}):
        offsets = [str(number * row) for number in range(height)]
        functions += micro_function(
            f"rows{height}", gemm.sums, offsets, tile.vectors, Depth(blocks, tail, plane), parameters
        )
        calls[height] = f"{ENTRY}_rows{height}({', '.join(['a', 'b', 'sums', *arguments])});"
    return functions, calls


def _left_pointer(writer: KernelWriter, gemm: Gemm, direct: int | None, batch: tuple[DimLike, ...]) -> None:
    """Declare `a`, which points to the first row of the tile."""
    text, left = writer.text, gemm.left
    matrix = text.dim(_flat(operand_index(batch, gemm.left_batch), gemm.left_batch))
    if direct is None:
        blocks, pitch = text.dim(ceildiv(gemm.depth, BLOCK)), text.dim(gemm.pitch)
        place = f"({matrix} * {blocks} * {pitch} + first) * {BLOCK}"
        text.line(f"const {gemm.sums} *restrict a = temporary1 + {place};")
        return
    text.line(f"const int64 matrix = {matrix};")
    text.line(f"const {gemm.sums} *a;")
    with text.block(""):
        # Places on the left operand's own axes: those of its batch, the first row, the first number.
        decompose(text, "matrix", gemm.left_batch)
        for axis in range(len(gemm.left_batch), left.rank):
            text.line(f"const int64 {axis_name(axis)} = {'first' if axis == left.rank - 2 else '0'};")
        text.line(f"a = {address(writer, left)};")


def _row_places(writer: KernelWriter, epilogue: Epilogue, gemm: Gemm) -> None:
    """Declare the places of row `first + row` on the axes of the result that are rows."""
    begin, shape = gemm.batch_axes, gemm.row_shape
    if len(shape) > 1 and epilogue.walks_as_one(begin + len(shape)):
        for axis in range(begin, begin + len(shape) - 1):
            writer.text.line(f"const int64 {axis_name(axis)} = 0;")
        writer.text.line(f"const int64 {axis_name(begin + len(shape) - 1)} = first + row;")
    else:
        decompose(writer.text, "first + row", shape, begin)


def _flat(indices: Sequence[DimLike], shape: Sequence[DimLike]) -> DimLike:
    """The row-major position of `indices`."""
    total: DimLike = 0
    for index, size in zip(indices, shape, strict=True):
        total = index + size * total
    return total
