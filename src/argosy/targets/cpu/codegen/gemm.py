"""Tiled matrix products over packed operands: loops over panels and tiles (`gemm_packing` packs).

The right operand lies in panels `[batch][panels][depth][columns]`, zeros beyond the end; of short numbers (`products`)
groups stand in the place of numbers, `[depth / group][columns][group]`. The left one is read as it is
where its rows lie well, else in blocks of the depth `[batch][blocks][rows][pitch]`. Rows whose distance is a multiple
of 4 KiB would throw each other out of the first cache.

One block of the depth is done for all panels before the next, so that this part of the left operand stays in the
second cache; tiles wait half done. While a tile is computed, its share of the next panel is fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from argosy.ir.dim import Dim, DimLike, ceildiv, dim_max, floordiv
from argosy.ir.dtype import UINT8, DType
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.copying import address, decompose
from argosy.targets.cpu.codegen.epilogue import Epilogue
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.product_loops import operand_index
from argosy.targets.cpu.codegen.products import Products, products_for
from argosy.targets.cpu.codegen.quantized_panels import QuantizedPanels
from argosy.targets.cpu.codegen.tile import (
    AHEAD,
    BLOCK,
    RESUME,
    Depth,
    Tile,
    balanced,
    depth_of,
    micro_function,
    tile_for,
    vector_type,
)
from argosy.targets.lowering.accesses import present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = [
    "Gemm",
    "gemm_chunks",
    "gemm_kernel",
    "gemm_writer",
    "left_pointer",
    "partial_type",
    "row_places",
    "rows_from",
    "tile_loops",
]

_DEPTH: Final = 1024
"""Numbers of a block of the depth, at most."""
_UNKNOWN_DEPTH: Final = 256
"""Numbers of a block of a depth that only the run knows."""
_FEW: Final = 2
"""Rows with which a product takes as long as its right operand takes to come from memory."""
_RESIDENT: Final = 5 << 17
"""Bytes of the left operand that are to stay in the second cache."""
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class Gemm:
    """A dot as a matrix product: `rows` axes of the result that are walked as rows, the batch before them."""

    anchor: Instruction
    tile: Tile
    products: Products
    coded: QuantizedPanels | None = None
    """The right operand where its panels stay in codes."""

    @staticmethod
    def of(anchor: Instruction, arch: CpuArch) -> Gemm:
        """A dot by the tiles of a level."""
        left, right, result = present(anchor, 0), present(anchor, 1), anchor.result()
        products = products_for(arch, left.dtype, right.dtype, result.dtype.compute)
        columns = right.shape[-1] if right.rank > 1 else 1
        return Gemm(anchor, tile_for(arch, products.sums, columns), products)

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
        return self.products.sums

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
    def tiles(self) -> DimLike:
        """Tiles below each other."""
        return ceildiv(self.rows, self.tile.rows)

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
    def block(self) -> int:
        """Numbers of a block of the depth, but for the last: a multiple of 16, or of what shares a scale."""
        group = self.products.group
        if isinstance(self.depth, Dim):
            return _UNKNOWN_DEPTH * group
        blocks = 1 if self.streams else max(1, -(-self.depth // (_DEPTH * group)))
        unit = self.coded.unit if self.coded else BLOCK
        return max(1, -(-self.depth // (blocks * unit))) * unit

    @property
    def streams(self) -> bool:
        """Whether all that counts is to read the right operand once, from its first number to the last."""
        return isinstance(self.rows, int) and self.rows <= (self.coded.few if self.coded else _FEW)

    @property
    def fetches(self) -> bool:
        """Whether tiles fetch the panel that comes next; the processor itself fetches what is read in order."""
        return not self.streams and not self.coded

    @property
    def blocks(self) -> DimLike:
        """Blocks of the depth; one where there is nothing to sum."""
        return dim_max(ceildiv(self.depth, self.block), 1)

    @property
    def split(self) -> bool:
        """Whether there may be several blocks, so that tiles wait."""
        return not isinstance(self.blocks, int) or self.blocks > 1

    @property
    def panel_rows(self) -> DimLike:
        """Rows of a panel: of numbers or groups of them, and what its sums start from."""
        return ceildiv(self.depth, self.products.group) + self.products.head

    @property
    def panel_row(self) -> int:
        """Elements of a row of a panel."""
        return self.tile.columns * self.products.group

    @property
    def pitch(self) -> int:
        """Numbers from one row of the packed left operand to the next: never a multiple of 4 KiB."""
        return -(-self.block // (2 * BLOCK)) * 2 * BLOCK + BLOCK

    @property
    def left_batch(self) -> tuple[DimLike, ...]:
        """Batch axes of the left operand."""
        return () if self.folded else self.left.shape[:-2]


def partial_type(gemm: Gemm) -> TensorType:
    """The tiles that wait: room for all of the result."""
    size = gemm.tile.rows * gemm.tile.columns
    return TensorType(gemm.sums, (*gemm.result.shape[: gemm.batch_axes], gemm.tiles, gemm.panels, size))


def gemm_kernel(module: Module, gemm: Gemm, direct: int | None) -> Kernel:
    """The product from packed panels and, but where `direct` gives the step of its rows, a packed left operand.

    `module` is the part of the op from the anchor to the root, and the left operand's where it is read directly. Where
    the depth is split, a second result has the type `partial_type`.
    """
    writer = gemm_writer(module, gemm, direct)
    functions = tile_loops(writer, gemm, Epilogue(module, gemm.result), direct)
    kernel = writer.kernel(gemm_chunks(gemm))
    return replace(kernel, text=functions + kernel.text)


def gemm_writer(module: Module, gemm: Gemm, direct: int | None) -> KernelWriter:
    """The frame of the kernel: the packed operands are temporaries, tiles that wait a second result."""
    right = UINT8 if gemm.coded else gemm.products.right
    temporaries = [right] if direct is not None else [right, gemm.products.left]
    waiting = [gemm.sums] if gemm.split else []
    return KernelWriter(module, [module.results[0].dtype, *waiting], temporaries)


def gemm_chunks(gemm: Gemm) -> DimLike:
    """Into how many chunks a product may be cut."""
    batch = product(gemm.result.shape[: gemm.batch_axes])
    work = floordiv(product(gemm.result.shape) * gemm.depth, BLOCK * gemm.products.group)
    return chunk_count(work, batch * gemm.panels * gemm.tiles)


def tile_loops(writer: KernelWriter, gemm: Gemm, epilogue: Epilogue, direct: int | None) -> str:
    """Write the loops over strips and tiles; the C of the functions that they call."""
    kinds = gemm.products
    text, tile, result = writer.text, gemm.tile, gemm.result
    batch = result.shape[: gemm.batch_axes]
    functions, calls = _micro_functions(gemm, direct)
    tiles, panels = text.let("int64", text.dim(gemm.tiles)), text.let("int64", text.dim(gemm.panels))
    products = text.let("int64", f"{text.dim(product(batch))} * {panels}")
    most = max(1, _RESIDENT // (gemm.block * kinds.left.bits // 8 * tile.rows))
    # A strip is a panel by some tiles: as many as the second cache holds, fewer where chunks outnumber the strips.
    text.line(f"const int64 cuts = min_int64({tiles}, ceildiv_int64(chunks, max_int64({products}, 1)));")
    text.line(f"const int64 parts = max_int64(ceildiv_int64({tiles}, {most}), cuts), strips = {products} * parts;")
    text.line("int64 strip = strips * chunk / chunks;")
    text.line("const int64 end = strips * (chunk + 1) / chunks;")
    with text.block("while (strip < end)"):
        text.line(f"const int64 matrix_part = strip / {panels}, begin = strip % {panels};")
        text.line(f"const int64 count = min_int64(end - strip, {panels} - begin), number = matrix_part / parts;")
        text.line(f"const int64 upper = {tiles} * (matrix_part % parts) / parts;")
        text.line(f"const int64 lower = {tiles} * (matrix_part % parts + 1) / parts;")
        text.line("strip += count;")
        decompose(text, "number", batch)
        with text.loop("block", "0", text.dim(gemm.blocks)), text.loop("panel", "begin", "begin + count"):
            _strip(writer, gemm, direct)
            with text.loop("tile", "upper", "lower"):
                _tile(writer, gemm, epilogue, direct, calls)
    return functions


def _strip(writer: KernelWriter, gemm: Gemm, direct: int | None) -> None:
    """Declare what the tiles of a strip share: the panel, and how much of the next one each of them fetches."""
    text, kinds = writer.text, gemm.products
    batch = gemm.result.shape[: gemm.batch_axes]
    depth = text.dim(gemm.depth)
    text.line(f"const int64 depth = min_int64({depth} - block * {gemm.block}, {gemm.block});")
    if gemm.coded:
        place = f"(panel * {gemm.coded.records} + block * {gemm.block // gemm.coded.unit}) * {gemm.coded.record}"
        text.line("float32 *restrict b = scratch;")
        text.line(f"{ENTRY}_unpack(temporary0 + {place}, b, depth);")
    else:
        matrix = text.dim(_flat(operand_index(batch, gemm.right.shape[:-2]), gemm.right.shape[:-2]))
        place = f"({matrix} * {text.dim(gemm.panels)} + panel) * {text.dim(gemm.panel_rows)}"
        place += f" + block * {gemm.block // kinds.group}"
        text.line(f"const {scalar.storage_type(kinds.right)} *restrict b = temporary0 + ({place}) * {gemm.panel_row};")
    if gemm.fetches:
        lines = gemm.tile.columns * BLOCK * kinds.right.bits // 8 // _LINE
        text.line(f"const int64 lines = ({lines} + lower - upper - 1) / (lower - upper);")
    if direct is None:
        rows_from(writer, gemm)


def rows_from(writer: KernelWriter, gemm: Gemm) -> None:
    """Declare where the rows of a block of the packed left operand begin."""
    text = writer.text
    place = f"({_left_matrix(writer, gemm)} * {text.dim(gemm.blocks)} + block) * {text.dim(gemm.rows)}"
    kind = scalar.storage_type(gemm.products.left)
    text.line(f"const {kind} *restrict rows_from = temporary1 + {place} * {gemm.pitch};")


def _left_matrix(writer: KernelWriter, gemm: Gemm) -> str:
    """The number of the left operand's matrix, from the places on the batch axes."""
    batch = gemm.result.shape[: gemm.batch_axes]
    return writer.text.dim(_flat(operand_index(batch, gemm.left_batch), gemm.left_batch))


def _tile(writer: KernelWriter, gemm: Gemm, epilogue: Epilogue, direct: int | None, calls: dict[int, str]) -> None:
    """Compute a tile, and store it when it is done."""
    text, tile = writer.text, gemm.tile
    vector = vector_type(gemm.sums)
    rows, tiles, size = text.dim(gemm.rows), text.dim(gemm.tiles), tile.rows * tile.vectors
    text.line(f"const int64 height = {rows} / {tiles}, larger = {rows} % {tiles};")
    text.line("const int64 first = tile * height + min_int64(tile, larger), rows = height + (tile < larger);")
    left_pointer(writer, gemm, direct)
    if gemm.fetches:
        share = f"(tile - upper) * lines * {gemm.block // BLOCK * _LINE}"
        text.line(f"const int64 next = (int64)(b + {text.dim(gemm.panel_rows)} * {gemm.panel_row}) + {share};")
    if gemm.split:
        place = f"((number * {tiles} + tile) * {text.dim(gemm.panels)} + panel) * {size}"
        text.line(f"{vector} *sums = ({vector} *)y1 + {place};")
    else:
        text.line(f"{vector} sums[{size}];")
    with text.block("switch (rows)"):
        for tall, call in calls.items():
            text.line(f"case {tall}: {call} break;")
    if gemm.split:
        text.line(f"if (block + 1 < {text.dim(gemm.blocks)}) continue;")
    with text.loop("row", "0", "rows"):
        row_places(writer, epilogue, gemm)
        with text.loop("v", "0", str(tile.vectors)):
            text.line(f"const int64 column = panel * {tile.columns} + v * {BLOCK};")
            place = f"((const {gemm.sums} *)(sums + row * {tile.vectors} + v))"
            epilogue.store(writer, place, "column", vectors=epilogue.vectorises(gemm.result.rank - 1))


def _micro_functions(gemm: Gemm, direct: int | None) -> tuple[str, dict[int, str]]:
    """Functions for the heights that tiles may have, as text, and the call for each height."""
    tile = gemm.tile
    if isinstance(gemm.rows, int):
        _, height, taller = balanced(gemm.rows, tile.rows)
        heights = {height, height + 1} if taller else {height}
    else:
        heights = set(range(1, tile.rows + 1))
    parameters, arguments = (list(AHEAD), list(AHEAD)) if gemm.fetches else ([], [])
    if isinstance(gemm.depth, int) and (not gemm.split or gemm.depth % gemm.block == 0):
        blocks, tail = depth_of(min(gemm.depth, gemm.block))
    else:
        blocks, tail = f"depth / {BLOCK}", f"depth % {BLOCK}"
        parameters.append("depth")
        arguments.append("depth")
    if gemm.split:
        parameters.append(RESUME)
        arguments.append("block > 0")
    step = gemm.pitch if direct is None else direct
    functions = gemm.products.text
    calls = {}
    for height in sorted(heights - {0}):
        offsets = [str(number * step) for number in range(height)]
        depth = Depth(blocks, tail, str(BLOCK))
        functions += micro_function(f"rows{height}", gemm.products, offsets, tile.vectors, depth, parameters)
        calls[height] = f"{ENTRY}_rows{height}({', '.join(['a', 'b', 'sums', *arguments])});"
    return functions, calls


def left_pointer(writer: KernelWriter, gemm: Gemm, direct: int | None) -> None:
    """Declare `a`, which points to the first row of the tile."""
    text, left, kind = writer.text, gemm.left, scalar.storage_type(gemm.products.left)
    if direct is None:
        text.line(f"const {kind} *a = rows_from + first * {gemm.pitch};")
        return
    text.line(f"const int64 matrix = {_left_matrix(writer, gemm)};")
    text.line(f"const {kind} *a;")
    with text.block(""):
        # Places on the left operand's own axes: those of its batch, the first row, the first number.
        decompose(text, "matrix", gemm.left_batch)
        for axis in range(len(gemm.left_batch), left.rank):
            text.line(f"const int64 {axis_name(axis)} = {'first' if axis == left.rank - 2 else '0'};")
        text.line(f"a = {address(writer, left)} + block * {gemm.block};")


def row_places(writer: KernelWriter, epilogue: Epilogue, gemm: Gemm) -> None:
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
