"""Register tiles: the inner loops of every fast product, whatever it is a product of.

A tile is `rows` rows (of a matrix, or pixels) by `vectors` vectors of 16 columns (features), all of it in registers.
One step of the sum loads a row of packed weights, and multiplies it by one number for each row of the tile:

    tile[row][columns] += a[row][k] * b[k][columns]

The numbers lie in *blocks* of 16: `a` is `[blocks][pixels][16]`, so that a row's place is the same in every
block and every offset is a constant. Weights are *panels*: `b` is `[blocks][taps][16][columns]`, read in order. Of
short numbers (`products`) a group takes the place of one, in rows and in panels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import DType
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import ENTRY
from argosy.targets.cpu.codegen.products import Products

__all__ = [
    "AHEAD",
    "BLOCK",
    "RESUME",
    "Depth",
    "Tile",
    "balanced",
    "depth_of",
    "lines_ahead",
    "micro_function",
    "tile_for",
    "vector_type",
]

BLOCK: Final = 16
"""Numbers to a block, and lanes of a logical vector: 64 bytes of float32, whatever the width of the registers."""
_MOST_ROWS: Final = 24
_USUAL: Final = 2
_SHAPES: Final = {2: 1.0, 3: 1.01, 1: 1.06}
"""Vectors that a tile may be wide, with what a column costs: the narrow one reads more numbers for each."""
_MOST_SHARES: Final = 32
"""Tiles of a panel from which fetching ahead no longer pays: the first tile, which waits, is few of them."""
_FEW_STEPS: Final = 7
"""Steps that are written out: a loop over them would cost as much as they do."""
_CHAINS: Final = 8
"""Sums that must be in flight so that none waits for the one before."""
_VECTORS: Final = {
    "float32": "float32x16", "float64": "float64x16", "int32": "uint32x16", "uint32": "uint32x16",
    "int64": "uint64x16", "uint64": "uint64x16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tile:
    """How many rows and vectors of 16 columns are in registers at a time."""

    rows: int
    vectors: int

    @property
    def columns(self) -> int:
        """Columns of a panel."""
        return self.vectors * BLOCK


def vector_type(dtype: DType) -> str | None:
    """The C type of 16 sums of a type; integers wrap, so they are unsigned. None where there are no fast tiles."""
    return _VECTORS.get(dtype.name)


def tile_for(arch: CpuArch, dtype: DType, columns: DimLike) -> Tile:
    """The largest tile of sums of `dtype` that the registers hold beside a row of weights and one more.

    Where several vectors fit beside each other, as many as waste the fewest columns behind the last.
    """
    registers = max(1, BLOCK * dtype.bits // arch.vector_bits)
    vectors = 1
    if registers == 1:
        vectors = min(_SHAPES, key=lambda count: _cost(count, columns)) if isinstance(columns, int) else _USUAL
    row = vectors * registers
    return Tile(max(1, min((arch.vector_registers - row - 1) // row, _MOST_ROWS)), vectors)


def _cost(vectors: int, columns: int) -> float:
    """Columns with those behind the last, by tiles of some vectors."""
    width = vectors * BLOCK
    return -(-columns // width) * width * _SHAPES[vectors]


def balanced(count: int, most: int) -> tuple[int, int, int]:
    """Cut `count` into as few parts of at most `most` as it takes: `(parts, size, how many are one larger)`."""
    parts = max(1, -(-count // most))
    return parts, count // parts, count % parts


@dataclass(frozen=True, slots=True)
class Depth:
    """What a tile sums over: `blocks` whole blocks, `plane` elements apart, then `tail` more numbers of another.

    At each block there are `taps`: pairs of a count and the elements that a step moves `a` by. Texts are C.
    """

    blocks: str
    tail: str
    plane: str
    taps: tuple[tuple[int, str], ...] = ()


def depth_of(size: DimLike, name: str = "depth") -> tuple[str, str]:
    """Whole blocks and the tail of a sum over `size` numbers, as C; `name` is the C of a symbolic size."""
    if isinstance(size, Dim):
        return f"{name} / {BLOCK}", f"{name} % {BLOCK}"
    return str(size // BLOCK), str(size % BLOCK)


def lines_ahead(tile: Tile, tiles: DimLike, bits: int = 32) -> int:
    """Cache lines of the next panel that each of a panel's `tiles` fetches for every block that it sums.

    The first tile of a panel waits for its weights, the others have them at hand: if all of them fetch a share of the
    next panel, memory works all the time. 0 where that does not pay. `bits` are those of a weight.
    """
    if isinstance(tiles, Dim) or not 0 < tiles <= _MOST_SHARES:
        return 0
    return -(-BLOCK * tile.vectors * bits // (32 * tiles))


RESUME: Final = "more"
"""The parameter that tells a tile that is made in several goes whether this is not the first."""
AHEAD: Final = ("next", "lines")
"""Parameters of a function that fetches while it computes: an address, and lines for each block of the sum."""


def micro_function(
    name: str,
    products: Products,
    offsets: Sequence[str],
    vectors: int,
    depth: Depth,
    parameters: Sequence[str] = (),
    pitch: int | None = None,
    *,
    fetches_rows: bool = False,
) -> str:
    """A C function that fills a tile: `(a, b, tile, *parameters)`, the parameters int64.

    Row r reads `a` at `offsets[r]`. `tile` is `[rows][pitch]` vectors, by default no more than the tile's. The panel
    `b` is aligned to 64 bytes. With `RESUME` among the parameters it adds to what the tile holds where that is not 0;
    with those of `AHEAD`, it brings what will be read next into the second cache: loads that miss it would stop a
    machine that waits for nothing else. So it does, where it `fetches_rows`, what its rows read of the next block.
    """
    left, right = scalar.storage_type(products.left), scalar.storage_type(products.right)
    vector = _VECTORS[products.sums.name]
    rows = len(offsets)
    # Few sums wait for each other's latency; then several partial ones take turns.
    ways = max(1, min(4, _CHAINS // (rows * vectors)))
    ways = 1 << (ways.bit_length() - 1)
    sums = [f"c{way}_{row}_{v}" for way in range(ways) for row in range(rows) for v in range(vectors)]
    places = [row * (pitch or vectors) + v for row in range(rows) for v in range(vectors)]
    starts = [f"({vector})0"] * len(sums)
    if products.head:  # the first of the partial ones begin with what is there
        starts[: len(places)] = [f"(({vector} *)b)[{place % vectors}]" for place in range(len(places))]
    if RESUME in parameters:
        starts[: len(places)] = [f"{RESUME} ? tile[{at}] : {start}" for at, start in zip(places, starts, strict=False)]
    head = "".join(f", int64 {parameter}" for parameter in parameters)
    operands = f"const {left} *restrict a, const {right} *restrict b, {vector} *restrict tile"
    lines = [
        f"static __attribute__((noinline)) void {ENTRY}_{name}({operands}{head}) {{",
        *(f"  {vector} {total} = {first};" for total, first in zip(sums, starts, strict=True)),
    ]
    if products.head:
        lines.append(f"  b += {vectors * BLOCK * products.group};")
    step = [_step(products, offsets, vectors, way) for way in range(ways)]
    ahead = _FETCH if AHEAD[0] in parameters else []
    if not ahead and not depth.taps and depth.plane == str(BLOCK):  # blocks that follow each other are one
        lines += _nest(products, depth, "0", "1", f"({depth.blocks}) * {BLOCK}", step, [])
    elif depth.blocks != "0":
        if fetches_rows:
            nearby = [f"    __builtin_prefetch(p + {depth.plane} + {offset}, 0, 2);" for offset in offsets]
            ahead = [*ahead, *nearby]
        lines += _nest(products, depth, "0", depth.blocks, str(BLOCK), step, ahead)
    if depth.tail != "0":
        lines += _nest(products, depth, depth.blocks, f"{depth.blocks} + 1", depth.tail, step[:1], [])
    for row in range(rows):
        for v in range(vectors):
            total = " + ".join(f"c{way}_{row}_{v}" for way in range(ways))
            lines.append(f"  tile[{places[row * vectors + v]}] = {total};")
    return "\n".join([*lines, "}", ""])


_FETCH: Final = [
    f"    for (int64 line = 0; line < {AHEAD[1]}; ++line, {AHEAD[0]} += 64)",
    f"      __builtin_prefetch((const void *){AHEAD[0]}, 0, 2);",
]


def _nest(
    products: Products,
    depth: Depth,
    begin: str,
    end: str,
    count: str,
    steps: Sequence[Sequence[str]],
    ahead: Sequence[str],
) -> list[str]:
    """Loops over blocks, taps and the numbers of a block."""
    lines = [f"  for (int64 block = {begin}; block < {end}; ++block) {{"]
    place = f"a + block * ({depth.plane})"
    for number, (taps, move) in enumerate(depth.taps):
        if taps > 1:
            lines.append(f"  for (int64 tap{number} = 0; tap{number} < {taps}; ++tap{number})")
            place += f" + tap{number} * ({move})"
    lines += [
        "  {",
        f"    const {scalar.storage_type(products.left)} *p = {place};",
        *ahead,
        f"#pragma clang loop {_unrolling(count, len(steps))}",
        f"    for (int64 k = 0; k < {count}; k += {len(steps) * products.group}) {{",
    ]
    for step in steps:
        lines += step
    return [*lines, "    }", "  }", "  }"]


def _unrolling(count: str, ways: int) -> str:
    """How the innermost loop is unrolled."""
    if count.isdecimal() and int(count) <= _FEW_STEPS:
        return "unroll(full)"
    return "unroll_count(2)" if ways == 1 else "unroll(disable)"


def _step(products: Products, offsets: Sequence[str], vectors: int, way: int) -> list[str]:
    """One number, or group of them, of every row times one row of the panel."""
    sums = products.sums
    group = products.group
    vector = _VECTORS[sums.name] if group == 1 else "uint32x16"
    lines = ["      {"]
    lines += [f"      const {vector} b{v} = *(const {vector} *)(b + {v * BLOCK * group});" for v in range(vectors)]
    lines.append(f"      b += {vectors * BLOCK * group};")
    if _overlap(offsets):  # the compiler would keep what the next step reads again, in registers that there are not
        lines.append('      __asm__("" : "+r"(p));')
    for row, offset in enumerate(offsets):
        at = f"{offset} + k + {way * group}"
        number = f"p[{at}]" if group == 1 else f"load_word(p + {at})"
        lines.append(f"      const {vector} a{row} = ({vector}){number}{' ^ 0x80808080u' if products.reading else ''};")
        for v in range(vectors):
            total = f"c{way}_{row}_{v}"
            if group > 1:
                term = f"{products.function}(a{row}, b{v}, {total})"
            else:
                term = f"muladd(a{row}, b{v}, {total})" if sums.is_float else f"{total} + a{row} * b{v}"
            lines.append(f"      {total} = {term};")
    return [*lines, "      }"]


def _overlap(offsets: Sequence[str]) -> bool:
    """Whether a row reads in one step what another reads in a step nearby."""
    places = sorted(int(offset) for offset in offsets if offset.isdigit())
    return any(right - left < BLOCK for left, right in pairwise(places))
