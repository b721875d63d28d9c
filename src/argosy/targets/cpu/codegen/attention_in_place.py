"""Attention of a few queries, as in a step of a decoder: keys and values are read where they are, once for all of them.

A score is a product of two vectors, for the numbers of a key lie side by side; the values of a key are a vector too.
There is little to compute for each number that is read, so packing would cost more than it brings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, bounds, floordiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Module, Value
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
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.gemm import Gemm
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.lanes import ACROSS
from argosy.targets.cpu.codegen.products import plain
from argosy.targets.cpu.codegen.tile import BLOCK, Tile
from argosy.targets.cpu.codegen.vector_elements import VectorElements
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["FEW", "attention_in_place"]

FEW: Final = 8
"""Queries beyond which packed operands are faster."""
_SUMS: Final = 16
"""Sums of values in registers at a time."""


def attention_in_place(module: Module, attention: Attention) -> Kernel:
    """The kernel over the parameters of the module. Declines where a key or a value is no row of whole vectors.

    Where only the run knows how many queries there are, it does as many as `FEW`, and nothing where there are more.
    """
    scores = Gemm(attention.scores, Tile(1, 1), plain(FLOAT32))
    size, wide = scores.depth, attention.product.result().shape[-1]
    heights = _heights(scores.rows)
    if not heights:
        raise DeclinedError("there are not a few queries only")
    if not isinstance(size, int) or not isinstance(wide, int) or size % BLOCK or wide % BLOCK or not size or not wide:
        raise DeclinedError("heads are no whole vectors")
    most = heights[-1]
    tiles = Tiles(
        attention,
        replace(scores, tile=Tile(most, 1)),
        replace(scores, anchor=attention.product, tile=Tile(most, wide // BLOCK)),
    )
    writer = KernelWriter(module, [module.results[0].dtype])
    text = writer.text
    declare_rows(text, tiles)
    keys = text.let("int64", text.dim(tiles.scores.columns))
    text.line(f"const int64 first = 0, rows = {text.dim(scores.rows)};")
    text.line(f"float32x16 queries[{most * size // BLOCK}];")
    with share(writer, "unit", product(tiles.batch)):
        decompose(text, "unit", tiles.batch)
        begin_rows(text, tiles)
        with _own_places(writer, tiles, tiles.scores.left), text.loop(axis_name(scores.left.rank - 2), "0", "rows"):
            vectors = _row(writer, tiles.scores.left, scores.left.rank - 1, range(0, size, BLOCK))
            for place, vector in enumerate(vectors):
                text.line(f"queries[{axis_name(scores.left.rank - 2)} * {size // BLOCK} + {place}] = {vector};")
        with text.block(f"for (int64 begin = 0; begin < {keys}; begin += {KEYS})"):
            text.line(f"const int64 depth = min_int64({keys} - begin, {KEYS});")
            skip_hidden(writer, tiles)
            _by_height(text, heights, lambda rows: _scores(writer, tiles, rows, size))
            with text.loop("row", "0", "rows"):
                make_powers(writer, tiles)
            _by_height(text, heights, lambda rows: _sums(writer, tiles, rows, wide))
        store_rows(writer, tiles)
    work = floordiv(product(tiles.scores.result.shape) * (size + wide), BLOCK)
    kernel = writer.kernel(chunk_count(work, product(tiles.batch)), scratch_bytes(tiles))
    return replace(kernel, text=ACROSS + kernel.text)


def _heights(rows: DimLike) -> list[int]:
    """Numbers of queries, of those that there may be, for which there is code."""
    step = rows if isinstance(rows, int) else math.gcd(*(coefficient for _, coefficient in rows.terms))
    low, high = bounds(rows)
    return [
        height
        for height in range(step, FEW + 1, max(step, 1))
        if height and (low is None or height >= low) and (high is None or height <= high)
    ]


def _by_height(text: CText, heights: Sequence[int], write: Callable[[int], None]) -> None:
    """What is written for one of several numbers of queries."""
    if len(heights) == 1:
        write(heights[0])
        return
    with text.block("switch (rows)"):
        for height in heights:
            with text.block(f"case {height}:"):
                write(height)
                text.line("break;")


@contextmanager
def _own_places(writer: KernelWriter, tiles: Tiles, value: Value) -> Iterator[None]:
    """A block in which the batch axes of a value have the places of its matrix."""
    text = writer.text
    text.line(f"const int64 {(name := text.fresh('matrix'))} = {matrix_number(text, tiles.batch, value.shape[:-2])};")
    with text.block(""):
        decompose(text, name, value.shape[:-2])
        yield


def _row(writer: KernelWriter, value: Value, axis: int, places: Sequence[int]) -> list[str]:
    """Vectors that begin at `places` of an axis; the places of the other axes are variables."""
    text, found = writer.text, []
    for place in places:
        name = text.fresh("row")
        text.line(f"float32x16 {name};")
        with text.block(""):
            text.line(f"const int64 {axis_name(axis)} = {place};")
            elements = VectorElements(text, writer.pointers, axis)
            text.line(f"{name} = {elements.of(value, maps.identity(value.shape))};")
        found.append(name)
    return found


def _scores(writer: KernelWriter, tiles: Tiles, rows: int, size: int) -> None:
    """The products of the block's keys with all queries."""
    text, right = writer.text, tiles.scores.right
    with _own_places(writer, tiles, right), text.loop("key", "0", "depth"):
        text.line(f"const int64 {axis_name(right.rank - 1)} = begin + key;")
        vectors = _row(writer, right, right.rank - 2, range(0, size, BLOCK))
        for row in range(rows):
            text.line(f"float32x16 dot{row} = (float32x16)0;")
            for place, vector in enumerate(vectors):
                query = f"queries[{row * size // BLOCK + place}]"
                text.line(f"dot{row} = muladd({query}, {vector}, dot{row});")
            text.line(f"score[{row * PITCH} + key] = sum_across(dot{row});")


def _sums(writer: KernelWriter, tiles: Tiles, rows: int, wide: int) -> None:
    """Add the block's values times their powers."""
    text, right, vectors = writer.text, tiles.values.right, wide // BLOCK
    together = max(1, _SUMS // rows)
    with _own_places(writer, tiles, right):
        for begin in range(0, vectors, together):
            places = range(begin, min(begin + together, vectors))
            held = [(row, place) for row in range(rows) for place in places]
            with text.block(""):
                _moved(text, held, vectors, "float32x16 sum{0}_{1} = sums[{2}];")
                with text.loop("key", "0", "depth"):
                    text.line(f"const int64 {axis_name(right.rank - 2)} = begin + key;")
                    loaded = _row(writer, right, right.rank - 1, [place * BLOCK for place in places])
                    for row in range(rows):
                        text.line(f"const float32x16 power{row} = (float32x16)score[{row * PITCH} + key];")
                    for row, place in held:
                        name = f"sum{row}_{place}"
                        text.line(f"{name} = muladd(power{row}, {loaded[place - begin]}, {name});")
                _moved(text, held, vectors, "sums[{2}] = sum{0}_{1};")


def _moved(text: CText, held: Sequence[tuple[int, int]], vectors: int, form: str) -> None:
    for row, place in held:
        text.line(form.format(row, place, row * vectors + place))
