"""The kernels of sorting: a stable radix sort of integer keys, eight bits a pass, all lines at once.

A pass counts the digits of each block, sums the counts digit by digit over the blocks of a line, and then moves every
key to its place: behind those of lesser digits, of earlier blocks, and those before it in its own block, whose order a
sort in registers finds (A. Andersson, S. Nilsson, "Implementing radixsort", 1998; the blocks are those of N. Satish,
M. Harris, M. Garland, "Designing efficient sorting algorithms for manycore GPUs", 2009). So n keys of b bits cost b / 8
passes over them. Positions travel with the keys. Nothing depends on the order in which programs run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import FLOAT32, INT32, INT64, UINT8, DType
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.lowering.accesses import DeclinedError

__all__ = [
    "DIGITS",
    "SORT_BLOCKS",
    "SortedLines",
    "base_kernel",
    "before_kernel",
    "count_kernel",
    "key_of",
    "move_kernel",
]

SORT_BLOCKS: Final = (2048, 1024)
"""Keys of a program, best first: 16 to a thread of 4 warps."""
BITS: Final = 8
"""Of a digit."""
DIGITS: Final = 1 << BITS
_ROWS: Final = 16
_WIDE: Final = 128


@dataclass(frozen=True, slots=True)
class SortedLines:
    """Keys[lines, size] of `bits` bits each, counted from the lowest, in a signed integer; sorted as unsigned ones."""

    lines: DimLike
    size: DimLike
    bits: int
    block: int

    @property
    def dtype(self) -> DType:
        """Of the keys."""
        return INT32 if self.bits <= 32 else INT64

    @property
    def places(self) -> DType:
        """Of positions and counts."""
        return INT64 if KernelWriter.is_large((self.size,), UINT8) else INT32

    @property
    def blocks(self) -> DimLike:
        """Of a line."""
        return ceildiv(self.size, self.block)

    @property
    def shifts(self) -> range:
        """The lowest bit of the digit of each pass."""
        return range(0, max(self.bits, 1), BITS)

    def writer(self, *temporaries: DType) -> KernelWriter:
        """A kernel that reads temporaries of the sort; indices have the width that all of its buffers need."""
        writer = KernelWriter(Module("sort", (), (), (), ()), temporaries=temporaries)
        large = ((self.lines, self.size), (self.lines, self.blocks, DIGITS))
        writer.text.wide = any(KernelWriter.is_large(shape, INT64) for shape in large)
        return writer


def key_of(value: str, dtype: DType, *, largest: bool = False) -> tuple[str, int]:
    """The Triton of an element's key, and its bits: the less the earlier it comes, equal where elements are.

    NaN comes behind all numbers; zeros of both signs are equal.
    """
    kind = dtype.compute
    if kind is FLOAT32:
        text, bits = f"order_float({value}).to(tl.int32)", 32
    elif kind.is_float and kind.bits == 64:
        text, bits = f"order_double({value})", 64
    elif kind.kind == "bool":
        text, bits = f"{value}.to(tl.int32)", 1
    elif kind.kind in ("int", "uint"):
        bits = kind.bits
        own = f"tl.int{max(bits, 32)}"
        text = f"{value}.to({own})" if kind.kind == "uint" else f"({value}.to({own}) ^ ({-(1 << (bits - 1))}))"
    else:
        raise DeclinedError(f"{dtype} has no order")
    return (f"(~({text}))" if largest else text), bits


def _place(writer: KernelWriter, order: SortedLines) -> None:
    """The line and the block of a program, and what it goes over."""
    text = writer.text
    text.line(f"blocks, size = {text.dim(order.blocks)}, {text.dim(order.size)}")
    text.line(f"unit = {writer.program()}")
    text.line("line, block = unit // blocks, unit % blocks")
    text.line(f"first = line * size + block * {order.block}")
    text.line(f"left = size - block * {order.block}")


def _digit(writer: KernelWriter) -> str:
    return f"((key >> {writer.launch_number()}) & {DIGITS - 1}).to(tl.int32)"


def count_kernel(order: SortedLines) -> Kernel:
    """Counts the digits of each block. Its temporary are the keys, its number is the lowest bit of the digit.

    Results: how often each digit occurs in a block, [lines, digits, blocks], and how many keys of the block lie before
    the first of a digit once it is sorted, [lines * blocks, digits].
    """
    writer = order.writer(order.dtype)
    text = writer.text
    _place(writer, order)
    text.line(f"lane = tl.arange(0, {order.block})")
    text.line(f"key = tl.load({writer.temporary(0)} + first + lane, mask=lane < left, other=0)")
    text.line(f"count = tl.histogram({_digit(writer)}, {DIGITS}, mask=lane < left)")
    text.line(f"digit = tl.arange(0, {DIGITS})")
    text.line(f"tl.store({writer.result()} + (line * {DIGITS} + digit) * blocks + block, count)")
    text.line(f"tl.store({writer.result(1)} + unit * {DIGITS} + digit, tl.cumsum(count, 0) - count)")
    grid = (product((order.lines, order.blocks)), 1, 1)
    return writer.kernel(Launch(grid, 4), [order.places, order.places]).labelled("sort_count")


def before_kernel(order: SortedLines) -> Kernel:
    """From the counts of the blocks to those of all earlier blocks, for each line and digit, and their sum."""
    writer = order.writer(order.places)
    text = writer.text
    text.line(f"blocks = {text.dim(order.blocks)}")
    text.line(f"unit = {writer.program()}")
    text.line(f"row = unit * {_ROWS} + tl.arange(0, {_ROWS})[:, None]")
    text.line(f"total = tl.zeros([{_ROWS}, 1], {scalar.tl_type(order.places)})")
    with text.block(f"for start in range(0, blocks, {_WIDE}):"):
        text.line(f"at = start + tl.arange(0, {_WIDE})[None, :]")
        text.line(f"own = tl.load({writer.temporary(0)} + row * blocks + at, mask=at < blocks, other=0)")
        text.line("before = total + tl.cumsum(own, 1) - own")
        text.line(f"tl.store({writer.result()} + row * blocks + at, before, mask=at < blocks)")
        text.line("total = total + tl.sum(own, 1, keep_dims=True)")
    text.line(f"tl.store({writer.result(1)} + row, total)")
    return writer.kernel(Launch((order.lines * (DIGITS // _ROWS), 1, 1), 4), [order.places, order.places]).labelled(
        "sort_before"
    )


def base_kernel(order: SortedLines) -> Kernel:
    """From the numbers of each digit to those of all lesser ones, for each line."""
    writer = order.writer(order.places)
    text = writer.text
    text.line(f"at = {writer.program()} * {DIGITS} + tl.arange(0, {DIGITS})")
    text.line(f"own = tl.load({writer.temporary(0)} + at)")
    text.line(f"tl.store({writer.result()} + at, tl.cumsum(own, 0) - own)")
    return writer.kernel(Launch((order.lines, 1, 1), 4), [order.places]).labelled("sort_base")


def move_kernel(order: SortedLines, *, later: bool) -> Kernel:
    """Moves keys and their positions to their places. Its number is the lowest bit of the digit.

    Temporaries: keys, numbers before a digit in a block, of the digit in earlier blocks, and of lesser digits; then
    what travels, in `later` passes than the first, with which positions begin.
    """
    writer = order.writer(order.dtype, *([order.places] * (4 if later else 3)))
    text = writer.text
    keys, starts, before, bases = (writer.temporary(place) for place in range(4))
    _place(writer, order)
    log = (order.block - 1).bit_length()
    text.line(f"lane = tl.arange(0, {order.block})[None, :]")
    text.line(f"key = tl.load({keys} + first + lane, mask=lane < left, other=0)")
    text.line(f"digit = tl.where(lane < left, {_digit(writer)}, {DIGITS})")
    text.line(f"sorted = tl.sort((digit << {log}) | lane, 1)")
    text.line("kept = lane < left")
    text.line(f"digit, source = sorted >> {log}, sorted & {order.block - 1}")
    text.line(f"place = lane - tl.load({starts} + unit * {DIGITS} + digit, mask=kept, other=0)")
    text.line(f"at = line * {DIGITS} + digit")
    text.line(f"place = place + tl.load({before} + at * blocks + block, mask=kept, other=0)")
    text.line(f"to = line * size + place + tl.load({bases} + at, mask=kept, other=0)")
    text.line(f"tl.store({writer.result()} + to, tl.load({keys} + first + source, mask=kept, other=0), mask=kept)")
    position = f"block * {order.block} + source"
    if later:
        position = f"tl.load({writer.temporary(4)} + first + source, mask=kept, other=0)"
    text.line(f"tl.store({writer.result(1)} + to, {position}, mask=kept)")
    grid = (product((order.lines, order.blocks)), 1, 1)
    return writer.kernel(Launch(grid, 4), [order.dtype, order.places]).labelled("sort_move")
