"""The end of a transposed convolution by columns: the numbers that overlap are added up, line by line.

Every input pixel and tap give a number, `x w`, for the place `stride * pixel + dilation * tap - begin` of the result.
Places that are a multiple of the stride apart are a phase; to a phase a tap adds neighbouring pixels at neighbouring
places, so that sums are kept phase by phase and laced at the end. The numbers are columns of a product, or where few
channels are summed, made in passing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import DimLike, floordiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module
from argosy.ir.types import Dims
from argosy.ops.convolution import ConvTranspose
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.epilogue import Epilogue
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.lowering.accesses import DeclinedError, op_of, present
from argosy.targets.lowering.kernel_text import axis_name, strides_of

__all__ = ["Columns", "sum_columns"]

_ROOM: Final = 8192
"""Sums that are kept in the first cache."""
_FEW: Final = 2
"""Channels of a group up to which no product is worth its columns."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A transposed convolution: sizes of the image, the result and of what the image is spread by."""

    source: Dims
    result: Dims
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: Dims
    group: int
    each: int
    """Outputs of a group."""
    channels: int
    """Input channels of a group."""

    @staticmethod
    def of(anchor: Instruction) -> Columns:
        """The geometry of a transposed convolution. Raises DeclinedError where its weights have no known size."""
        op = op_of(anchor, ConvTranspose)
        x, weight = present(anchor, 0), present(anchor, 1)
        sizes = [size for size in weight.shape if isinstance(size, int)]
        if len(sizes) != weight.rank or not math.prod(sizes):
            raise DeclinedError("the size of its weights is known only when the program runs, or 0")
        begins = op.geometry(x.shape[2:], weight.shape[2:])[1]
        return Columns(
            x.shape, anchor.result().shape, tuple(sizes[2:]), op.strides, op.dilations, begins,
            op.group, sizes[1], sizes[0] // op.group,
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """Columns that a pixel becomes in each group: numbers for every output and tap."""
        return self.each * math.prod(self.kernel)

    @property
    def pixels(self) -> DimLike:
        """Pixels of the image."""
        return product(self.source[2:])

    @property
    def in_passing(self) -> bool:
        """Whether the numbers are made where they are added."""
        return self.channels <= _FEW

    @property
    def places(self) -> int:
        """Places of a phase whose sums are kept at a time."""
        return max(BLOCK, _ROOM // self.strides[-1] // BLOCK * BLOCK)

    @property
    def sums(self) -> int:
        """Numbers of the sums of all phases."""
        return self.places * self.strides[-1]


def sum_columns(module: Module, anchor: Instruction, columns: Columns, *, turned: bool) -> Kernel:
    """The sums of `temporary0`, columns `[N][group][rows][pixels]`, or `[N][group][pixels][rows]` where `turned`.

    Or, made in passing, of the image `temporary0` times the weights `temporary1`, both row-major. The last temporary is
    the bias, where there is one. `module` is the part of the op behind the anchor.
    """
    bias = len(anchor.operands) > 2 and anchor.operands[2] is not None
    temporaries = [FLOAT32] * ((2 if columns.in_passing else 1) + bias)
    writer = KernelWriter(module, [module.results[0].dtype], temporaries)
    text, shape, stride = writer.text, columns.result, columns.strides[-1]
    width, begin = text.dim(shape[-1]), text.dim(columns.begins[-1])
    epilogue, places = Epilogue(module, anchor.result()), columns.places
    vectors = epilogue.vectorises(len(shape) - 1)
    total = product(shape[:-1])
    text.line("float32 *sums = (float32 *)scratch;")
    if stride > 1:
        text.line(f"float32 *laced = sums + {columns.sums + _head(columns)};")
    with share(writer, "unit", total):
        decompose(text, "unit", shape[:-1])
        text.line(f"const int64 group = i1 / {columns.each}, own = i1 % {columns.each};")
        text.line(f"const int64 first = floordiv_int64({begin}, {stride});")
        text.line(f"const int64 behind = floordiv_int64({begin} + {width} - 1, {stride}) + 1;")
        with text.block(f"for (int64 place = first; place < behind; place += {places})"):
            text.line(f"const int64 count = min_int64({places}, behind - place);")
            start = f"temporary{len(temporaries) - 1}[i1]" if bias else "0"
            with text.loop("phase", "0", str(stride)), text.loop("i", "0", "count"):
                text.line(f"sums[phase * {places} + i] = {start};")
            _add(text, columns, turned=turned)
            text.line(f"const int64 from = max_int64(0, place * {stride} - {begin});")
            text.line(f"const int64 to = min_int64({width}, (place + count) * {stride} - {begin});")
            if stride > 1:
                text.line(f"const int64 offset = from + {begin} - place * {stride};")
                with text.loop("i", "0", "count"), text.loop("phase", "0", str(stride)):
                    text.line(f"laced[i * {stride} + phase - offset] = sums[phase * {places} + i];")
            with text.block(f"for (int64 at = from; at < to; at += {BLOCK})"):
                # What a vector stores behind the last place, the next round stores again.
                place = f"({'laced' if stride > 1 else 'sums'} + (at - from))"
                epilogue.store(writer, place, "at", vectors=vectors)
    work = floordiv(product(columns.source) * columns.rows, BLOCK)
    scratch = 4 * (columns.sums + BLOCK + (columns.sums + _head(columns) + BLOCK if stride > 1 else 0))
    return writer.kernel(chunk_count(work, total), scratch)


def _head(columns: Columns) -> int:
    """Numbers before the laced ones: room for the phases that begin before the result."""
    return -(-columns.strides[-1] // BLOCK) * BLOCK


def _add(text: CText, columns: Columns, *, turned: bool) -> None:
    """Add to the sums what every tap gives to places `place` and following."""
    *outer, across = columns.kernel
    stride, dilation = columns.strides[-1], columns.dilations[-1]
    spatial = columns.source[2:]
    steps = strides_of(spatial)
    pixels, rows = text.dim(columns.pixels), columns.rows
    inner, tap = "0", "0"
    for axis, taps in enumerate(outer):
        move = columns.strides[axis]
        text.line(f"for (int64 r{axis} = 0; r{axis} < {taps}; ++r{axis}) {{")
        at = f"{axis_name(axis + 2)} + {text.dim(columns.begins[axis])} - r{axis} * {columns.dilations[axis]}"
        text.line(f"const int64 q{axis} = {at}, p{axis} = q{axis} / {move};")
        text.line(f"if (q{axis} < 0 || q{axis} % {move} || p{axis} >= {text.dim(spatial[axis])}) continue;")
        inner += f" + p{axis} * {text.dim(steps[axis])}"
        tap = f"({tap}) * {taps} + r{axis}"
    text.line(f"const int64 line = {inner}, taps = (own * {math.prod(outer)} + {tap}) * {across};")
    with text.loop("tap", "0", str(across)):
        text.line(f"const int64 shift = tap * {dilation} / {stride}, phase = tap * {dilation} % {stride};")
        text.line("const int64 low = max_int64(place, shift);")
        text.line(f"const int64 high = min_int64(place + count, {text.dim(spatial[-1])} + shift);")
        text.line(f"float32 *restrict to = sums + phase * {columns.places} - place;")
        if columns.in_passing:
            with text.loop("c", "0", str(columns.channels)):
                channel = f"(group * {columns.channels} + c)"
                text.line(f"const float32 weight = temporary1[{channel} * {rows} + taps + tap];")
                image = f"(i0 * {columns.group * columns.channels} + {channel}) * {pixels}"
                text.line(f"const float32 *restrict x = temporary0 + {image} + line - shift;")
                text.line("for (int64 i = low; i < high; ++i) to[i] = muladd(weight, x[i], to[i]);")
        else:
            matrix = f"(i0 * {columns.group} + group) * {rows} * {pixels}"
            if turned:
                text.line(f"const float32 *restrict x = temporary0 + {matrix} + (line - shift) * {rows} + taps + tap;")
                text.line(f"for (int64 i = low; i < high; ++i) to[i] += x[i * {rows}];")
            else:
                text.line(
                    f"const float32 *restrict x = temporary0 + {matrix} + (taps + tap) * {pixels} + line - shift;"
                )
                text.line("for (int64 i = low; i < high; ++i) to[i] += x[i];")
    text.line("}" * len(outer))
