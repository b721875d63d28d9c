"""Attention without its matrix of scores: softmax(f(q kᵀ)) v for some queries at a time, the keys in blocks.

For each block of keys: the scores of a tile of queries, what the module does to them, their greatest, the powers, and
the powers times the values. What was summed before is scaled down where a later block has a greater score. So each
query has its greatest score, the sum of its powers and its sums of values at hand, and nothing of the size queries ×
keys is ever in memory. (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.)

A row without any score above -inf has no sum of powers: its result is NaN, as that of the softmax is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, floordiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Module, Value
from argosy.ops.shapes import product
from argosy.rewrite.attention import Attention
from argosy.targets.cpu.codegen.c_text import CText, axis_name
from argosy.targets.cpu.codegen.copying import address, decompose, share
from argosy.targets.cpu.codegen.element import DeclinedError
from argosy.targets.cpu.codegen.epilogue import Epilogue
from argosy.targets.cpu.codegen.gemm import Gemm
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.lanes import ACROSS
from argosy.targets.cpu.codegen.product_loops import operand_index
from argosy.targets.cpu.codegen.tile import BLOCK, RESUME, Depth, balanced, depth_of, micro_function
from argosy.targets.cpu.codegen.vector_elements import VectorElements

__all__ = ["attention_kernel"]

_KEYS: Final = 256
"""Keys of a block: the scores of a tile of queries stay in the first cache."""
_PITCH: Final = _KEYS + BLOCK
"""Scores from one query to the next, so that rows do not crowd the same sets of the cache."""


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Both products of an attention. Their tiles have the same rows: some queries."""

    attention: Attention
    scores: Gemm
    values: Gemm

    @property
    def batch(self) -> tuple[DimLike, ...]:
        """The axes before queries and keys."""
        return self.scores.result.shape[:-2]

    @property
    def softmax(self) -> Value:
        """The weights of the values."""
        return self.attention.softmax.result()

    @property
    def changed(self) -> Value:
        """The scores as the softmax takes them."""
        operand = self.attention.softmax.operands[0]
        if operand is None:
            raise DeclinedError("the softmax has no operand")
        return operand

    @property
    def panels(self) -> int:
        """Panels of the values."""
        columns = self.values.columns
        if not isinstance(columns, int):
            raise DeclinedError("the size of a head is not fixed")
        return -(-columns // self.values.tile.columns)

    @property
    def room(self) -> int:
        """Vectors of a tile of values."""
        return self.values.tile.rows * self.values.tile.vectors


def attention_kernel(module: Module, attention: Attention, scores: Gemm, values: Gemm, direct: int | None) -> Kernel:
    """The kernel. Keys and values are packed, and the queries but where `direct` gives the step of their rows.

    `module` is the part of the op from the scores to the root, and the queries' where they are read directly.
    """
    tiles = _Tiles(attention, scores, values)
    temporaries = [FLOAT32] * (2 if direct is not None else 3)
    writer = KernelWriter(module, [module.results[0].dtype], temporaries)
    text = writer.text
    functions, products, sums = _micro_functions(tiles, direct)
    units = product((*tiles.batch, scores.tiles))
    height = scores.tile.rows
    text.line(f"float32 *score = (float32 *)scratch; float32x16 *sums = (float32x16 *)(score + {height * _PITCH});")
    text.line(f"float32 most[{height}]; float64 total[{height}];")
    count, keys = text.let("int64", text.dim(scores.tiles)), text.let("int64", text.dim(scores.columns))
    rows = text.let("int64", text.dim(scores.rows))
    with share(writer, "unit", units):
        text.line(f"const int64 tile = unit % {count}, height = {rows} / {count}, larger = {rows} % {count};")
        text.line("const int64 first = tile * height + min_int64(tile, larger), rows = height + (tile < larger);")
        decompose(text, f"unit / {count}", tiles.batch)
        _pointers(writer, tiles, direct)
        text.line("for (int64 row = 0; row < rows; ++row) most[row] = -__builtin_inff(), total[row] = 0;")
        text.line(f"for (int64 place = 0; place < {tiles.panels * tiles.room}; ++place) sums[place] = (float32x16)0;")
        with text.block(f"for (int64 begin = 0; begin < {keys}; begin += {_KEYS})"):
            text.line(f"const int64 depth = min_int64({keys} - begin, {_KEYS});")
            wide = scores.tile.columns
            with text.block(f"for (int64 key = 0; key < depth; key += {wide})"):
                text.line(f"const float32 *b = k + (begin + key) * {text.dim(scores.depth)};")
                text.line("float32x16 *tile = (float32x16 *)(score + key);")
                _by_height(text, products)
            with text.loop("row", "0", "rows"):
                _powers(writer, tiles)
            with text.loop("panel", "0", str(tiles.panels)):
                wide = values.tile.columns
                text.line(f"const float32 *a = score, *b = v + (panel * {keys} + begin) * {wide};")
                text.line(f"float32x16 *tile = sums + panel * {tiles.room};")
                _by_height(text, sums)
        _stores(writer, tiles)
    work = floordiv(product(scores.result.shape) * (scores.depth + values.columns), BLOCK)
    bytes_needed = height * _PITCH * 4 + tiles.panels * tiles.room * BLOCK * 4
    kernel = writer.kernel(chunk_count(work, units), bytes_needed)
    return replace(kernel, text=ACROSS + functions + kernel.text)


def _by_height(text: CText, calls: dict[int, str]) -> None:
    with text.block("switch (rows)"):
        for height, call in calls.items():
            text.line(f"case {height}: {call} break;")


def _micro_functions(tiles: _Tiles, direct: int | None) -> tuple[str, dict[int, str], dict[int, str]]:
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
        powers = [str(row * _PITCH) for row in range(height)]
        functions += micro_function(
            f"scores{height}", FLOAT32, queries, scores.tile.vectors, depth, pitch=_PITCH // BLOCK
        )
        functions += micro_function(f"values{height}", FLOAT32, powers, values.tile.vectors, deep, ("depth", RESUME))
        first[height] = f"{ENTRY}_scores{height}(q, b, tile);"
        second[height] = f"{ENTRY}_values{height}(a, b, tile, depth, 1);"
    return functions, first, second


def _pointers(writer: KernelWriter, tiles: _Tiles, direct: int | None) -> None:
    """Declare `q`, `k` and `v`: the first query of the tile, the keys and the values of its matrix."""
    text, scores, values = writer.text, tiles.scores, tiles.values
    panels = text.dim(scores.panels)
    place = f"{_matrix(text, tiles.batch, scores.right.shape[:-2])} * {panels} * {text.dim(scores.depth)}"
    text.line(f"const float32 *restrict k = temporary0 + {place} * {scores.tile.columns};")
    place = f"{_matrix(text, tiles.batch, values.right.shape[:-2])} * {tiles.panels} * {text.dim(values.depth)}"
    text.line(f"const float32 *restrict v = temporary1 + {place} * {values.tile.columns};")
    left = scores.left
    text.line(f"const int64 matrix = {_matrix(text, tiles.batch, left.shape[:-2])};")
    if direct is None:
        text.line(f"const float32 *q = temporary2 + (matrix * {text.dim(scores.rows)} + first) * {scores.pitch};")
        return
    text.line("const float32 *q;")
    with text.block(""):
        decompose(text, "matrix", left.shape[:-2])
        text.line(f"const int64 {axis_name(left.rank - 2)} = first, {axis_name(left.rank - 1)} = 0;")
        text.line(f"q = {address(writer, left)};")


def _matrix(text: CText, batch: Sequence[DimLike], own: Sequence[DimLike]) -> str:
    """The number of an operand's matrix, from the places on the batch axes."""
    total: DimLike = 0
    for index, size in zip(operand_index(batch, own), own, strict=True):
        total = index + size * total
    return text.dim(total)


def _powers(writer: KernelWriter, tiles: _Tiles) -> None:
    """Of the row's scores in this block: change them, find the greatest, make powers of them, scale what was before."""
    text = writer.text
    last = tiles.softmax.rank - 1
    text.line(f"const int64 {axis_name(last - 1)} = first + row;")
    text.line(f"float32 *at = score + row * {_PITCH};")
    text.line(f"const int64 whole = depth / {BLOCK} * {BLOCK};")
    text.line("float32x16 best = (float32x16)(-__builtin_inff());")
    _changes(writer, tiles)
    with text.block("if (whole < depth)"):
        text.line(f"for (int64 key = depth; key < whole + {BLOCK}; ++key) at[key] = -__builtin_inff();")
    with text.block(f"for (int64 key = 0; key < depth; key += {BLOCK})"):
        text.line("const float32x16 x = *(const float32x16 *)(at + key);")
        text.line("best = x > best ? x : best;")
    text.line("const float32 before = most[row], found = max_across(best), now = found > before ? found : before;")
    # Where no score so far is above -inf, all powers are 0.
    text.line("const float32 low = now == -__builtin_inff() ? 0 : now;")
    text.line("float32x16 part = (float32x16)0;")
    with text.block(f"for (int64 key = 0; key < depth; key += {BLOCK})"):
        text.line("const float32x16 power = exp_float32(*(const float32x16 *)(at + key) - (float32x16)low);")
        text.line("*(float32x16 *)(at + key) = power;")
        text.line("part += power;")
    text.line("const float32 scale = exp_float32(before - low);")
    text.line("total[row] = total[row] * (float64)scale + sum_across(widen(part));")
    text.line("most[row] = now;")
    with text.block("if (begin > 0 && scale != 1)"):
        _scale_row(text, tiles, "scale")


def _scale_row(text: CText, tiles: _Tiles, factor: str) -> None:
    """Multiply the sums of values of the row."""
    with text.loop("panel", "0", str(tiles.panels)), text.loop("vector", "0", str(tiles.values.tile.vectors)):
        place = f"panel * {tiles.room} + row * {tiles.values.tile.vectors} + vector"
        text.line(f"sums[{place}] = sums[{place}] * (float32x16){factor};")


def _changes(writer: KernelWriter, tiles: _Tiles) -> None:
    """What the module does to the scores, in place: by vectors where it can be."""
    text, changed = writer.text, tiles.changed
    product_ = tiles.scores.result
    if changed == product_:
        return
    access, last = maps.identity(changed.shape), changed.rank - 1

    def vectors(into: CText) -> str:
        elements = VectorElements(into, writer.pointers, last)
        elements.given[product_] = into.let("float32x16", "*(const float32x16 *)(at + key)")
        return elements.of(changed, access)

    name, begin = axis_name(last), "0"
    try:
        vectors(CText())
    except DeclinedError:
        pass
    else:
        begin = "whole"
        with text.block(f"for (int64 key = 0; key < whole; key += {BLOCK})"):
            text.line(f"const int64 {name} = begin + key;")
            text.line(f"*(float32x16 *)(at + key) = {vectors(text)};")
    with text.loop("key", begin, "depth"), writer.elements.scope():
        text.line(f"const int64 {name} = begin + key;")
        writer.elements.given[product_] = text.let("float32", "at[key]")
        text.line(f"at[key] = {writer.elements.of(changed, access)};")
    writer.elements.given.pop(product_)


def _stores(writer: KernelWriter, tiles: _Tiles) -> None:
    """Divide by the sums of the powers, and store what the module makes of the result."""
    text, values = writer.text, tiles.values
    epilogue = Epilogue(writer.module, values.result)
    rank = values.result.rank
    with text.loop("row", "0", "rows"):
        text.line(f"const int64 {axis_name(rank - 2)} = first + row;")
        # Without a key there is nothing to average: the sums stay 0.
        text.line(f"const float32 share = {text.dim(values.depth)} > 0 ? 1.0f / (float32)total[row] : 0;")
        _scale_row(text, tiles, "share")
        with text.loop("panel", "0", str(tiles.panels)), text.loop("vector", "0", str(values.tile.vectors)):
            text.line(f"const int64 column = panel * {values.tile.columns} + vector * {BLOCK};")
            place = f"panel * {tiles.room} + row * {values.tile.vectors} + vector"
            epilogue.store(
                writer, f"((const float32 *)(sums + {place}))", "column", vectors=epilogue.vectorises(rank - 1)
            )
