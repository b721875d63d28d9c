"""Depthwise convolution over blocked images: each channel with a window of its own, sixteen channels at a time.

A tile is neighbouring pixels of one line. Along a line of the window every input pixel is loaded once and multiplied
by all weights that meet it, which are in registers like the sums. Codes are widened to float32, in which few
products of them sum exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import Dim, DimLike, ceildiv, floordiv
from argosy.ir.dtype import FLOAT32, INT32, DType
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.blocked_elements import Image, store_pixel
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.conv_window import Window
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.reorder import zero_halo
from argosy.targets.cpu.codegen.tile import balanced
from argosy.targets.cpu.layout import LANES, Blocked
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["LONGEST", "depthwise_kernel", "depthwise_rows", "depthwise_type", "pack_depthwise", "sums_exactly"]

_EXACT: Final = 1 << 24
"""Whole numbers up to here are exact in float32."""
LONGEST: Final = 9
"""Weights of a line of the window that registers can hold beside some sums."""
_MOST_PIXELS: Final = 14


def depthwise_rows(arch: CpuArch, window: Window) -> int:
    """Pixels of a tile: as many sums as the registers hold beside a line of weights and a pixel."""
    vectors = arch.vector_registers // max(1, LANES * FLOAT32.bits // arch.vector_bits)
    return max(1, min(vectors - window.kernel[-1] - 1, _MOST_PIXELS))


def sums_exactly(window: Window, source: DType, weight: DType) -> bool:
    """Whether sums of products of codes are exact in float32, in which a window is summed."""
    taps = product(window.kernel)
    return isinstance(taps, int) and taps * (1 << (source.bits + weight.bits)) <= _EXACT


def depthwise_type(window: Window) -> TensorType:
    """The packed weights: `[blocks][window][16]`."""
    return TensorType(FLOAT32, (ceildiv(window.source[1], LANES), product(window.kernel), LANES))


def pack_depthwise(module: Module, weight: Value) -> Kernel:
    """Weights `[C, 1, *kernel]` in blocks of 16 channels; those beyond the last are zeros."""
    writer = KernelWriter(module, [FLOAT32])
    text = writer.text
    channels, _, *kernel = weight.shape
    taps = text.dim(product(tuple(kernel)))
    total = ceildiv(channels, LANES) * product(tuple(kernel))
    with share(writer, "unit", total):
        decompose(text, f"unit % {taps}", kernel, 2)
        with text.loop("lane", "0", str(LANES)), writer.elements.scope():
            text.line(f"const int64 i0 = unit / {taps} * {LANES} + lane;")
            text.line(f"if (i0 >= {text.dim(channels)}) {{ y0[unit * {LANES} + lane] = 0; continue; }}")
            element = writer.elements.of(weight, maps.identity(weight.shape))
            text.line(f"y0[unit * {LANES} + lane] = (float32){element};")
    return writer.kernel(chunk_count(product(weight.shape), total))


def depthwise_kernel(
    module: Module, anchor: Instruction, window: Window, pixels: int, source: Blocked, images: Mapping[str, Image],
    layout: Blocked,
) -> Kernel:  # fmt: skip
    """The convolution of the blocked image `temporary0` with the packed weights `temporary1`, by tiles of `pixels`.

    The other arguments are those of `direct_conv.conv_kernel`.
    """
    bias = len(anchor.operands) > 2 and anchor.operands[2] is not None
    writer = KernelWriter(module, [layout.dtype], [source.dtype, *[FLOAT32] * (2 if bias else 1)])
    text, shape = writer.text, window.result
    stored = f"{scalar.storage_type(source.dtype)}x16"
    whole = anchor.result().dtype is INT32
    width = shape[-1]
    last = axis_name(len(shape) - 1)
    lines, blocks = product(shape[2:-1]), ceildiv(shape[1], LANES)
    units = shape[0] * blocks * lines
    widths = _widths(width, pixels)
    functions = ""
    arguments: list[str] = []
    for count in widths:
        function, arguments = _function(text, window, source, count)
        functions += function
    with share(writer, "unit", units):
        text.line(f"const int64 line = unit % {text.dim(lines)}, image = unit / {text.dim(lines)};")
        text.line(f"const int64 i0 = image / {text.dim(blocks)}, block = image % {text.dim(blocks)};")
        if not layout.is_bare:
            with text.block("if (line == 0)"):
                zero_halo(text, layout, shape[2:], "image")
        decompose(text, "line", shape[2:-1], 2)
        plane = text.dim(source.plane(window.source[2:]))
        text.line(f"const float32x16 *restrict b = (const float32x16 *)temporary1 + block * {product(window.kernel)};")
        added = f" + *(const float32x16 *)(temporary2 + block * {LANES})" if bias else ""
        parts = text.let("int64", text.dim(ceildiv(width, pixels)))
        extent = text.dim(width)
        with text.loop("part", "0", parts):
            text.line(f"const int64 size = {extent} / {parts}, wider = {extent} % {parts};")
            text.line("const int64 begin = part * size + min_int64(part, wider), pixels = size + (part < wider);")
            places: list[DimLike] = []
            for axis, (stride, before) in enumerate(zip(window.strides, window.begins, strict=True)):
                index = maps.axis_index(axis + 2, shape[axis + 2])
                places.append((0 if axis == len(shape) - 3 else index * stride) - before)
            pixel = text.dim(source.pixel(window.source[2:], places))
            place = f"image * {plane} + {pixel} + begin * {window.strides[-1]}"
            text.line(f"const {stored} *restrict a = (const {stored} *)temporary0 + {place};")
            for count in widths:
                with text.block(f"if (pixels == {count})"):
                    text.line(f"float32x16 sums[{count}];")
                    text.line(f"{ENTRY}_tile{count}({', '.join(['a', 'b', 'sums', *arguments])});")
                    text.line("#pragma clang loop unroll(full)")
                    with text.loop("row", "0", str(count)):
                        text.line(f"const int64 {last} = begin + row;")
                        value = "to_int(sums[row])" if whole else f"sums[row]{added}"
                        store_pixel(writer, images, layout, (anchor.result(), value))
    work = floordiv(product(shape) * product(window.kernel), LANES)
    kernel = writer.kernel(chunk_count(work, units))
    return replace(kernel, text=functions + kernel.text)


def _widths(width: DimLike, pixels: int) -> list[int]:
    """The pixels that tiles of a line may have."""
    if isinstance(width, Dim):
        return list(range(1, pixels + 1))
    _, size, wider = balanced(width, pixels)
    return sorted({size, size + 1} - {0}) if wider else [size]


def _function(text: CText, window: Window, source: Blocked, pixels: int) -> tuple[str, list[str]]:
    """A function that sums a tile of `pixels`, as text, and the arguments behind its pointers."""
    steps = source.steps(window.source[2:])
    *outer, across = window.kernel
    stride, dilation = window.strides[-1], window.dilations[-1]
    parameters, arguments, place = [], [], "a"
    loops = []
    taps = across
    for axis in reversed(range(len(outer))):
        move = steps[axis] * window.dilations[axis]
        name = str(move)
        if isinstance(move, Dim):
            name = f"move{axis}"
            parameters.append(name)
            arguments.append(text.dim(move))
        place += f" + r{axis} * {name}"
        loops.append(f"  for (int64 r{axis} = 0; r{axis} < {outer[axis]}; ++r{axis})")
        taps *= outer[axis]
    head = "".join(f", int64 {name}" for name in parameters)
    stored = f"{scalar.storage_type(source.dtype)}x16"
    operands = f"const {stored} *restrict a, const float32x16 *restrict b, float32x16 *restrict tile{head}"
    lines = [f"static inline __attribute__((always_inline)) void {ENTRY}_tile{pixels}({operands}) {{"]
    lines += [f"  float32x16 c{pixel} = (float32x16)0;" for pixel in range(pixels)]
    lines += [*reversed(loops), "  {", f"    const {stored} *p = {place};"]
    lines += [f"    const float32x16 w{tap} = b[{tap}];" for tap in range(across)]
    lines.append(f"    b += {across};")
    for column in range((pixels - 1) * stride + (across - 1) * dilation + 1):
        uses = [
            (tap, (column - tap * dilation) // stride)
            for tap in range(across)
            if (column - tap * dilation) % stride == 0 and 0 <= (column - tap * dilation) // stride < pixels
        ]
        if uses:
            number = f"p[{column}]" if source.dtype is FLOAT32 else f"{source.dtype}_to_float32x16(p[{column}])"
            lines.append(f"    const float32x16 x{column} = {number};")
        lines += [f"    c{pixel} = muladd(x{column}, w{tap}, c{pixel});" for tap, pixel in uses]
    lines.append("  }")
    lines += [f"  tile[{pixel}] = c{pixel};" for pixel in range(pixels)]
    return "\n".join([*lines, "}", ""]), arguments
