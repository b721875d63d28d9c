"""Products with panels of codes: for a few rows the codes are read once, for many a panel at a time becomes floats.

How many rows there are may be known to the run alone: the kernel then has both ways.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.ir.dim import bounds
from argosy.ir.module import Module
from argosy.targets.cpu.codegen.epilogue import Epilogue
from argosy.targets.cpu.codegen.gemm import (
    Gemm,
    gemm_chunks,
    gemm_writer,
    left_pointer,
    row_places,
    rows_from,
    tile_loops,
)
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter
from argosy.targets.cpu.codegen.quantized_panels import QuantizedPanels
from argosy.targets.cpu.codegen.quantized_rows import rows_function, unpack_function
from argosy.targets.cpu.codegen.tile import BLOCK

__all__ = ["quantized_gemm_kernel"]


def quantized_gemm_kernel(module: Module, gemm: Gemm, panels: QuantizedPanels, direct: int | None) -> Kernel:
    """The product from panels of codes, otherwise as `gemm_kernel`."""
    writer = gemm_writer(module, gemm, direct)
    epilogue = Epilogue(module, gemm.result)
    least, most = bounds(gemm.rows)
    functions, scratch = "", 0
    if least is None or least <= panels.few:
        heights = [gemm.rows] if isinstance(gemm.rows, int) else range(1, panels.few + 1)
        step = gemm.pitch if direct is None else direct
        for height in heights:
            if height:
                functions += rows_function(panels, [str(row * step) for row in range(height)])
        with writer.text.block(f"if ({writer.text.dim(gemm.rows)} <= {panels.few})"):
            _few_rows(writer, gemm, panels, epilogue, direct, [height for height in heights if height])
            writer.text.line("return;")
    if most is None or most > panels.few:
        scratch = gemm.block * gemm.tile.columns * gemm.sums.bits // 8
        functions += unpack_function(panels) + tile_loops(writer, gemm, epilogue, direct)
    kernel = writer.kernel(gemm_chunks(gemm), scratch)
    return replace(kernel, text=functions + kernel.text)


def _few_rows(
    writer: KernelWriter,
    gemm: Gemm,
    panels: QuantizedPanels,
    epilogue: Epilogue,
    direct: int | None,
    heights: list[int],
) -> None:
    """Loops over this chunk's panels: all rows of a panel at once."""
    text, tile = writer.text, gemm.tile
    text.line(f"const int64 rows = {text.dim(gemm.rows)}, first = 0;")
    begin, end = (f"(int64){panels.panels} * {part} / chunks" for part in ("chunk", "(chunk + 1)"))
    with text.loop("panel", begin, end):
        text.line(f"const uint8 *codes = temporary0 + panel * {panels.records * panels.record};")
        text.line(f"float32x16 sums[{max(heights, default=1) * tile.vectors}];")
        blocks = "1" if direct is not None else text.dim(gemm.blocks)
        with text.loop("block", "0", blocks):
            if direct is None:
                rows_from(writer, gemm)
                text.line(f"const int64 depth = min_int64({panels.depth} - block * {gemm.block}, {gemm.block});")
            else:
                text.line(f"const int64 depth = {panels.depth};")
            left_pointer(writer, gemm, direct)
            text.line(f"const uint8 *b = codes + block * {gemm.block // panels.unit * panels.record};")
            with text.block("switch (rows)"):
                for height in heights:
                    text.line(f"case {height}: {ENTRY}_few{height}(a, b, sums, depth, block > 0); break;")
        with text.loop("row", "0", "rows"):
            row_places(writer, epilogue, gemm)
            with text.loop("v", "0", str(tile.vectors)):
                text.line(f"const int64 column = panel * {tile.columns} + v * {BLOCK};")
                place = f"((const float32 *)(sums + row * {tile.vectors} + v))"
                epilogue.store(writer, place, "column", vectors=epilogue.vectorises(gemm.result.rank - 1))
