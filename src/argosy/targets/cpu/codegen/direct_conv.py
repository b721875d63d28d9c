"""Direct convolution over blocked images: tiles of neighbouring pixels times panels of packed weights.

A tile is pixels of one line of the result (or of several lines where they are short), by the columns of a panel, which
are output channels. The sum runs over blocks of input channels, then over the window, then over the channels
of a block; the weights lie in that order, so each is read once, in sequence. No pixel outside the image is asked
for: the input has a halo.

Where windows are single pixels and lines are short, all pixels are one line to it.

A planar image, of few channels, is walked along its lines instead: the sum runs over channels, over the window but
for its last axis, and over that, along which what a pixel reads lies side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import Dim, DimLike, ceildiv, floordiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module
from argosy.ir.types import Dims
from argosy.ops.shapes import product
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.blocked_elements import Image, store_pixel
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.conv_window import Channels, Window, panel_rows, weights_type
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.products import Products
from argosy.targets.cpu.codegen.reorder import zero_halo
from argosy.targets.cpu.codegen.tile import (
    AHEAD,
    Depth,
    Tile,
    balanced,
    depth_of,
    lines_ahead,
    micro_function,
    vector_type,
)
from argosy.targets.cpu.layout import LANES, Blocked, Padded, Planar
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["as_a_line", "conv_kernel", "fetches_rows_ahead", "walks_panels_first"]

_LINE: Final = 64
_SOME_BLOCKS: Final = 4
"""Blocks of channels from which fetching the next one pays; behind the last it is in vain."""
_FEWER: Final = Fraction(7, 8)
"""The share of tiles from which on it pays to walk all pixels as one line, and work out where each lies."""
_NOTICED: Final = Fraction(1, 8)
"""The share of the work from which on it matters how often an image is read."""


@dataclass(frozen=True, slots=True)
class _Tiling:
    """How the result is cut into tiles: `lines` lines by `pixels` pixels; `parts` of them make a line."""

    lines: int
    pixels: int
    parts: DimLike
    groups: DimLike

    @staticmethod
    def of(result: Dims, tile: Tile, steps: Dims) -> _Tiling:
        """Tiles for a result of dims `result`, of a source with pixel `steps`."""
        *outer, width = result[2:]
        count = product(tuple(outer))
        if isinstance(width, Dim):
            return _Tiling(1, tile.rows, ceildiv(width, tile.rows), count)
        parts, _, _ = balanced(width, tile.rows)
        lines = 1
        if parts == 1 and len(outer) == 1 and isinstance(count, int) and width and isinstance(steps[0], int):
            lines = max(1, min(count, tile.rows // width))
        return _Tiling(lines, -(-width // parts), parts, ceildiv(count, lines))


def as_a_line(window: Window, tile: Tile, source: Blocked | Planar) -> Window:
    """The window over all pixels as over one line, where it is one of them and that makes fewer tiles of more rows."""
    sizes = [size for size in window.result[2:] if isinstance(size, int)]
    moved = {*window.kernel, *window.strides} != {1} or source.lanes == 1 or not source.is_bare
    if moved or len(sizes) < len(window.kernel) or window.source[2:] != window.result[2:]:
        return window
    tiling = _Tiling.of(window.result, tile, source.steps(window.source[2:]))
    count = math.prod(sizes)
    parts, _, _ = balanced(count, tile.rows)
    tiles = tiling.groups * tiling.parts
    if isinstance(tiles, Dim) or parts > tiles * _FEWER:
        return window
    source_dims, result_dims = (*window.source[:2], count), (*window.result[:2], count)
    return replace(
        window,
        source=source_dims,
        result=result_dims,
        kernel=(1,),
        strides=(1,),
        dilations=(1,),
        begins=(0,),
        ends=(0,),
    )


def walks_panels_first(
    window: Window, tile: Tile, products: Products, source: Blocked | Planar, arch: CpuArch
) -> bool:  # fmt: skip
    """Whether all panels are summed for a tile before the next tile, rather than all tiles for a panel.

    What is walked within stays in the second cache if it takes at most half of it, and is read once from beyond; so the
    weights are if they fit and the image does not. It pays where reading the image takes a good part of the time, and
    where the result is smaller: a tile then writes a little of it in many places. Else each panel is read once.
    """
    weights, image = _sizes(window, tile, products, source)
    result = product((1, *window.result[1:])) * products.sums.bits // 8
    room = arch.second_cache // 2
    if isinstance(weights, Dim) or weights > room:
        return False
    # Cycles for a pixel of the result, a channel and a panel.
    pixels = math.prod(map(min, window.kernel, window.strides))
    reading = Fraction(pixels * products.left.bits, 8 * arch.third_cache_rate)
    vectors = Fraction(tile.columns * products.sums.bits, arch.vector_bits)
    working = math.prod(window.kernel) * vectors / (products.group * arch.multiply_adds)
    if reading < working * _NOTICED:
        return False
    if isinstance(image, Dim) or isinstance(result, Dim):
        return True
    return image > max(room, result)


def _sizes(window: Window, tile: Tile, products: Products, source: Blocked | Planar) -> tuple[DimLike, DimLike]:
    """Bytes of the packed weights and of an image."""
    weights = product(weights_type(window, window.result[1], tile, products).shape) * products.right.bits // 8
    return weights, product(source.kind((1, *window.source[1:])).shape) * source.dtype.bits // 8


def fetches_rows_ahead(window: Window, tile: Tile, products: Products, source: Blocked | Planar, arch: CpuArch) -> bool:
    """Whether tiles fetch what they read of the next block of channels: there are some, and they are not at hand."""
    used = sum(_sizes(window, tile, products, source))
    depth = Channels.of(window, tile).depth
    if source.lanes == 1 or (isinstance(depth, int) and depth < _SOME_BLOCKS * LANES):
        return False
    return isinstance(used, Dim) or used > arch.second_cache // 2


def conv_kernel(
    module: Module, anchor: Instruction, window: Window, tile: Tile, products: Products, source: Blocked | Planar,
    images: Mapping[str, Image], result: Blocked, arch: CpuArch,
) -> Kernel:  # fmt: skip
    """The convolution of the image `temporary0`, blocked or planar, with the packed weights `temporary1`.

    `temporary2`, where the anchor has a bias, is that in blocks. `module` is the part of the op behind the anchor;
    `images` are those of its parameters that are blocked, by pointer.
    """
    bias = len(anchor.operands) > 2 and anchor.operands[2] is not None
    temporaries = [products.left, products.right, *([FLOAT32] if bias else [])]
    writer = KernelWriter(module, [result.dtype], temporaries)
    text, left, right = writer.text, scalar.storage_type(products.left), scalar.storage_type(products.right)
    shape, channels = window.result, Channels.of(window, tile).depth
    walked = as_a_line(window, tile, source)
    if walked is not window:
        window, source = walked, Blocked.bare(1, source.dtype)
    tiling = _Tiling.of(window.result, tile, source.steps(window.source[2:]))
    panels = ceildiv(shape[1], tile.columns)
    blocks = ceildiv(shape[1], LANES)
    tiles = shape[0] * tiling.groups * tiling.parts
    total = panels * tiles
    panels_first = walks_panels_first(window, tile, products, source, arch)
    ahead = 0 if panels_first or source.lanes == 1 else lines_ahead(tile, tiles, products.right.bits)
    fetches_rows = fetches_rows_ahead(window, tile, products, source, arch)
    functions, calls = _functions(window, tile, products, tiling, source, text, ahead, fetches_rows=fetches_rows)
    with share(writer, "unit", total):
        inner = panels if panels_first else tiles
        text.line(f"const int64 inner = unit % {text.dim(inner)}, outer = unit / {text.dim(inner)};")
        text.line(f"const int64 panel = {'inner' if panels_first else 'outer'};")
        text.line(f"const int64 place = {'outer' if panels_first else 'inner'};")
        text.line(f"const int64 part = place % {text.dim(tiling.parts)}, rest = place / {text.dim(tiling.parts)};")
        text.line(f"const int64 group = rest % {text.dim(tiling.groups)}, i0 = rest / {text.dim(tiling.groups)};")
        if not result.is_bare:
            with text.block("if (part == 0 && group == 0)"), text.loop("v", "0", str(tile.vectors)):
                text.line(f"const int64 block = panel * {tile.vectors} + v;")
                text.line(f"if (block >= {text.dim(blocks)}) break;")
                zero_halo(text, result, shape[2:], f"i0 * {text.dim(blocks)} + block")
        Channels.of(window, tile).declare(text)
        _tile_place(text, window, tiling, source, left)
        step, row = text.dim(panel_rows(window, tile, products)), tile.columns * products.group
        text.line(f"const {right} *restrict b = temporary1 + panel * {step} * {row};")
        if ahead:
            # Behind the last panel nothing is read, only fetched.
            own = f"inner * {text.dim(ceildiv(channels, LANES) * product(window.kernel) * ahead * _LINE)}"
            text.line(f"const int64 next = (int64)(b + {step} * {row}) + {own};")
        text.line(f"{vector_type(products.sums)} sums[{tile.rows * tile.vectors}];")
        with text.block("switch (lines * 64 + pixels)"):
            for (lines, pixels), call in calls.items():
                text.line(f"case {lines * 64 + pixels}: {call} break;")
        with text.loop("row", "0", "lines * pixels"):
            last = axis_name(len(shape) - 1)
            if len(window.kernel) < len(shape) - 2:
                text.line("const int64 position = begin + row;")
                decompose(text, "position", shape[2:], 2)
            elif tiling.lines > 1:
                text.line("const int64 line = row / pixels;")
                text.line(f"const int64 {axis_name(len(shape) - 2)} = first + line, {last} = begin + row % pixels;")
            else:
                text.line(f"const int64 {last} = begin + row;")
                decompose(text, "first", shape[2:-1], 2)
            with text.loop("v", "0", str(tile.vectors)):
                text.line(f"const int64 block = panel * {tile.vectors} + v;")
                text.line(f"if (block >= {text.dim(blocks)}) break;")
                value = f"sums[row * {tile.vectors} + v]"
                if bias:
                    value += f" + *(const float32x16 *)(temporary2 + block * {LANES})"
                store_pixel(writer, images, result, (anchor.result(), value))
    work = floordiv(product(shape) * product(window.kernel) * channels, LANES * products.group)
    kernel = writer.kernel(chunk_count(work, total))
    return replace(kernel, text=products.text + functions + kernel.text)


def _tile_place(text: CText, window: Window, tiling: _Tiling, source: Padded, left: str) -> None:
    """Declare the first line and pixel of a tile, its size, and `a`, the input pixel under its first one."""
    shape, spatial = window.result, window.source[2:]
    width, count = text.dim(shape[-1]), text.dim(product(shape[2:-1]))
    parts = text.dim(tiling.parts)
    text.line(f"const int64 size = {width} / {parts}, wider = {width} % {parts};")
    text.line("const int64 begin = part * size + min_int64(part, wider), pixels = size + (part < wider);")
    text.line(f"const int64 first = group * {tiling.lines}, lines = min_int64({tiling.lines}, {count} - first);")
    text.line("int64 pixel;")
    with text.block(""):
        last = len(shape) - 1
        decompose(text, "first", shape[2:-1], 2)
        text.line(f"const int64 {axis_name(last)} = begin;")
        places: list[DimLike] = []
        for axis, (stride, pad) in enumerate(zip(window.strides, window.begins, strict=True)):
            places.append(maps.axis_index(axis + 2, shape[axis + 2]) * stride - pad)
        text.line(f"pixel = {text.dim(source.pixel(spatial, places))};")
    planes, plane = text.dim(source.planes(window.source[1])), text.dim(source.plane(spatial))
    text.line(f"const {left} *restrict a = temporary0 + ((i0 * {planes} + base) * {plane} + pixel) * {source.lanes};")


def _functions(
    window: Window,
    tile: Tile,
    products: Products,
    tiling: _Tiling,
    source: Padded,
    text: CText,
    ahead: int,
    *,
    fetches_rows: bool,
) -> tuple[str, dict[tuple[int, int], str]]:
    """Functions for the sizes that tiles may have, as text, and the call for each."""
    shape, channels, spatial = window.result, Channels.of(window, tile).depth, window.source[2:]
    *outer, width = shape[2:]
    count = product(tuple(outer))
    if isinstance(width, Dim):
        widths = set(range(1, tile.rows + 1))
    else:
        _, size, wider = balanced(width, tile.rows)
        widths = {size, size + 1} if wider else {size}
    heights = {tiling.lines}
    if isinstance(count, int) and count % tiling.lines:
        heights.add(count % tiling.lines)
    parameters = list(AHEAD) if ahead else []
    arguments = ["next", str(ahead)] if ahead else []

    def number(name: str, size: DimLike) -> str:
        if isinstance(size, int):
            return str(size)
        if name not in parameters:
            parameters.append(name)
            arguments.append(text.dim(size))
        return name

    steps = source.steps(spatial)
    plane = number("plane", source.plane(spatial) * source.lanes)
    blocks, tail = depth_of(channels)
    if source.lanes == 1:
        blocks, tail = "0", str(window.kernel[-1])
    elif window.group > 1 and len({count for _, count in Channels.of(window, tile).spans}) > 1:
        blocks, tail = f"depth / {LANES}", f"depth % {LANES}"
        parameters.append("depth")
        arguments.append("depth")
    else:
        number("depth", channels)
    moves = [
        number(f"move{axis}", step * (dilation * source.lanes))
        for axis, (step, dilation) in enumerate(zip(steps, window.dilations, strict=True))
    ]
    taps = list(zip(window.kernel, moves, strict=True))
    if source.lanes == 1 and isinstance(channels, int):
        taps = [(channels, plane), *taps[:-1]]
    depth = Depth(blocks, tail, plane, tuple(taps))
    line = steps[-2] * window.strides[-2] if tiling.lines > 1 else 0
    functions, calls = "", {}
    for height in sorted(heights):
        for pixels in sorted(widths - {0}):
            offsets = _offsets(height, pixels, line, window.strides[-1], source.lanes)
            name = f"tile{height}x{pixels}"
            functions += micro_function(
                name, products, offsets, tile.vectors, depth, parameters, fetches_rows=fetches_rows
            )
            calls[height, pixels] = f"{ENTRY}_{name}({', '.join(['a', 'b', 'sums', *arguments])});"
    return functions, calls


def _offsets(height: int, pixels: int, line: DimLike, stride: int, lanes: int) -> Sequence[str]:
    if not isinstance(line, int):
        raise DeclinedError("tiles of several lines of symbolic length")
    return [str((row * line + pixel * stride) * lanes) for row in range(height) for pixel in range(pixels)]
