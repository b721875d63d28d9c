"""Convolutions as products: rows are places of the output, columns channels, the inner axis taps times channels.

No patches are gathered: each tile is loaded from the image, with a mask where a tap lies in the padding. Where channels
fill the inner tile, taps are loops around it; else (an image of three channels) taps and channels are one inner axis.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import axis_index
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.module import Instruction, Module
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.declined import DeclinedError
from argosy.targets.gpu.codegen.element import axes_access, present
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.product import Tile, accumulator, in_matrix, multiply
from argosy.targets.gpu.codegen.window import geometry, read_window

__all__ = ["conv_kernel", "why_no_product"]

Order = tuple[int, ...] | None
_LEAST_CHANNELS: Final = 16


def why_no_product(anchor: Instruction) -> str:
    """Why a convolution is no product; empty where it is."""
    op, x, weight = anchor.op, present(anchor, 0), present(anchor, 1)
    group = op.group if isinstance(op, (Conv, ConvTranspose)) else 1
    sizes = (x.shape[1], *weight.shape)
    if not all(isinstance(size, int) for size in sizes):
        return "its channels or its kernel are symbolic"
    if not in_matrix(x.dtype, weight.dtype):
        return f"no matrix instruction multiplies {x.dtype} and {weight.dtype}"
    outputs = weight.shape[0] if isinstance(op, Conv) else weight.shape[1] * group
    if group > 1 and isinstance(outputs, int) and outputs // group < _LEAST_CHANNELS:
        return "its groups have few channels"
    return ""


def conv_kernel(
    module: Module, anchor: Instruction, orders: Sequence[Order], order: Order, tile: Tile, *, tf32: bool = False
) -> Kernel:
    """The kernel of a module whose anchor is a `conv` or `conv_transpose` that `why_no_product` has nothing against."""
    x, weight, root, result = present(anchor, 0), present(anchor, 1), module.results[0], anchor.result()
    op, window = anchor.op, geometry(anchor)
    if not isinstance(op, (Conv, ConvTranspose)):
        raise DeclinedError(f"{op.name} is no convolution")
    group, outputs, channels = op.group, result.shape[1], x.shape[1]
    if not isinstance(outputs, int) or not isinstance(channels, int):
        raise DeclinedError("the number of channels is symbolic")
    writer = KernelWriter(module, orders, (order,))
    text, elements = writer.text, writer.elements
    high, wide = tile.rows, tile.columns
    places = (result.shape[0], *result.shape[2:])
    rows, columns, inner = product(places), outputs // group, channels // group
    down, across = ceildiv(rows, high), -(-columns // wide)
    pid = writer.program()
    text.line(f"down = {pid} // {across}")
    text.line(f"across = {pid} % {across}")
    own_group: DimLike = 0
    if group > 1:
        text.line(f"group = {writer.program(1)}")
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
    kinds = (x.dtype, weight.dtype)
    sums = accumulator(*kinds, result.dtype)
    text.line(f"acc = tl.zeros([{high}, {wide}], {scalar.compute_type(sums)})")
    with contextlib.ExitStack() as stack:
        (taps_a, c_a), (taps_b, c_b) = _inner(stack, writer, window.kernel, inner, tile.inner)
        access, inside, roots = read_window(elements, x, result.shape, own_group * inner + c_a, taps_a, window)
        ragged = [name for name, _ in elements.masks if name == "ka_inside"]
        if inside:
            text.line(f"valid = {inside}")
            with elements.only("valid", roots):
                a = elements.within(x, access, (high, tile.inner), " & ".join(["valid", *ragged]), ("m", "ka"))
        else:
            a = elements.within(x, access, (high, tile.inner), " & ".join(ragged), ("m", "ka"))
        if isinstance(op, ConvTranspose):
            at: list[DimLike] = [own_group * inner + c_b, column, *taps_b]
        else:
            at = [own_group * columns + column, c_b, *taps_b]
        across_inner = "kb_inside" if ragged else ""
        place = axes_access(result.shape, weight.shape, at)
        b = elements.within(weight, place, (tile.inner, wide), across_inner, ("kb", "column"))
        text.line(f"acc = {multiply(a, b, 'acc', kinds, tf32=tf32)}")
    total = "acc" if sums.compute is result.dtype.compute else f"acc.to({scalar.compute_type(result.dtype)})"
    bias = anchor.operands[2] if len(anchor.operands) > 2 else None
    if bias is not None:
        added = elements.of(bias, axes_access(result.shape, bias.shape, (axis_index(1, outputs),)))
        total = f"{total} + {added}"
    elements.given[result] = elements.let(total)
    place = maps.identity(root.shape)
    writer.store(elements.of(root, place), root.dtype, place)
    grid = (across * down if isinstance(down, int) else down * across, group, 1)
    return writer.kernel(Launch(grid, tile.warps, tile.stages))


Inner = tuple[list[DimLike], DimLike]
"""Taps and channel of an operand at a place of the inner axis."""


def _inner(
    stack: contextlib.ExitStack, writer: KernelWriter, kernel: Sequence[DimLike], channels: int, deep: int
) -> tuple[Inner, Inner]:
    """Open the loops over the inner axis; where they are for the image and for the weight."""
    text = writer.text
    sizes = [size for size in kernel if isinstance(size, int)]
    apart = channels >= _LEAST_CHANNELS
    taps: list[DimLike] = []
    if apart:
        for axis, size in enumerate(sizes):
            if size > 1:
                stack.enter_context(text.block(f"for k{axis} in range(0, {size}):"))
            taps.append(symbol_dim(Symbol(f"@k{axis}", 0, size - 1)))
    total = channels if apart else channels * math.prod(sizes)
    if total > deep:
        stack.enter_context(text.block(f"for start in range(0, {total}, {deep}):"))
    stack.enter_context(writer.elements.scope())
    found: list[Inner] = []
    for name, along in (("ka", "[None, :]"), ("kb", "[:, None]")):
        text.root(name, f"{'start + ' if total > deep else ''}tl.arange(0, {deep}){along}")
        if total % deep:
            text.line(f"{name}_inside = {name} < {total}")
            writer.elements.masks.append((f"{name}_inside", text.roots[name]))
        if apart:
            found.append((taps, symbol_dim(Symbol(f"@{name}", 0, channels - 1))))
        else:
            found.append(_parts(writer, name, sizes, channels))
    return found[0], found[1]


def _parts(writer: KernelWriter, name: str, sizes: Sequence[int], channels: int) -> Inner:
    """Taps and channel from one inner axis, channels innermost."""
    text = writer.text
    left = text.derive(f"{name}_taps", f"{name} // {channels}", name)
    text.derive(f"{name}_channel", f"{name} % {channels}", name)
    taps: list[DimLike] = [0] * len(sizes)
    for axis in reversed(range(len(sizes))):
        if sizes[axis] > 1:
            text.derive(f"{name}_{axis}", f"{left} % {sizes[axis]}", left)
            left = text.derive(text.fresh("left"), f"{left} // {sizes[axis]}", left)
            taps[axis] = symbol_dim(Symbol(f"@{name}_{axis}", 0, sizes[axis] - 1))
    return taps, symbol_dim(Symbol(f"@{name}_channel", 0, channels - 1))
