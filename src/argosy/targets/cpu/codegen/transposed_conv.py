"""Transposed convolution over blocked images, as one direct convolution for each phase of the strides.

Places of the result that lie a multiple of the strides apart meet the same weights: of a window of k taps every
stride-th one. With `o + begin = stride * t + phase`

    y[o] = sum over j of x[t - j] w[phase + stride * j]

so each phase is a convolution without strides, of a part of the window, walked backwards.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import Dim, DimLike, ceildiv, dim_max, floordiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import Dims, TensorType
from argosy.ops.convolution import ConvTranspose
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.blocked_elements import Image, store_pixel
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.products import plain
from argosy.targets.cpu.codegen.reorder import zero_halo
from argosy.targets.cpu.codegen.tile import Depth, Tile, balanced, depth_of, micro_function
from argosy.targets.cpu.layout import LANES, Blocked
from argosy.targets.lowering.accesses import DeclinedError, op_of, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["Phase", "Scatter", "pack_scatter", "scatter_kernel", "scatter_type"]

_MOST_PHASES: Final = 16


@dataclass(frozen=True, slots=True)
class Phase:
    """On each axis: the phase, the first place of the result and its `t`, how many places, how many taps."""

    shifts: tuple[int, ...]
    firsts: tuple[int, ...]
    sources: tuple[int, ...]
    counts: Dims
    taps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scatter:
    """A transposed convolution: sizes of the image and of what it is spread by."""

    source: Dims
    result: Dims
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]

    @staticmethod
    def of(anchor: Instruction) -> Scatter:
        """The geometry of a transposed convolution. Raises DeclinedError where it has no fast form."""
        op = op_of(anchor, ConvTranspose)
        x, weight, result = present(anchor, 0), present(anchor, 1), anchor.result()
        kernel = tuple(size for size in weight.shape[2:] if isinstance(size, int))
        begins = tuple(begin for begin in op.geometry(x.shape[2:], weight.shape[2:])[1] if isinstance(begin, int))
        if len(kernel) + len(begins) != 2 * (x.rank - 2):
            raise DeclinedError("the size of the window or its padding is known only when the program runs")
        if op.group != 1:
            raise DeclinedError("it is grouped")
        if any(dilation > 1 and stride > 1 for dilation, stride in zip(op.dilations, op.strides, strict=True)):
            raise DeclinedError("it is strided and dilated")
        if math.prod(op.strides) > _MOST_PHASES:
            raise DeclinedError("its strides have too many phases")
        channels = weight.shape[0] if isinstance(weight.shape[0], int) else x.shape[1]
        source = (x.shape[0], channels, *x.shape[2:])
        return Scatter(source, result.shape, kernel, op.strides, op.dilations, begins)

    @property
    def phases(self) -> list[Phase]:
        """Every phase."""
        found = []
        for shifts in itertools.product(*map(range, self.strides)):
            sources = tuple(
                -(-(begin - shift) // stride)
                for begin, shift, stride in zip(self.begins, shifts, self.strides, strict=True)
            )
            firsts = tuple(
                source * stride + shift - begin
                for source, stride, shift, begin in zip(sources, self.strides, shifts, self.begins, strict=True)
            )
            counts = tuple(
                dim_max(ceildiv(size - first, stride), 0)
                for size, first, stride in zip(self.result[2:], firsts, self.strides, strict=True)
            )
            taps = tuple(
                max(0, -(-(size - shift) // stride))
                for size, shift, stride in zip(self.kernel, shifts, self.strides, strict=True)
            )
            found.append(Phase(shifts, firsts, sources, counts, taps))
        return found

    @property
    def halo(self) -> Blocked:
        """The halo that the phases reach into."""
        pairs = []
        for axis, stride in enumerate(self.strides):
            size, result = self.source[axis + 2], self.result[axis + 2]
            reach = (-(-self.kernel[axis] // stride) - 1) * self.dilations[axis]
            over = floordiv(result - 1 + self.begins[axis], stride) - (size - 1)
            if not isinstance(over, int):
                raise DeclinedError("how far it reaches is known only when the program runs")
            pairs.append((max(0, reach - self.begins[axis] // stride), max(0, over)))
        return Blocked(tuple(pairs))

    @property
    def channels(self) -> DimLike:
        """Input channels."""
        return self.source[1]


def scatter_type(scatter: Scatter, tile: Tile) -> TensorType:
    """The packed weights: `[panels][channels x window][columns]` for one phase after the other."""
    depth = product(scatter.kernel) * scatter.channels
    return TensorType(FLOAT32, (ceildiv(scatter.result[1], tile.columns) * depth, tile.columns))


def _starts(scatter: Scatter) -> Iterator[tuple[Phase, int]]:
    """The phases, each with the taps of those before it."""
    before = 0
    for phase in scatter.phases:
        yield phase, before
        taps = 1
        for count in phase.taps:
            taps *= count
        before += taps


def pack_scatter(module: Module, weight: Value, scatter: Scatter, tile: Tile) -> Kernel:
    """Weights `[C, M, *kernel]` in panels for each phase, in the order in which a tile sums."""
    writer = KernelWriter(module, [FLOAT32])
    text = writer.text
    channels, outputs = weight.shape[:2]
    panels, count = ceildiv(outputs, tile.columns), text.dim(channels)
    with share(writer, "unit", panels * channels):
        text.line(f"const int64 panel = unit / {count}, i0 = unit % {count};")
        text.line(f"const int64 begin = i0 / {LANES} * {LANES}, size = min_int64({LANES}, {count} - begin);")
        for phase, before in _starts(scatter):
            taps = product(phase.taps)
            if taps == 0:
                continue
            with text.block(""), text.loop("tap", "0", text.dim(taps)):
                start = f"{text.dim(panels)} * {count} * {before} + (panel * {count} + begin) * {text.dim(taps)}"
                text.line(f"float32 *to = y0 + ({start} + tap * size + i0 - begin) * {tile.columns};")
                text.line("int64 rest = tap;")
                for axis in reversed(range(len(phase.taps))):
                    place = f"rest % {phase.taps[axis]} * {scatter.strides[axis]} + {phase.shifts[axis]}"
                    text.line(f"const int64 {axis_name(axis + 2)} = {place}; rest /= {phase.taps[axis]};")
                with text.loop("lane", "0", str(tile.columns)), writer.elements.scope():
                    text.line(f"const int64 i1 = panel * {tile.columns} + lane;")
                    text.line(f"if (i1 >= {text.dim(outputs)}) {{ to[lane] = 0; continue; }}")
                    element = writer.elements.of(weight, maps.identity(weight.shape))
                    text.line(f"to[lane] = (float32){element};")
    return writer.kernel(chunk_count(product(weight.shape), panels * channels))


def scatter_kernel(
    module: Module, anchor: Instruction, scatter: Scatter, tile: Tile, source: Blocked, images: Mapping[str, Image],
    result: Blocked,
) -> Kernel:  # fmt: skip
    """The arguments are those of `direct_conv.conv_kernel`."""
    bias = len(anchor.operands) > 2 and anchor.operands[2] is not None
    writer = KernelWriter(module, [result.dtype], [FLOAT32] * (3 if bias else 2))
    text, shape = writer.text, scatter.result
    panels, blocks = ceildiv(shape[1], tile.columns), ceildiv(shape[1], LANES)
    functions: dict[str, str] = {}
    if not result.is_bare:
        with share(writer, "image", shape[0] * blocks):
            zero_halo(text, result, shape[2:], "image")
    pieces: DimLike = 0
    for phase, before in _starts(scatter):
        *outer, width = phase.counts
        parts = ceildiv(width, tile.rows)
        lines = product(tuple(outer))
        units = panels * shape[0] * lines * parts
        pieces = dim_max(pieces, units)
        with text.block(""), share(writer, "unit", units):
            text.line(f"const int64 part = unit % {text.dim(parts)}, rest = unit / {text.dim(parts)};")
            text.line(f"const int64 line = rest % {text.dim(lines)};")
            text.line(f"const int64 i0 = rest / {text.dim(lines)} % {text.dim(shape[0])};")
            text.line(f"const int64 panel = rest / {text.dim(lines)} / {text.dim(shape[0])};")
            text.line(f"const int64 size = {text.dim(width)} / {text.dim(parts)};")
            text.line(f"const int64 wider = {text.dim(width)} % {text.dim(parts)};")
            text.line("const int64 begin = part * size + min_int64(part, wider), pixels = size + (part < wider);")
            _sums(text, scatter, phase, before, tile, source, functions)
            _outer_places(text, scatter, phase, outer)
            last = axis_name(len(shape) - 1)
            with text.loop("row", "0", "pixels"), text.loop("v", "0", str(tile.vectors)):
                text.line(f"const int64 {last} = (begin + row) * {scatter.strides[-1]} + {phase.firsts[-1]};")
                text.line(f"const int64 block = panel * {tile.vectors} + v;")
                text.line(f"if (block >= {text.dim(blocks)}) break;")
                value = f"sums[row * {tile.vectors} + v]"
                if bias:
                    value += f" + *(const float32x16 *)(temporary2 + block * {LANES})"
                store_pixel(writer, images, result, (anchor.result(), value))
    work = floordiv(product(scatter.source) * product(scatter.kernel) * shape[1], LANES)
    kernel = writer.kernel(chunk_count(work, pieces))
    return replace(kernel, text="".join(functions.values()) + kernel.text)


def _outer_places(text: CText, scatter: Scatter, phase: Phase, outer: list[DimLike]) -> None:
    """Declare the places of the result on all axes but the last."""
    if not outer:
        return
    text.line("int64 left = line;")
    for axis in reversed(range(len(outer))):
        count = text.dim(outer[axis])
        place = f"left % {count} * {scatter.strides[axis]} + {phase.firsts[axis]}"
        text.line(f"const int64 {axis_name(axis + 2)} = {place}; left /= {count};")


def _sums(
    text: CText, scatter: Scatter, phase: Phase, before: int, tile: Tile, source: Blocked, functions: dict[str, str]
) -> None:
    """Declare `sums`, the tile of a phase; the functions that it takes are entered by name."""
    text.line(f"float32x16 sums[{tile.rows * tile.vectors}];")
    taps = product(phase.taps)
    if taps == 0:
        text.line(f"for (int64 i = 0; i < {tile.rows * tile.vectors}; ++i) sums[i] = (float32x16)0;")
        return
    spatial, channels = scatter.source[2:], scatter.channels
    with text.block(""):
        decompose(text, "line", phase.counts[:-1], 2)
        text.line(f"const int64 {axis_name(len(spatial) + 1)} = begin;")
        places = [maps.axis_index(axis + 2, count) + phase.sources[axis] for axis, count in enumerate(phase.counts)]
        blocks, plane = text.dim(ceildiv(channels, LANES)), text.dim(source.plane(spatial))
        pixel = text.dim(source.pixel(spatial, places))
        text.line(f"const float32 *a = temporary0 + (i0 * {blocks} * {plane} + {pixel}) * {LANES};")
        count = text.dim(channels)
        start = f"{text.dim(ceildiv(scatter.result[1], tile.columns))} * {count} * {before}"
        text.line(f"const float32 *b = temporary1 + ({start} + panel * {count} * {text.dim(taps)}) * {tile.columns};")
        parameters: list[str] = []
        arguments: list[str] = []

        def number(name: str, size: DimLike) -> str:
            if isinstance(size, int):
                return str(size)
            parameters.append(name)
            arguments.append(text.dim(size))
            return name

        steps = source.steps(spatial)
        depth = Depth(
            *depth_of(channels),
            number("plane", source.plane(spatial) * LANES),
            tuple(
                (phase.taps[axis], number(f"move{axis}", step * (-scatter.dilations[axis] * LANES)))
                for axis, step in enumerate(steps)
            ),
        )
        number("depth", channels)
        with text.block("switch (pixels)"):
            for pixels in _widths(phase.counts[-1], tile):
                name = f"taps{'x'.join(map(str, phase.taps))}_{pixels}"
                offsets = [str(pixel * LANES) for pixel in range(pixels)]
                functions[name] = micro_function(name, plain(FLOAT32), offsets, tile.vectors, depth, parameters)
                text.line(f"case {pixels}: {ENTRY}_{name}({', '.join(['a', 'b', 'sums', *arguments])}); break;")


def _widths(width: DimLike, tile: Tile) -> list[int]:
    """The pixels that tiles of a line may have."""
    if isinstance(width, Dim):
        return list(range(1, tile.rows + 1))
    _, size, wider = balanced(width, tile.rows)
    return sorted({size, size + 1} - {0}) if wider else ([size] if size else [])
