"""Convolutions and pools element by element: each program goes over the window of a block of elements.

The way of what has no better one: depthwise and grouped convolutions, pools, integers. `geometry` serves others too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import Access, axis_index
from argosy.ir.dim import Dim, DimLike, Symbol, bounds, ceildiv, symbol_dim
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.pooling import Pool
from argosy.ops.shapes import product
from argosy.ops.window import extents, resolve_pads
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose, flat_place
from argosy.targets.gpu.codegen.reduction import fold_start
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present

__all__ = ["Geometry", "geometry", "pool_kernel", "read_window", "window_kernel"]

Order = tuple[int, ...] | None
_BLOCK: Final = 256
_UNROLLED: Final = 9
"""Taps of a window whose loops are unrolled."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """A window over spatial axes: sizes of the kernel, steps, first pads, and whether it is a transposed one."""

    kernel: tuple[DimLike, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[DimLike, ...]
    transposed: bool = False


def geometry(anchor: Instruction) -> Geometry:
    """The window of a `conv`, `conv_transpose` or `pool`."""
    op, x = anchor.op, present(anchor, 0)
    rank = x.rank - 2
    if isinstance(op, ConvTranspose):
        kernel = present(anchor, 1).shape[2:]
        _, before = op.geometry(x.shape[2:], kernel)
        return Geometry(kernel, op.strides, op.dilations, tuple(before), transposed=True)
    if isinstance(op, Pool):
        kernel = op.kernel
    else:
        op = op_of(anchor, Conv)
        kernel = present(anchor, 1).shape[2:]
    pads = resolve_pads(op.auto_pad, x.shape[2:], extents(kernel, op.dilations), op.strides, op.pads)
    return Geometry(tuple(kernel), op.strides, op.dilations, tuple(pads[:rank]))


def read_window(
    elements: Elements, x: Value, space: Sequence[DimLike], channel: DimLike, taps: Sequence[DimLike], window: Geometry
) -> tuple[Access, str, frozenset[str]]:
    """Where the tap of a window reads `x`, and under which condition it is inside, on which block variables.

    `space` are the dims of the result, whose axes the places are counted on.
    """
    text = elements.text
    indices: list[DimLike] = [axis_index(0, space[0]), channel]
    checks: list[str] = []
    roots: frozenset[str] = frozenset()
    for axis, tap in enumerate(taps):
        place = axis_index(axis + 2, space[axis + 2])
        size, stride, dilation = x.shape[axis + 2], window.strides[axis], window.dilations[axis]
        tapped = tap * dilation if isinstance(tap, Dim) else dilation * tap
        if window.transposed:
            moved = place + window.before[axis] - tapped
            roots |= text.roots_of(moved)
            name = text.let(text.dim(moved), "w")
            text.roots[name] = text.roots_of(moved)
            low = f"({name} >= 0)" if stride == 1 else f"({name} >= 0) & ({name} % {stride} == 0)"
            checks.append(f"{low} & ({name} < {text.dim(size * stride if isinstance(size, Dim) else stride * size)})")
            at = text.derive(text.fresh("w"), f"{name} // {stride}" if stride != 1 else name, name)
            indices.append(symbol_dim(Symbol(f"@{at}", 0)))
            continue
        moved = (place * stride if isinstance(place, Dim) else stride * place) + tapped - window.before[axis]
        indices.append(moved)
        roots |= text.roots_of(moved)
        high = size - 1
        bound = bounds(moved)
        if bound[0] is None or bound[0] < 0:
            checks.append(f"({text.dim(moved)} >= 0)")
        if bound[1] is None or not isinstance(high, int) or bound[1] > high:
            checks.append(f"({text.dim(moved)} < {text.dim(size)})")
    return axes_access(space, x.shape, indices), " & ".join(checks), roots


def window_kernel(module: Module, anchor: Instruction, orders: Sequence[Order], order: Order) -> Kernel:
    """The kernel of a convolution of any kind, one element to a lane."""
    x, weight, result, root = present(anchor, 0), present(anchor, 1), anchor.result(), module.results[0]
    op = anchor.op
    group = op.group if isinstance(op, (Conv, ConvTranspose)) else 1
    window = geometry(anchor)
    kind = result.dtype.compute
    outputs = result.shape[1]
    if not isinstance(outputs, int) or not isinstance(weight.shape[0], int) or not isinstance(x.shape[1], int):
        raise DeclinedError("the number of channels is symbolic")
    inner = x.shape[1] // group

    def body(writer: KernelWriter) -> str:
        text, elements = writer.text, writer.elements
        channel = axis_index(1, outputs)
        text.line(f"acc = tl.zeros([{_BLOCK}], {scalar.compute_type(kind)})")
        own_group: DimLike = 0 if group == 1 else channel // (outputs // group)
        with contextlib.ExitStack() as stack:
            taps = [_loop(stack, writer, f"k{axis}", size) for axis, size in enumerate(window.kernel)]
            c = _loop(stack, writer, "kc", inner)
            stack.enter_context(elements.scope())
            access, inside, roots = read_window(elements, x, result.shape, own_group * inner + c, taps, window)
            if isinstance(op, ConvTranspose):
                at: list[DimLike] = [own_group * inner + c, channel % (outputs // group), *taps]
            else:
                at = [channel, c, *taps]
            if inside:
                text.line(f"valid = {inside}")
                with elements.only("valid", roots):
                    value = elements.of(x, access)
            else:
                value = elements.of(x, access)
            factor = elements.of(weight, axes_access(result.shape, weight.shape, at))
            product_ = text.let(f"{value}.to({scalar.compute_type(kind)}) * {factor}.to({scalar.compute_type(kind)})")
            text.line(f"acc += {f'tl.where(valid, {product_}, tl.zeros_like({product_}))' if inside else product_}")
        bias = anchor.operands[2] if len(anchor.operands) > 2 else None
        if bias is not None:
            added = elements.of(bias, axes_access(result.shape, bias.shape, (channel,)))
            text.line(f"acc += {added}")
        return "acc"

    return _per_element(module, anchor, root, orders, order, body)


def pool_kernel(module: Module, anchor: Instruction, orders: Sequence[Order], order: Order) -> Kernel:
    """The kernel of a pool."""
    op, x, result, root = op_of(anchor, Pool), present(anchor, 0), anchor.result(), module.results[0]
    if op.with_indices:
        raise DeclinedError("a pool with positions")
    window = geometry(anchor)
    kind = result.dtype.compute
    own = scalar.compute_type(kind)
    start = fold_start("max", x.dtype) if op.kind == "max" else "0"

    def body(writer: KernelWriter) -> str:
        text, elements = writer.text, writer.elements
        text.line(f"acc = tl.full([{_BLOCK}], {start}, {own})")
        if op.kind == "average":
            text.line(f"count = tl.zeros([{_BLOCK}], {own})")
        with contextlib.ExitStack() as stack:
            head = "tl.static_range" if op.kind == "max" and _is_small(window) else "range"
            taps = [_loop(stack, writer, f"k{axis}", size, head) for axis, size in enumerate(window.kernel)]
            stack.enter_context(elements.scope())
            access, inside, roots = read_window(elements, x, result.shape, axis_index(1, result.shape[1]), taps, window)
            if inside:
                text.line(f"valid = {inside}")
                with elements.only("valid", roots):
                    value = elements.of(x, access)
                value = text.let(f"tl.where(valid, {value}, tl.full([], {start}, {own}))")
            else:
                value = elements.of(x, access)
            if op.kind == "max":
                text.line(f"acc = {scalar.apply('max', ['acc', value], [x.dtype, x.dtype], x.dtype)}")
            elif op.kind == "average":
                text.line(f"acc += {value}")
                counted = _counted(writer, op, x, result, taps, window) if inside else "1"
                text.line(f"count += {counted}")
            else:
                text.line(f"acc += {_power(value, op.p)}")
        if op.kind == "average":
            ones = "tl.full([], 1, " + own + ")"
            return text.let(scalar.apply("div", ["acc", f"tl.maximum(count, {ones})"], [kind, kind], kind))
        if op.kind == "lp":
            return text.let(_root(op.p, kind.name))
        return "acc"

    return _per_element(module, anchor, root, orders, order, body)


def _power(value: str, p: int) -> str:
    size = f"tl.abs({value})"
    return size if p == 1 else f"{size} * {size}" if p == 2 else f"libdevice.pow({size}, {size} * 0 + {p})"


def _root(p: int, kind: str) -> str:
    if p == 1:
        return "acc"
    if p == 2:
        return "tl.math.sqrt_rn(acc)" if kind == "float32" else "libdevice.sqrt(acc)"
    return f"libdevice.pow(acc, acc * 0 + {1 / p!r})"


def _counted(writer: KernelWriter, op: Pool, x: Value, result: Value, taps: Sequence[DimLike], window: Geometry) -> str:
    """1 where a tap counts in an average: inside, or inside the padding where that is counted."""
    if not op.count_include_pad:
        return "valid.to(tl.float32)" if result.dtype.compute is FLOAT32 else "valid.to(tl.float64)"
    text = writer.text
    rank = x.rank - 2
    pads = resolve_pads(op.auto_pad, x.shape[2:], extents(op.kernel, op.dilations), op.strides, op.pads)
    checks = []
    for axis, tap in enumerate(taps):
        place = axis_index(axis + 2, result.shape[axis + 2])
        stride, dilation = window.strides[axis], window.dilations[axis]
        moved = (place * stride if isinstance(place, Dim) else stride * place) + (
            tap * dilation if isinstance(tap, Dim) else dilation * tap
        )
        limit = pads[axis] + x.shape[axis + 2] + pads[rank + axis]
        checks.append(f"({text.dim(moved)} < {text.dim(limit)})")
    return f"({' & '.join(checks)}).to({scalar.compute_type(result.dtype)})"


def _is_small(window: Geometry) -> bool:
    """Whether loops over a window are unrolled, so that all its loads fly at once."""
    taps = product(window.kernel)
    return isinstance(taps, int) and taps <= _UNROLLED


def _loop(stack: contextlib.ExitStack, writer: KernelWriter, name: str, size: DimLike, head: str = "range") -> DimLike:
    """A loop over a part of the window; its place."""
    if size == 1:
        return 0
    stack.enter_context(writer.text.block(f"for {name} in {head}(0, {writer.text.dim(size)}):"))
    return symbol_dim(Symbol(f"@{name}", 0, size - 1 if isinstance(size, int) else None))


def _per_element(
    module: Module,
    anchor: Instruction,
    root: Value,
    orders: Sequence[Order],
    order: Order,
    body: Callable[[KernelWriter], str],
) -> Kernel:
    """A kernel over the elements of the root; `body` writes the anchor's and returns their variable."""
    writer = KernelWriter(module, orders, (order,))
    text, elements = writer.text, writer.elements
    count = product(root.shape)
    writer.lanes = ("i",)
    text.root("i", f"{writer.program()} * {_BLOCK} + tl.arange(0, {_BLOCK})")
    if not (isinstance(count, int) and count % _BLOCK == 0):
        text.line(f"inside = i < {text.dim(count)}")
        elements.masks.append(("inside", text.roots["i"]))
    decompose(writer, "i", root.shape, order)
    elements.given[anchor.result()] = body(writer)
    writer.release()
    place = maps.identity(root.shape)
    elements.flat = (flat_place(root.shape, order), "i")
    writer.store(elements.of(root, place), root.dtype, place)
    return writer.kernel(Launch((ceildiv(count, _BLOCK), 1, 1), 2))
