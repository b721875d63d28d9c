"""Convolution along the lines of planar images: vectors of neighbouring pixels times single weights.

A tile is vectors of 16 pixels, beside and below each other, for some outputs of a group, all of it in registers:

    tile[output][pixels] += image[channel][pixels + tap] * weight[output][channel][tap]

Nothing is multiplied by zero where a group has few channels or outputs, and image and result are as programs have
them. Where a tile reaches over the edge of the image, or with a stride, what it reads is copied first (`line_patch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import ceildiv, floordiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.epilogue import Epilogue
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.line_patch import declare_patch
from argosy.targets.cpu.codegen.line_tiles import Lines
from argosy.targets.cpu.codegen.tile import BLOCK, balanced
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["line_kernel", "pack_lines"]

_FEW_TAPS: Final = 8
"""Taps of a line that are written out."""


def pack_lines(module: Module, weight: Value, lines: Lines) -> Kernel:
    """Weights `[M, C / group, *kernel]` in the order in which a tile reads them."""
    writer = KernelWriter(module, [FLOAT32])
    text = writer.text
    parts, size, larger = balanced(lines.each, lines.outputs)
    del parts
    whole = larger * (size + 1)
    with share(writer, "i0", lines.window.group * lines.each):
        text.line(f"const int64 own = i0 % {lines.each}, wide = own < {whole};")
        text.line(f"const int64 count = {size} + wide, from = wide ? 0 : {whole};")
        text.line("const int64 lane = (own - from) % max_int64(count, 1), first = i0 - lane;")
        with text.loop("step", "0", str(lines.depth)), writer.elements.scope():
            decompose(text, "step", weight.shape[1:], 1)
            element = writer.elements.of(weight, maps.identity(weight.shape))
            text.line(f"y0[first * {lines.depth} + step * count + lane] = (float32){element};")
    return writer.kernel(chunk_count(product(weight.shape), lines.window.group * lines.each))


def line_kernel(module: Module, anchor: Instruction, x: Value, lines: Lines) -> Kernel:
    """The convolution of `x` with the packed weights `temporary0`; `temporary1` is the bias, where the anchor has one.

    `module` is the part of the op behind the anchor, and that of the image.
    """
    window = lines.window
    bias = len(anchor.operands) > 2 and anchor.operands[2] is not None
    writer = KernelWriter(module, [module.results[0].dtype], [FLOAT32] * (2 if bias else 1))
    text, shape = writer.text, window.result
    *outer, width = shape[2:]
    vectors, tiles = ceildiv(width, BLOCK), ceildiv(ceildiv(width, BLOCK), lines.vectors)
    upper, height = product(tuple(outer[:-1])), outer[-1] if outer else 1
    bands = ceildiv(height, lines.band)
    functions, calls = _functions(lines, bias=bias)
    total = shape[0] * window.group * upper * bands * tiles
    with share(writer, "unit", total):
        text.line(f"const int64 tile = unit % {text.dim(tiles)}, lines_of = unit / {text.dim(tiles)};")
        text.line(f"const int64 band = lines_of % {text.dim(bands)}, rest = lines_of / {text.dim(bands)};")
        text.line(f"const int64 group = rest / {text.dim(upper)} % {window.group};")
        text.line(f"const int64 i0 = rest / {text.dim(upper)} / {window.group};")
        text.line(f"const int64 each = {text.dim(vectors)} / {text.dim(tiles)};")
        text.line(f"const int64 wider = {text.dim(vectors)} % {text.dim(tiles)};")
        text.line(f"const int64 count = each + (tile < wider), end = max_int64({text.dim(width)} - {BLOCK}, 0);")
        # The last vector ends where its line does; a tile that is this vector alone begins with it.
        text.line(f"const int64 begin = min_int64((tile * each + min_int64(tile, wider)) * {BLOCK}, end);")
        text.line(f"const int64 last = min_int64(begin + (count - 1) * {BLOCK}, end) - begin;")
        decompose(text, f"rest % {text.dim(upper)}", outer[:-1], 2)
        text.line(f"const int64 top = min_int64(band * {lines.band}, {text.dim(height - lines.rows)});")
        text.line(f"const int64 bottom = min_int64((band + 1) * {lines.band}, {text.dim(height)});")
        declare_patch(writer, x, lines)
        text.line(f"float32x16 sums[{max(lines.heights) * lines.rows * max([*lines.widths, 1])}];")
        with text.block(f"for (int64 next = band * {lines.band}; next < bottom; next += {lines.rows})"):
            text.line(f"const int64 first = min_int64(next, {text.dim(height - lines.rows)});")
            _parts(writer, anchor, lines, calls, bias=bias)
    work = floordiv(product(shape) * lines.depth, BLOCK)
    kernel = writer.kernel(chunk_count(work, total), lines.scratch)
    return replace(kernel, text=functions + kernel.text)


def _parts(
    writer: KernelWriter, anchor: Instruction, lines: Lines, calls: Mapping[tuple[int, int], str], *, bias: bool
) -> None:
    """Sum and store a tile for each part of the outputs of a group."""
    text, rank = writer.text, anchor.result().rank
    epilogue = Epilogue(writer.module, anchor.result())
    parts, size, larger = balanced(lines.each, lines.outputs)
    if rank > 3:
        text.line(f"const float32 *a = patch + (first - top) * {lines.window.strides[-2]} * step{rank - 4};")
    else:
        text.line("const float32 *a = patch;")
    with text.loop("part", "0", str(parts)):
        text.line(f"const int64 own = part * {size} + min_int64(part, {larger}), outputs = {size} + (part < {larger});")
        text.line(f"const int64 output = group * {lines.each} + own;")
        text.line(f"const float32 *b = temporary0 + output * {lines.depth};")
        if bias:
            text.line("const float32 *added = temporary1 + output;")
        with text.block("switch (outputs * 64 + count)"):
            for (height, along), call in calls.items():
                text.line(f"case {height * 64 + along}: {call} break;")
        with text.loop("row", "0", str(lines.rows)), text.loop("lane", "0", "outputs"), text.loop("v", "0", "count"):
            if rank > 3:
                text.line(f"const int64 {axis_name(rank - 2)} = first + row;")
            text.line(f"const int64 i1 = output + lane, at = begin + (v + 1 == count ? last : v * {BLOCK});")
            sums = f"((const float32 *)(sums + (lane * {lines.rows} + row) * count + v))"
            epilogue.store(writer, sums, "at", vectors=epilogue.vectorises(rank - 1))


def _functions(lines: Lines, *, bias: bool) -> tuple[str, Mapping[tuple[int, int], str]]:
    """Functions for the sizes that tiles may have, as text, and the call for each."""
    steps = [f"move{axis}" for axis in range(len(lines.window.kernel) - 1)]
    numbers = ["last", "plane", *steps, *(["below"] if lines.rows > 1 else [])]
    operands = ["a", "b", "sums", *(["added"] if bias else [])]
    head = "const float32 *restrict a, const float32 *restrict b, float32x16 *restrict tile"
    head += (", const float32 *restrict added" if bias else "") + "".join(f", int64 {name}" for name in numbers)
    functions, calls = "", {}
    for height in lines.heights:
        for along in lines.widths:
            name = f"{ENTRY}_lines{height}x{along}"
            calls[height, along] = f"{name}({', '.join([*operands, *numbers])});"
            body = _tile(lines, height, along, bias=bias)
            functions += f"static __attribute__((noinline)) void {name}({head}) {{\n{body}}}\n"
    return functions, calls


def _tile(lines: Lines, height: int, along: int, *, bias: bool) -> str:
    """The body of a function that sums a tile of `height` outputs by `along` vectors on each of its lines."""
    window = lines.window
    across, stride, dilation = window.kernel[-1], window.strides[-1], window.dilations[-1]
    places = [
        (row * along + v, f"{f'{row} * below + ' if row else ''}{'last' if v + 1 == along else v * BLOCK}")
        for row in range(lines.rows)
        for v in range(along)
    ]
    text = []
    for m in range(height):
        start = f"(float32x16)added[{m}]" if bias else "(float32x16)0"
        text += [f"  float32x16 c{m}_{v} = {start};" for v, _ in places]
    text.append(f"  for (int64 channel = 0; channel < {lines.channels}; ++channel) {{")
    place = "a + channel * plane"
    for axis, taps in enumerate(window.kernel[:-1]):
        text.append(f"  for (int64 r{axis} = 0; r{axis} < {taps}; ++r{axis})")
        place += f" + r{axis} * move{axis}"
    text += ["  {", f"    const float32 *restrict line = {place};"]
    text.append(f"#pragma clang loop {'unroll(full)' if across <= _FEW_TAPS else 'unroll_count(2)'}")
    text.append(f"    for (int64 tap = 0; tap < {across}; ++tap, b += {height}) {{")
    shift = f"tap * {dilation}"
    if stride > 1:
        shift = f"{shift} % {stride} * {lines.phase} + {shift} / {stride}"
    text.append(f"      const float32 *restrict from = line + {shift};")
    text += [f"      const float32x16 x{v} = load_float32x16(from + {at});" for v, at in places]
    for m in range(height):
        text.append(f"      const float32x16 w{m} = (float32x16)b[{m}];")
        text += [f"      c{m}_{v} = muladd(x{v}, w{m}, c{m}_{v});" for v, _ in places]
    text += ["    }", "  }", "  }"]
    for m in range(height):
        text += [f"  tile[{m * len(places) + v}] = c{m}_{v};" for v, _ in places]
    return "\n".join([*text, ""])
