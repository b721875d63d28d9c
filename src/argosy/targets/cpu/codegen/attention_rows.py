"""What all attention kernels share: what happens to the scores of a row, and to its sums in the end.

A kernel has the scores of a block of keys in `score`, rows `PITCH` apart, and sums of values in `sums`. The greatest
score of a row so far is `most[row]`, the sum of its powers `total[row]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, equal
from argosy.ir.module import Value
from argosy.rewrite.attention import Attention
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.copying import decompose
from argosy.targets.cpu.codegen.epilogue import Epilogue
from argosy.targets.cpu.codegen.gemm import Gemm
from argosy.targets.cpu.codegen.kernel import KernelWriter
from argosy.targets.cpu.codegen.product_loops import operand_index
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import VectorElements
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import axis_name

__all__ = [
    "KEYS",
    "PITCH",
    "Tiles",
    "begin_rows",
    "declare_rows",
    "make_powers",
    "matrix_number",
    "row_places",
    "scratch_bytes",
    "store_rows",
]

KEYS: Final = 256
"""Keys of a block: the scores of a tile of queries stay in the first cache."""
PITCH: Final = KEYS + BLOCK
"""Scores from one query to the next, so that rows do not crowd the same sets of the cache."""


@dataclass(frozen=True, slots=True)
class Tiles:
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


def scratch_bytes(tiles: Tiles) -> int:
    """Room for the scores and the sums."""
    return (tiles.scores.tile.rows * PITCH + tiles.panels * tiles.room * BLOCK) * 4


def declare_rows(text: CText, tiles: Tiles) -> None:
    """Declare what a kernel keeps for the rows of a tile."""
    height = tiles.scores.tile.rows
    text.line(f"float32 *score = (float32 *)scratch; float32x16 *sums = (float32x16 *)(score + {height * PITCH});")
    text.line(f"float32 most[{height}]; float64 total[{height}];")


def begin_rows(text: CText, tiles: Tiles) -> None:
    """Begin with nothing, for `rows` rows."""
    text.line("for (int64 row = 0; row < rows; ++row) most[row] = -__builtin_inff(), total[row] = 0;")
    text.line(f"for (int64 place = 0; place < {tiles.panels * tiles.room}; ++place) sums[place] = (float32x16)0;")


def matrix_number(text: CText, batch: Sequence[DimLike], own: Sequence[DimLike]) -> str:
    """The number of an operand's matrix, from the places on the batch axes."""
    total: DimLike = 0
    for index, size in zip(operand_index(batch, own), own, strict=True):
        total = index + size * total
    return text.dim(total)


def make_powers(writer: KernelWriter, tiles: Tiles) -> None:
    """Of the row's scores in this block: change them, find the greatest, make powers of them, scale what was before."""
    text = writer.text
    row_places(text, tiles)
    text.line(f"float32 *at = score + row * {PITCH};")
    text.line(f"const int64 whole = depth / {BLOCK} * {BLOCK};")
    text.line("float32x16 best = (float32x16)(-__builtin_inff());")
    by_vectors = _changes(writer, tiles)
    with text.block("if (whole < depth)"):
        text.line(f"for (int64 key = depth; key < whole + {BLOCK}; ++key) at[key] = -__builtin_inff();")
    with text.block(f"for (int64 key = {'whole' if by_vectors else '0'}; key < depth; key += {BLOCK})"):
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


def row_places(text: CText, tiles: Tiles) -> None:
    """Declare the places of row `first + row` on the axes of what the softmax takes, but for the keys."""
    shape, own = tiles.changed.shape[:-1], tiles.scores.result.shape[:-1]
    if len(shape) == len(own) and all(equal(size, its) for size, its in zip(shape, own, strict=True)):
        text.line(f"const int64 {axis_name(len(own) - 1)} = first + row;")
        return
    number = f"{matrix_number(text, tiles.batch, tiles.batch)} * {text.dim(tiles.scores.rows)} + first + row"
    decompose(text, text.let("int64", number), shape)


def _scale_row(text: CText, tiles: Tiles, factor: str) -> None:
    """Multiply the sums of values of the row."""
    with text.loop("panel", "0", str(tiles.panels)), text.loop("vector", "0", str(tiles.values.tile.vectors)):
        place = f"panel * {tiles.room} + row * {tiles.values.tile.vectors} + vector"
        text.line(f"sums[{place}] = sums[{place}] * (float32x16){factor};")


def _changes(writer: KernelWriter, tiles: Tiles) -> bool:
    """What the module does to the scores, in place; by vectors where it can be, and then `best` knows whole vectors."""
    text, changed = writer.text, tiles.changed
    source = tiles.scores.result
    access, last = maps.identity(changed.shape), changed.rank - 1
    name, begin = axis_name(last), "0"

    def vectors(into: CText) -> str:
        elements = VectorElements(into, writer.pointers, last)
        elements.given[source] = into.let("float32x16", "*(const float32x16 *)(at + key)")
        return elements.of(changed, access)

    try:
        vectors(CText())
    except DeclinedError:
        pass
    else:
        begin = "whole"
        with text.block(f"for (int64 key = 0; key < whole; key += {BLOCK})"):
            text.line(f"const int64 {name} = begin + key;")
            text.line(f"const float32x16 x = {vectors(text)};")
            text.line("*(float32x16 *)(at + key) = x;")
            text.line("best = x > best ? x : best;")
    if changed != source:
        with text.loop("key", begin, "depth"), writer.elements.scope():
            text.line(f"const int64 {name} = begin + key;")
            writer.elements.given[source] = text.let("float32", "at[key]")
            text.line(f"at[key] = {writer.elements.of(changed, access)};")
        writer.elements.given.pop(source)
    return begin == "whole"


def _scaled(writer: KernelWriter, tiles: Tiles) -> str:
    """What the module makes of `weight`, of any key: it scales rows."""
    weights = tiles.values.left
    if weights == tiles.softmax:
        return "weight"
    writer.text.line(f"const int64 {axis_name(weights.rank - 1)} = 0;")
    writer.elements.given[tiles.softmax] = "weight"
    return writer.elements.of(weights, maps.identity(weights.shape))


def store_rows(writer: KernelWriter, tiles: Tiles) -> None:
    """Divide by the sums of the powers, and store what the module makes of the result."""
    text, values = writer.text, tiles.values
    epilogue = Epilogue(writer.module, values.result)
    rank = values.result.rank
    with text.loop("row", "0", "rows"):
        text.line(f"const int64 {axis_name(rank - 2)} = first + row;")
        # Without a key there is nothing to average: the sums stay 0.
        text.line(f"const float32 weight = {text.dim(values.depth)} > 0 ? 1.0f / (float32)total[row] : 0;")
        with writer.elements.scope():
            text.line(f"const float32 share = {_scaled(writer, tiles)};")
        _scale_row(text, tiles, "share")
        with text.loop("panel", "0", str(tiles.panels)), text.loop("vector", "0", str(values.tile.vectors)):
            text.line(f"const int64 column = panel * {values.tile.columns} + vector * {BLOCK};")
            place = f"panel * {tiles.room} + row * {values.tile.vectors} + vector"
            epilogue.store(
                writer, f"((const float32 *)(sums + {place}))", "column", vectors=epilogue.vectorises(rank - 1)
            )
