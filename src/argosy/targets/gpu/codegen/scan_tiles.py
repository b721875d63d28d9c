"""Running sums and products of few long lines: tiles are folded, their totals scanned, and then the tiles themselves.

G. Blelloch, "Prefix Sums and Their Applications" (1990), with two levels. Every program has one tile of some lines, so
that no device waits for a program that goes along a whole line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.module import Module
from argosy.ops.scan import Cumulative
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.blocks import at_most
from argosy.targets.gpu.codegen.cumulative import COMBINE
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.reduction import fold_start
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["SCAN_TILE", "Tiles", "carry_kernel", "tile_kernel", "total_kernel"]

SCAN_TILE: Final = 2048
"""Elements of a tile, of all of its lines."""
_LINES: Final = 32
_WIDE: Final = 1024


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a tensor along an axis: `high` lines that lie side by side, `wide` steps of each."""

    size: DimLike
    inner: DimLike
    lines: DimLike
    high: int
    wide: int

    @staticmethod
    def of(module: Module, axis: int, tile: int) -> Tiles:
        """The tiles of the operand of a `cumulative`."""
        shape = present(module.instructions[-1], 0).shape
        inner = product(shape[axis + 1 :])
        lines = product((*shape[:axis], inner))
        high = 1 if inner == 1 else at_most(lines, min(_LINES, tile // 2))
        return Tiles(shape[axis], inner, lines, high, tile // high)

    @property
    def count(self) -> DimLike:
        """Of a line."""
        return ceildiv(self.size, self.wide)

    @property
    def launch(self) -> Launch:
        """A program for each tile; those of the same lines one after another."""
        return Launch((product((ceildiv(self.lines, self.high), self.count)), 1, 1), 4)


def _tile(kernel: OpKernel, tiles: Tiles) -> None:
    """Write `value`, the elements of a program's tile, what is neutral outside."""
    op, text, x = op_of(kernel.instruction, Cumulative), kernel.text, kernel.operand(0)
    kind, start = scalar.compute_type(x.dtype), fold_start(op.kind, x.dtype)
    text.line(f"size, inner, lines = {text.dim(tiles.size)}, {text.dim(tiles.inner)}, {text.dim(tiles.lines)}")
    text.line(f"tiles, unit = {text.dim(tiles.count)}, {kernel.program()}")
    text.line(f"line = unit // tiles * {tiles.high} + tl.arange(0, {tiles.high})[:, None]")
    text.line(f"step = unit % tiles * {tiles.wide} + tl.arange(0, {tiles.wide})[None, :]")
    text.line("known = line < lines")
    text.line("inside = known & (step < size)")
    text.line("first = line // inner * size * inner + line % inner")
    text.line(f"place = first + {'(size - 1 - step)' if op.reverse else 'step'} * inner")
    value = kernel.load(0, "place")
    text.line(f"value = tl.where(inside, {value}, tl.full([], {start}, {kind}))")


def total_kernel(module: Module, tiles: Tiles) -> Kernel:
    """Writes the fold of each tile, [lines, tiles], in the compute type."""
    wide = module.results[0].dtype.compute
    kernel = OpKernel(module, [wide])
    _tile(kernel, tiles)
    combine = COMBINE[op_of(kernel.instruction, Cumulative).kind]
    kernel.text.line(f"total = tl.reduce(value, 1, {combine}, keep_dims=True)")
    kernel.put("line * tiles + unit % tiles", "total", mask="known")
    return kernel.kernel(tiles.launch, kernel.stored)


def carry_kernel(module: Module, tiles: Tiles) -> Kernel:
    """From the folds of tiles to that of all earlier ones of the line. A program for each line."""
    op, dtype = op_of(module.instructions[-1], Cumulative), module.results[0].dtype.compute
    writer = KernelWriter(Module("carries", (), (), (), ()), temporaries=(dtype,))
    text, combine, start = writer.text, COMBINE[op.kind], fold_start(op.kind, dtype)
    text.wide = writer.is_large((tiles.lines, tiles.count), dtype)
    kind = scalar.compute_type(dtype)
    text.line(f"tiles = {text.dim(tiles.count)}")
    text.line(f"first = {writer.program()} * tiles")
    text.line(f"total = tl.full([1], {start}, {kind})")
    text.line(f"tl.store({writer.result()} + first + tl.arange(0, 1), total)")
    with text.block(f"for begin in range(0, tiles, {_WIDE}):"):
        text.line(f"at = begin + tl.arange(0, {_WIDE})")
        text.line(f"own = tl.load({writer.temporary(0)} + first + at, mask=at < tiles, other={start})")
        text.line(f"run = {combine}(tl.associative_scan(own, 0, {combine}), total).to({kind})")
        text.line(f"tl.store({writer.result()} + first + at + 1, run, mask=at + 1 < tiles)")
        text.line(f"total = {combine}(total, tl.reduce(own, 0, {combine}, keep_dims=True)).to({kind})")
    return writer.kernel(Launch((tiles.lines, 1, 1), 4), [dtype]).labelled("scan_carries")


def tile_kernel(module: Module, tiles: Tiles) -> Kernel:
    """Scans each tile behind the fold of all earlier ones, which is its temporary."""
    op, dtype = op_of(module.instructions[-1], Cumulative), module.results[0].dtype
    kernel = OpKernel(module, temporaries=[dtype.compute])
    text, combine, kind = kernel.text, COMBINE[op.kind], scalar.compute_type(dtype)
    _tile(kernel, tiles)
    text.line(f"carry = {kernel.load_temporary(0, 'line * tiles + unit % tiles', 'known')}")
    text.line(f"run = {combine}(tl.associative_scan(value, 1, {combine}), carry).to({kind})")
    if op.exclusive:
        text.line(f"none = tl.full([{tiles.high}, {tiles.wide}], {fold_start(op.kind, dtype)}, {kind})")
        kernel.put("place", "none", mask="inside & (step == 0)")
        moved = "place - inner" if op.reverse else "place + inner"
        kernel.put(moved, "run", mask="inside & (step + 1 < size)")
    else:
        kernel.put("place", "run")
    return kernel.kernel(tiles.launch, kernel.stored)
