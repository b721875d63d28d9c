"""Attention without its matrix of scores: softmax(f(q kᵀ)) v for some queries at a time, the keys in blocks.

For each block of keys: the scores of a tile of queries, what the module does to them, their greatest, the powers, and
the powers times the values. What was summed before is scaled down where a later block has a greater score. So each
query has its greatest score, the sum of its powers and its sums of values at hand, and nothing of the size queries ×
keys is ever in memory. (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.)

A row without any score above -inf has no sum of powers: its result is NaN, as that of the softmax is.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.ir.dim import floordiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.rewrite.attention import Attention
from argosy.targets.cpu.codegen.attention_mask import skip_hidden
from argosy.targets.cpu.codegen.attention_rows import (
    KEYS,
    PITCH,
    Tiles,
    begin_rows,
    declare_rows,
    make_powers,
    matrix_number,
    scratch_bytes,
    store_rows,
)
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.copying import address, decompose, share
from argosy.targets.cpu.codegen.gemm import Gemm
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.lanes import ACROSS
from argosy.targets.cpu.codegen.tile import BLOCK, RESUME, Depth, balanced, depth_of, micro_function
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["attention_kernel"]


def attention_kernel(module: Module, attention: Attention, scores: Gemm, values: Gemm, direct: int | None) -> Kernel:
    """The kernel. Keys and values are packed, and the queries but where `direct` gives the step of their rows.

    `module` is the part of the op from the scores to the root, and the queries' where they are read directly.
    """
    tiles = Tiles(attention, scores, values)
    temporaries = [FLOAT32] * (2 if direct is not None else 3)
    writer = KernelWriter(module, [module.results[0].dtype], temporaries)
    text = writer.text
    functions, products, sums = _micro_functions(tiles, direct)
    units = product((*tiles.batch, scores.tiles))
    declare_rows(text, tiles)
    count, keys = text.let("int64", text.dim(scores.tiles)), text.let("int64", text.dim(scores.columns))
    rows = text.let("int64", text.dim(scores.rows))
    with share(writer, "unit", units):
        text.line(f"const int64 tile = unit % {count}, height = {rows} / {count}, larger = {rows} % {count};")
        text.line("const int64 first = tile * height + min_int64(tile, larger), rows = height + (tile < larger);")
        decompose(text, f"unit / {count}", tiles.batch)
        _pointers(writer, tiles, direct)
        begin_rows(text, tiles)
        with text.block(f"for (int64 begin = 0; begin < {keys}; begin += {KEYS})"):
            text.line(f"const int64 depth = min_int64({keys} - begin, {KEYS});")
            skip_hidden(writer, tiles)
            wide = scores.tile.columns
            with text.block(f"for (int64 key = 0; key < depth; key += {wide})"):
                text.line(f"const float32 *b = k + (begin + key) * {text.dim(scores.depth)};")
                text.line("float32x16 *tile = (float32x16 *)(score + key);")
                _by_height(text, products)
            with text.loop("row", "0", "rows"):
                make_powers(writer, tiles)
            with text.loop("panel", "0", str(tiles.panels)):
                wide = values.tile.columns
                text.line(f"const float32 *a = score, *b = v + (panel * {keys} + begin) * {wide};")
                text.line(f"float32x16 *tile = sums + panel * {tiles.room};")
                _by_height(text, sums)
        store_rows(writer, tiles)
    work = floordiv(product(scores.result.shape) * (scores.depth + values.columns), BLOCK)
    kernel = writer.kernel(chunk_count(work, units), scratch_bytes(tiles))
    return replace(kernel, text=ACROSS + functions + kernel.text)


def _by_height(text: CText, calls: dict[int, str]) -> None:
    with text.block("switch (rows)"):
        for height, call in calls.items():
            text.line(f"case {height}: {call} break;")


def _micro_functions(tiles: Tiles, direct: int | None) -> tuple[str, dict[int, str], dict[int, str]]:
    """Functions for the heights that tiles may have, and the calls for scores and for values by height."""
    scores, values = tiles.scores, tiles.values
    heights = set(range(1, scores.tile.rows + 1))
    if isinstance(scores.rows, int):
        _, height, taller = balanced(scores.rows, scores.tile.rows)
        heights = {height, height + 1} if taller else {height}
    step = scores.pitch if direct is None else direct
    depth = Depth(*depth_of(scores.depth), str(BLOCK))
    deep = Depth(f"depth / {BLOCK}", f"depth % {BLOCK}", str(BLOCK))
    functions, first, second = "", {}, {}
    for height in sorted(heights - {0}):
        queries = [str(row * step) for row in range(height)]
        powers = [str(row * PITCH) for row in range(height)]
        functions += micro_function(
            f"scores{height}", scores.products, queries, scores.tile.vectors, depth, pitch=PITCH // BLOCK
        )
        functions += micro_function(
            f"values{height}", values.products, powers, values.tile.vectors, deep, ("depth", RESUME)
        )
        first[height] = f"{ENTRY}_scores{height}(q, b, tile);"
        second[height] = f"{ENTRY}_values{height}(a, b, tile, depth, 1);"
    return functions, first, second


def _pointers(writer: KernelWriter, tiles: Tiles, direct: int | None) -> None:
    """Declare `q`, `k` and `v`: the first query of the tile, the keys and the values of its matrix."""
    text, scores, values = writer.text, tiles.scores, tiles.values
    panels = text.dim(scores.panels)
    place = f"{matrix_number(text, tiles.batch, scores.right.shape[:-2])} * {panels} * {text.dim(scores.depth)}"
    text.line(f"const float32 *restrict k = temporary0 + {place} * {scores.tile.columns};")
    place = f"{matrix_number(text, tiles.batch, values.right.shape[:-2])} * {tiles.panels} * {text.dim(values.depth)}"
    text.line(f"const float32 *restrict v = temporary1 + {place} * {values.tile.columns};")
    left = scores.left
    text.line(f"const int64 matrix = {matrix_number(text, tiles.batch, left.shape[:-2])};")
    if direct is None:
        text.line(f"const float32 *q = temporary2 + (matrix * {text.dim(scores.rows)} + first) * {scores.pitch};")
        return
    text.line("const float32 *q;")
    with text.block(""):
        decompose(text, "matrix", left.shape[:-2])
        text.line(f"const int64 {axis_name(left.rank - 2)} = first, {axis_name(left.rank - 1)} = 0;")
        text.line(f"q = {address(writer, left)};")
