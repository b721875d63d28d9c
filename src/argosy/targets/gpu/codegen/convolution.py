"""Convolutions as products: rows are places of the output, columns channels, the inner axis taps times channels.

No patches are gathered: each tile is loaded from the image, with a mask where a tap lies in the padding. Where channels
fill the inner tile, each step is at one tap; else (an image of three channels) taps and channels are one inner axis.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Final

from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.module import Instruction, Module
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.blocks import power_of_two
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.operands import MatrixWay, multiply
from argosy.targets.gpu.codegen.summing import Tile, finish, part_range
from argosy.targets.gpu.codegen.window import geometry, read_window
from argosy.targets.lowering.accesses import DeclinedError, axes_access, present

__all__ = ["conv_kernel", "inner_stretch", "why_no_product"]

Order = tuple[int, ...] | None
_LEAST_CHANNELS: Final = 16
_LONGEST_ROW: Final = 64


def why_no_product(anchor: Instruction, way: MatrixWay | None) -> str:
    """Why a convolution is no product that is multiplied in some way; empty where it is."""
    op, x, weight = anchor.op, present(anchor, 0), present(anchor, 1)
    group = op.group if isinstance(op, (Conv, ConvTranspose)) else 1
    sizes = (x.shape[1], *weight.shape)
    if not all(isinstance(size, int) for size in sizes):
        return "its channels or its kernel are symbolic"
    if way is None:
        return f"no matrix instruction multiplies {x.dtype} and {weight.dtype}"
    outputs = weight.shape[0] if isinstance(op, Conv) else weight.shape[1] * group
    if group > 1 and isinstance(outputs, int) and outputs // group < _LEAST_CHANNELS:
        return "its groups have few channels"
    return ""


def conv_kernel(
    module: Module,
    anchor: Instruction,
    orders: Sequence[Order],
    order: Order,
    tile: Tile,
    way: MatrixWay,
    weights: Sequence[bool] = (),
    *,
    tf32: bool = False,
) -> Kernel:
    """The kernel of a module whose anchor is a `conv` or `conv_transpose` that `why_no_product` has nothing against.

    `weights` says which parameters are the same in every run.
    """
    x, weight, result = present(anchor, 0), present(anchor, 1), anchor.result()
    op, window = anchor.op, geometry(anchor)
    if not isinstance(op, (Conv, ConvTranspose)):
        raise DeclinedError(f"{op.name} is no convolution")
    group, outputs, channels = op.group, result.shape[1], x.shape[1]
    if not isinstance(outputs, int) or not isinstance(channels, int):
        raise DeclinedError("the number of channels is symbolic")
    sums = way.sums
    writer = KernelWriter(module, orders, (order,), (sums,) if tile.splits > 1 else ())
    text, elements = writer.text, writer.elements
    high, wide = tile.rows, tile.columns
    places = (result.shape[0], *result.shape[2:])
    rows, columns, inner = product(places), outputs // group, channels // group
    down, across = ceildiv(rows, high), -(-columns // wide)
    tiles = across * down if isinstance(down, int) else down * across
    pid = number = writer.program()
    text.line(f"down = {pid} // {across}")
    text.line(f"across = {pid} % {across}")
    own_group: DimLike = 0
    if group > 1:
        text.line(f"group = {writer.program(1)}")
        number = f"group * {text.dim(tiles)} + {pid}"
        own_group = symbol_dim(Symbol("@group", 0, group - 1))
    writer.lanes = ("m", "column")
    text.root("m", f"down * {high} + tl.arange(0, {high})[:, None]")
    if not (isinstance(rows, int) and rows % high == 0):
        text.line(f"m_inside = m < {text.dim(rows)}")
        elements.masks.append(("m_inside", text.roots["m"]))
    spaced = [result.shape[0], 1, *result.shape[2:]]
    decompose(writer, "m", spaced)
    text.root("column", f"across * {wide} + tl.arange(0, {wide})[None, :]")
    if columns % wide:
        text.line(f"column_inside = column < {columns}")
        elements.masks.append(("column_inside", text.roots["column"]))
    column = symbol_dim(Symbol("@column", 0, columns - 1)) if columns > 1 else 0
    text.derive("i1", f"group * {columns} + column" if group > 1 else "column", "column")
    steps = _inner_steps(window.kernel, inner, tile.inner)
    count, base = part_range(writer, steps, tile)
    mark = text.mark()
    text.line(f"acc = tl.zeros([{high}, {wide}], {scalar.compute_type(sums)})")
    loop = contextlib.nullcontext() if steps == 1 else text.block(f"for step in range(0, {count}):")
    with loop, elements.scope():
        step = "0" if steps == 1 else text.let(f"{base}step") if base else "step"
        (taps_a, c_a), (taps_b, c_b) = _inner(writer, step, window.kernel, inner, tile.inner)
        access, inside, roots = read_window(elements, x, result.shape, own_group * inner + c_a, taps_a, window)
        ragged = [name for name, _ in elements.masks if name == "ka_inside"]
        if inside:
            text.line(f"valid = {inside}")
            with elements.only("valid", roots):
                a = way.tile(elements, 0, x, access, (high, tile.inner), " & ".join(["valid", *ragged]), ("m", "ka"))
        else:
            a = way.tile(elements, 0, x, access, (high, tile.inner), " & ".join(ragged), ("m", "ka"))
        if isinstance(op, ConvTranspose):
            at: list[DimLike] = [own_group * inner + c_b, column, *taps_b]
        else:
            at = [own_group * columns + column, c_b, *taps_b]
        across_inner = "kb_inside" if ragged else ""
        place = axes_access(result.shape, weight.shape, at)
        b = way.tile(elements, 1, weight, place, (tile.inner, wide), across_inner, ("kb", "column"))
        text.line(f"acc = {multiply(a, b, 'acc', way, tile.inner, tf32=tf32)}")
    bias = anchor.operands[2] if len(anchor.operands) > 2 else None
    finish(writer, mark, tile, sums, result, number, weights, bias)
    if tile.splits > 1 and not isinstance(tiles, int):
        raise DeclinedError("a convolution of symbolic sizes is not split")
    counters = tiles * group if tile.splits > 1 and isinstance(tiles, int) else 0
    return writer.kernel(Launch((tiles, group, tile.splits), tile.warps, tile.stages), counters=counters)


Inner = tuple[list[DimLike], DimLike]
"""Taps and channel of an operand at a place of the inner axis."""


def inner_stretch(kernel: Sequence[DimLike], channels: int) -> tuple[int, int]:
    """How many taps are steps of their own, and how long the inner axis is that each has; see `_inside`."""
    sizes = [size for size in kernel if isinstance(size, int)]
    inside = _inside(sizes, channels)
    outside = len(sizes) - inside
    return math.prod(sizes[:outside]), math.prod(sizes[outside:]) * channels


def _inner_steps(kernel: Sequence[DimLike], channels: int, deep: int) -> int:
    """Steps over the inner axis of a convolution with these channels to a group."""
    taps, stretch = inner_stretch(kernel, channels)
    return taps * -(-stretch // deep)


def _inside(sizes: Sequence[int], channels: int) -> int:
    """How many axes of the window lie in one stretch with the channels.

    None where channels fill a tile. With few of them a row of the window is a stretch where that is nearly a power of
    two: what lies side by side in the image is read so, and its places are the same for all rows. Else all is one.
    """
    if channels >= _LEAST_CHANNELS or not sizes:
        return 0
    row = sizes[-1] * channels
    whole = power_of_two(row)
    return 1 if len(sizes) > 1 and _LEAST_CHANNELS <= whole <= _LONGEST_ROW and row * 8 >= whole * 7 else len(sizes)


def _inner(writer: KernelWriter, step: str, kernel: Sequence[DimLike], channels: int, deep: int) -> tuple[Inner, Inner]:
    """Where a step over the inner axis is for the image and for the weight. One loop does it all: it is pipelined."""
    text = writer.text
    sizes = [size for size in kernel if isinstance(size, int)]
    inside = _inside(sizes, channels)
    outside = sizes[: len(sizes) - inside]
    stretch = channels * math.prod(sizes[len(outside) :])
    each = -(-stretch // deep)
    taps: list[DimLike] = [symbol_dim(Symbol(f"@k{axis}", 0, size - 1)) if size > 1 else 0
                           for axis, size in enumerate(outside)]  # fmt: skip
    left = f"({step} // {each})" if each > 1 else step
    live = [axis for axis, size in enumerate(outside) if size > 1]
    for axis in reversed(live):
        text.derive(f"k{axis}", f"{left} % {sizes[axis]}" if axis != live[0] else left)
        left = f"({left} // {sizes[axis]})"
    if inside == len(sizes) and inside:
        text.line(f"start = {step} * {deep}")
    else:
        text.line(f"start = {step} % {each} * {deep}" if each > 1 else "start = 0")
    found: list[Inner] = []
    for name, along in (("ka", "[None, :]"), ("kb", "[:, None]")):
        text.root(name, f"start + tl.arange(0, {deep}){along}")
        if stretch % deep:
            text.line(f"{name}_inside = {name} < {stretch}")
            writer.elements.masks.append((f"{name}_inside", text.roots[name]))
        if inside:
            found.append(_parts(writer, name, taps, sizes[len(outside) :], channels))
        else:
            found.append((taps, symbol_dim(Symbol(f"@{name}", 0, channels - 1))))
    return found[0], found[1]


def _parts(writer: KernelWriter, name: str, outside: Sequence[DimLike], sizes: Sequence[int], channels: int) -> Inner:
    """Taps and channel from one inner axis, channels innermost; `outside` are the taps of the axes before."""
    text = writer.text
    left = text.derive(f"{name}_taps", f"{name} // {channels}", name)
    text.derive(f"{name}_channel", f"{name} % {channels}", name)
    taps: list[DimLike] = [*outside, *[0] * len(sizes)]
    for axis in reversed(range(len(sizes))):
        if sizes[axis] > 1:
            place = len(outside) + axis
            own = f"{left} % {sizes[axis]}" if axis or not outside else left
            text.derive(f"{name}_{place}", own, left)
            if axis:
                left = text.derive(text.fresh("left"), f"{left} // {sizes[axis]}", left)
            taps[place] = symbol_dim(Symbol(f"@{name}_{place}", 0, sizes[axis] - 1))
    return taps, symbol_dim(Symbol(f"@{name}_channel", 0, channels - 1))
