"""Winograd convolution F(m x m, 3 x 3): fewer multiplications for windows of 3 x 3 without strides.

A tile of m x m pixels needs (m + 2)² multiplications for each pair of channels instead of 9 m²: 2.25 times fewer for
m = 2, 4 times for m = 4. Input tiles and weights are transformed, multiplied place by place (each of the (m + 2)²
places is a matrix product over channels, by the same register tiles as all others), and transformed back:

    Y = A' [(G g G') * (B' d B)] A

Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016. Against sums in float64
F(2 x 2) errs no more than the direct sum, which is longer; F(4 x 4) about five times as much.

A chunk takes some tiles through all three stages, so that what lies between them stays near. Where those
are few groups of tiles, several chunks make a part of the output channels of a group each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import Dim, DimLike, ceildiv, floordiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.blocked_elements import Image, store_pixel
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.conv_window import Window
from argosy.targets.cpu.codegen.copying import share
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.products import plain
from argosy.targets.cpu.codegen.reorder import zero_halo
from argosy.targets.cpu.codegen.tile import AHEAD, Depth, Tile, balanced, depth_of, lines_ahead, micro_function
from argosy.targets.cpu.layout import LANES, Blocked

__all__ = ["Transform", "Winograd", "pack_winograd", "winograd_kernel", "winograd_type"]

Matrix = tuple[tuple[Fraction, ...], ...]
_SHARES: Final = 8
"""Pieces into which the work is cut at the least, for as many workers."""
_SHARE: Final = Fraction(7, 8)
"""Of the second cache, for what lies between the stages."""
_SPILLING: Final = 2
"""Second caches that may lie between the stages where the weights do not stay in one anyway."""


def _matrix(text: str) -> Matrix:
    return tuple(tuple(Fraction(entry) for entry in row.split()) for row in text.split(";"))


@dataclass(frozen=True, slots=True)
class Transform:
    """The matrices of F(m x m, 3 x 3): B' of the input, G of the weights, A' of the output."""

    size: int
    source: Matrix
    weight: Matrix
    result: Matrix

    @property
    def reach(self) -> int:
        """Pixels of a tile of the input, on one axis."""
        return self.size + 2


TRANSFORMS: Final = {
    2: Transform(
        2,
        _matrix("1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1"),
        _matrix("1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1"),
        _matrix("1 1 1 0; 0 1 -1 -1"),
    ),
    4: Transform(
        4,
        _matrix("4 0 -5 0 1 0; 0 -4 -4 1 1 0; 0 4 -4 -1 1 0; 0 -2 -1 2 1 0; 0 2 -1 -2 1 0; 0 4 0 -5 0 1"),
        _matrix("1/4 0 0; -1/6 -1/6 -1/6; -1/6 1/6 -1/6; 1/24 1/12 1/6; 1/24 -1/12 1/6; 0 0 1"),
        _matrix("1 1 1 1 1 0; 0 1 -1 2 -2 0; 0 1 1 4 4 0; 0 1 -1 8 -8 1"),
    ),
}


@dataclass(frozen=True, slots=True)
class Winograd:
    """A convolution by F(m x m, 3 x 3), with register tiles of `tile`, for a second cache of `cache` bytes."""

    window: Window
    transform: Transform
    tile: Tile
    cache: int

    @property
    def halo(self) -> Blocked:
        """The halo that whole tiles reach into: zeros, for what is beyond the image must not spoil what is not."""
        size = self.transform.size
        pairs = []
        for axis, (begin, (_, end)) in enumerate(zip(self.window.begins, self.window.halo.halo, strict=True)):
            source, result = self.window.source[axis + 2], self.window.result[axis + 2]
            over = ceildiv(result, size) * size + 2 - begin - source
            pairs.append((begin, max(over, 0) if isinstance(over, int) else end + size - 1))
        return Blocked(tuple(pairs))

    @property
    def places(self) -> int:
        """Multiplications to a tile."""
        return self.transform.reach**2

    @property
    def channels(self) -> int:
        """Input channels."""
        count = self.window.source[1]
        return count if isinstance(count, int) else 0

    @property
    def panels(self) -> int:
        """Panels of output channels."""
        count = self.window.result[1]
        return -(-count // self.tile.columns) if isinstance(count, int) else 0

    @property
    def blocks(self) -> int:
        """Blocks of input channels."""
        return -(-self.channels // LANES)

    @property
    def grid(self) -> tuple[DimLike, DimLike]:
        """Tiles down and across an image."""
        height, width = self.window.result[2:]
        return ceildiv(height, self.transform.size), ceildiv(width, self.transform.size)

    @property
    def together(self) -> int:
        """Tiles that go through the stages together.

        All weights are read once for each group of tiles. Where they fit beside what lies between the stages they
        stay at hand, and small groups do. Else the fewer groups, the better: what does not stay in the second cache
        is written and read once, which costs less than weights that come again.
        """
        one = self.places * (self.blocks * LANES + self.panels * self.tile.columns) * 4
        room = int(self.cache * _SHARE)
        weights = self.places * self.channels * self.panels * self.tile.columns * 4
        most = 4 * self.tile.rows
        if weights <= room // 2:
            room -= weights
        else:
            room = _SPILLING * self.cache
        most = max(self.tile.rows // 2, min(most, room // one))
        whole = most // self.tile.rows * self.tile.rows or most
        total = product(self.grid)
        if isinstance(total, Dim):
            return whole
        _, size, larger = balanced(total, most if total <= most else whole)
        return size + (larger > 0)

    @property
    def parts(self) -> int:
        """Into how many parts the panels of a group are cut; who does several transforms the group's tiles once."""
        groups = self.window.result[0] * ceildiv(product(self.grid), self.together)
        return min(self.panels, -(-_SHARES // max(groups, 1))) if isinstance(groups, int) else 1

    @property
    def place_step(self) -> int:
        """Vectors from one place of the transformed input to the next; not a multiple of 4 KiB."""
        count = self.blocks * self.together
        return count + (count % 64 == 0)


def winograd_type(winograd: Winograd) -> TensorType:
    """The transformed weights: a matrix in panels for each place of a tile."""
    tile = winograd.tile
    return TensorType(FLOAT32, (winograd.places, winograd.panels, winograd.channels, tile.columns))


def pack_winograd(module: Module, weight: Value, winograd: Winograd) -> Kernel:
    """`G g G'` of every window of the weights, computed in float64; columns beyond the last are zeros."""
    writer = KernelWriter(module, [FLOAT32])
    text, tile, reach = writer.text, winograd.tile, winograd.transform.reach
    outputs, channels = weight.shape[:2]
    with share(writer, "unit", winograd.panels * tile.columns * channels):
        text.line(f"const int64 i1 = unit / {winograd.panels * tile.columns};")
        text.line(f"const int64 i0 = unit % {winograd.panels * tile.columns};")
        text.line("float64 g[3][3] = {0}, h[3][8];")
        inside = text.block(f"if (i0 < {text.dim(outputs)})")
        with inside, text.loop("i2", "0", "3"), text.loop("i3", "0", "3"), writer.elements.scope():
            text.line(f"g[i2][i3] = {writer.elements.of(weight, maps.identity(weight.shape))};")
        step = winograd.panels * winograd.channels * tile.columns
        at = f"(i0 / {tile.columns} * {winograd.channels} + i1) * {tile.columns} + i0 % {tile.columns}"
        text.line(f"float32 *to = y0 + {at};")
        with text.loop("i", "0", "3"):
            for row, entries in enumerate(winograd.transform.weight):
                text.line(f"h[i][{row}] = {_sum(entries, lambda j: f'g[i][{j}]', 'float64')};")
        with text.loop("j", "0", str(reach)):
            for row, entries in enumerate(winograd.transform.weight):
                value = _sum(entries, lambda i: f"h[{i}][j]", "float64")
                text.line(f"to[({row * reach} + j) * {step}] = (float32)({value});")
    return writer.kernel(chunk_count(product(weight.shape), winograd.panels * tile.columns * channels))


def _sum(entries: Sequence[Fraction], term: object, kind: str = "float32x16") -> str:
    """A row of a matrix times a column, as C; `term` names the column's entries."""
    text = ""
    for index, entry in enumerate(entries):
        if entry:
            name = term(index)  # type: ignore[operator]
            size = abs(entry)
            factor = name if size == 1 else f"{name} * ({kind})({size.numerator}.0f / {size.denominator}.0f)"
            if kind == "float64":
                factor = name if size == 1 else f"{name} * ({size.numerator}.0 / {size.denominator}.0)"
            sign = "-" if entry < 0 else "+"
            text += f" {sign} {factor}" if text else (f"-{factor}" if entry < 0 else factor)
    return text or "0"


def winograd_kernel(
    module: Module, anchor: Instruction, winograd: Winograd, source: Blocked, images: Mapping[str, Image],
    layout: Blocked,
) -> Kernel:  # fmt: skip
    """The convolution of the blocked image `temporary0` with the transformed weights `temporary1`.

    The arguments are those of `direct_conv.conv_kernel`.
    """
    bias = len(anchor.operands) > 2 and anchor.operands[2] is not None
    writer = KernelWriter(module, [layout.dtype], [FLOAT32] * (3 if bias else 2))
    text, shape, together = writer.text, winograd.window.result, winograd.together
    total = product(winograd.grid)
    groups = ceildiv(total, together)
    parts = winograd.parts
    units = shape[0] * groups * parts
    inner = winograd.places * winograd.place_step
    text.line("int64 held = -1;  // the group whose transformed tiles are at hand")
    with share(writer, "unit", units):
        text.line(f"const int64 share = unit % {parts}, place_of_group = unit / {parts};")
        text.line(f"const int64 group = place_of_group % {text.dim(groups)}, i0 = place_of_group / {text.dim(groups)};")
        text.line(f"const int64 lower = {winograd.panels} * share / {parts};")
        text.line(f"const int64 upper = {winograd.panels} * (share + 1) / {parts};")
        text.line("float32x16 *restrict v = scratch;")
        text.line(f"float32x16 *restrict m = v + {inner};")
        text.line(f"const int64 first = group * {together}, count = {text.dim(total)};")
        if not layout.is_bare:
            blocks = text.dim(ceildiv(shape[1], LANES))
            with text.block("if (group == 0 && share == 0)"), text.loop("block", "0", blocks):
                zero_halo(text, layout, shape[2:], f"i0 * {blocks} + block")
        with text.block("if (held != place_of_group)"):
            _transform_source(text, winograd, source)
        text.line("held = place_of_group;")
        functions = _products(text, winograd)
        _transform_result(writer, winograd, anchor, images, layout, bias=bias)
    work = floordiv(product(shape) * winograd.channels * 9, 2 * LANES)
    scratch = (inner + winograd.places * winograd.panels * winograd.tile.vectors * together) * LANES * 4
    kernel = writer.kernel(chunk_count(work, units), scratch)
    return replace(kernel, text=functions + kernel.text)


def _tile_of(text: CText, winograd: Winograd) -> None:
    """Declare the place of tile number `t` of the group; behind the last it is the last one again."""
    text.line("const int64 number = min_int64(first + t, count - 1);")
    across = text.dim(winograd.grid[1])
    size = winograd.transform.size
    text.line(f"const int64 down = number / {across} * {size}, right = number % {across} * {size};")


def _transform_source(text: CText, winograd: Winograd, source: Blocked) -> None:
    """`B' d B` of each tile and block of channels, into `v[place][block][tile]`."""
    reach, matrix = winograd.transform.reach, winograd.transform.source
    spatial = winograd.window.source[2:]
    line = text.dim(source.steps(spatial)[0])
    plane = text.dim(source.plane(spatial))
    shifts = [have - begin for (have, _), begin in zip(source.halo, winograd.window.begins, strict=True)]
    with text.loop("block", "0", str(winograd.blocks)), text.loop("t", "0", str(winograd.together)):
        _tile_of(text, winograd)
        pixel = f"(down + {shifts[0]}) * {line} + right + {shifts[1]}"
        text.line("const float32x16 *restrict p = (const float32x16 *)temporary0")
        text.line(f"    + (i0 * {winograd.blocks} + block) * {plane} + {pixel};")
        for column in range(reach):
            for row in range(reach):
                text.line(f"const float32x16 d{row}_{column} = p[{row} * {line} + {column}];")
            for row in range(reach):
                value = _sum(matrix[row], lambda i, column=column: f"d{i}_{column}")
                text.line(f"const float32x16 e{row}_{column} = {value};")
        text.line(f"float32x16 *restrict to = v + block * {winograd.together} + t;")
        for row in range(reach):
            for column in range(reach):
                value = _sum(matrix[column], lambda j, row=row: f"e{row}_{j}")
                text.line(f"to[{(row * reach + column) * winograd.place_step}] = {value};")


def _products(text: CText, winograd: Winograd) -> str:
    """`m[place][panel][tile] = sum over channels of v times weights`; the functions that it calls."""
    tile = winograd.tile
    blocks, tail = depth_of(winograd.channels)
    parts, size, larger = balanced(winograd.together, tile.rows)
    depth = Depth(blocks, tail, str(winograd.together * LANES))
    ahead = lines_ahead(tile, parts)
    matrix_size = winograd.channels * tile.columns
    functions = ""
    for rows in {size, size + 1} if larger else {size}:
        offsets = [str(row * LANES) for row in range(rows)]
        functions += micro_function(f"rows{rows}", plain(FLOAT32), offsets, tile.vectors, depth, AHEAD if ahead else ())
    with text.loop("place", "0", str(winograd.places)), text.loop("panel", "lower", "upper"):
        matrix = f"(place * {winograd.panels} + panel)"
        text.line(f"const float32 *b = temporary1 + {matrix} * {matrix_size};")
        if ahead:
            # Behind the last panel nothing is read, only fetched.
            skipped = f"(panel + 1 < upper ? 1 : {winograd.panels} + lower - panel)"
            text.line(f"const int64 next = (int64)(b + {skipped} * {matrix_size});")
        begin = 0
        for part in range(parts):
            rows = size + (part < larger)
            a = f"(const float32 *)(v + place * {winograd.place_step} + {begin})"
            to = f"m + ({matrix} * {winograd.together} + {begin}) * {tile.vectors}"
            following = f", next + {part * winograd.blocks * ahead * LANES * 4}, {ahead}" if ahead else ""
            text.line(f"{ENTRY}_rows{rows}({a}, b, {to}{following});")
            begin += rows
    return functions


def _transform_result(
    writer: KernelWriter, winograd: Winograd, anchor: Instruction, images: Mapping[str, Image], layout: Blocked,
    *, bias: bool,
) -> None:  # fmt: skip
    """`A' m A` of each tile and block of output channels, and what follows, pixel by pixel."""
    text, tile = writer.text, winograd.tile
    size, reach, matrix = winograd.transform.size, winograd.transform.reach, winograd.transform.result
    shape = winograd.window.result
    height, width = (text.dim(extent) for extent in shape[2:])
    blocks = text.dim(ceildiv(shape[1], LANES))
    step = winograd.panels * winograd.together * tile.vectors
    begin, end = f"lower * {tile.vectors}", f"min_int64(upper * {tile.vectors}, {blocks})"
    with text.loop("block", begin, end), text.loop("t", "0", str(winograd.together)):
        text.line("if (first + t >= count) break;")
        _tile_of(text, winograd)
        panel = f"block / {tile.vectors}" if tile.vectors > 1 else "block"
        vector = f" + block % {tile.vectors}" if tile.vectors > 1 else ""
        text.line(f"const float32x16 *p = m + ({panel} * {winograd.together} + t) * {tile.vectors}{vector};")
        for column in range(reach):
            for row in range(reach):
                text.line(f"const float32x16 d{row}_{column} = p[{(row * reach + column) * step}];")
            for row in range(size):
                value = _sum(matrix[row], lambda i, column=column: f"d{i}_{column}")
                text.line(f"const float32x16 e{row}_{column} = {value};")
        text.line(f"float32x16 out[{size * size}];")
        added = f" + *(const float32x16 *)(temporary2 + block * {LANES})" if bias else ""
        for row in range(size):
            for column in range(size):
                value = _sum(matrix[column], lambda j, row=row: f"e{row}_{j}")
                text.line(f"out[{row * size + column}] = {value}{added};")
        text.line("#pragma clang loop unroll(full)")
        with text.loop("pixel", "0", str(size * size)):
            text.line(f"const int64 i2 = down + pixel / {size}, i3 = right + pixel % {size};")
            with text.block(f"if (i2 < {height} && i3 < {width})"):
                store_pixel(writer, images, layout, (anchor.result(), "out[pixel]"))
