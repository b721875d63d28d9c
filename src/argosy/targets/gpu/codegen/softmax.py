"""Softmax: a program holds whole rows, or goes over longer ones twice with a running greatest and sum.

Source of the running form: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax" (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.module import Instruction, Module
from argosy.ops.reduce import Softmax
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.gpu.codegen.blocks import at_most, power_of_two
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.scalar import apply
from argosy.targets.lowering.accesses import DeclinedError, op_of, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["softmax_kernel"]

_LONGEST: Final = 16384
"""Elements of a row that a program holds in registers."""
_TILE: Final = 2048
Order = tuple[int, ...] | None


def softmax_kernel(module: Module, anchor: Instruction, orders: Sequence[Order], order: Order) -> Kernel:
    """The kernel of a module whose anchor is a `softmax`; what follows it is computed with it."""
    op, source, root = op_of(anchor, Softmax), present(anchor, 0), module.results[0]
    axis = normalize_axis(op.axis, source.rank)
    size, kind = source.shape[axis], source.dtype
    if not kind.is_float:
        raise DeclinedError(f"a softmax of {kind}")
    writer = KernelWriter(module, orders, (order,))
    text, elements = writer.text, writer.elements
    outer: tuple[DimLike, ...] = tuple(1 if place == axis else extent for place, extent in enumerate(source.shape))
    count = product(outer)
    held = isinstance(size, int) and size <= _LONGEST
    wide = power_of_two(size) if held and isinstance(size, int) else _TILE
    high = min(max(_TILE // wide, 1), at_most(count, 16))
    writer.lanes = ("i", axis_name(axis))
    text.root("i", f"{writer.program()} * {high} + tl.arange(0, {high})[:, None]")
    if not (isinstance(count, int) and count % high == 0):
        text.line(f"inside = i < {text.dim(count)}")
        elements.masks.append(("inside", text.roots["i"]))
    decompose(writer, "i", outer)
    name, limit = axis_name(axis), text.dim(size)
    place = maps.identity(source.shape)

    def columns(start: str) -> None:
        text.root(name, f"{start}tl.arange(0, {wide})[None, :]")
        if not (held and size == wide):
            text.line(f"across = {name} < {limit}")
            elements.masks.append(("across", text.roots[name]))

    def done() -> None:
        if not (held and size == wide):
            elements.masks.pop()

    def finish(shifted: str, total: str) -> None:
        powers = text.let(f"libdevice.exp({shifted})")
        own = kind.compute
        result = f"{shifted} - libdevice.log({total})" if op.log else apply("div", [powers, total], [own, own], own)
        elements.given[anchor.result()] = text.let(result)
        writer.store(elements.of(root, maps.identity(root.shape)), root.dtype, maps.identity(root.shape))

    least = 'float("-inf")'
    if held:
        columns("")
        value = elements.of(source, place)
        if elements.masks:
            value = text.let(f"tl.where({elements.mask_for(frozenset({'i', name}))}, {value}, {least})")
        most = text.let(f"tl.reduce({value}, 1, max_nan, keep_dims=True)")
        shifted = text.let(f"{value} - {most}")
        total = text.let(f"tl.sum(libdevice.exp({shifted}), 1, keep_dims=True)")
        finish(shifted, total)
        done()
    else:
        shape, own = f"[{high}, {wide}]", f"tl.{kind.compute.name}"
        text.line(f"most = tl.full({shape}, {least}, {own})")
        text.line(f"total = tl.zeros({shape}, {own})")
        with text.block(f"for start in range(0, {limit}, {wide}):"), elements.scope():
            columns("start + ")
            value = elements.of(source, place)
            value = text.let(f"tl.where({elements.mask_for(frozenset({'i', name}))}, {value}, {least})")
            text.line(f"higher = max_nan(most, {value})")
            text.line(f"safe = tl.where(higher == {least}, tl.zeros_like(higher), higher)")
            text.line(f"total = total * libdevice.exp(most - safe) + libdevice.exp({value} - safe)")
            text.line("most = higher")
            done()
        text.line("whole = tl.reduce(most, 1, max_nan, keep_dims=True)")
        text.line(f"safe = tl.where(whole == {least}, tl.zeros_like(whole), whole)")
        text.line("total = tl.sum(total * libdevice.exp(most - safe), 1, keep_dims=True)")
        with text.block(f"for start in range(0, {limit}, {wide}):"), elements.scope():
            columns("start + ")
            finish(text.let(f"{elements.of(source, place)} - whole"), "total")
            done()
    return writer.kernel(Launch((ceildiv(count, high), 1, 1), 8 if wide > 4096 else 4))
