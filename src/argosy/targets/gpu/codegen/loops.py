"""Element-wise kernels: each program makes a block of elements of the result, in the order in which they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.lowering.kernel_text import axis_name, strides_of

__all__ = ["decompose", "elementwise_kernel", "flat_place"]

_BLOCK: Final = 1024
"""Elements of a program: 8 to a thread of 4 warps, enough to keep memory busy (docs: 85 % of its rate on an H200)."""
_SMALL: Final = 256


def elementwise_kernel(
    module: Module, orders: Sequence[tuple[int, ...] | None], order: tuple[int, ...] | None
) -> Kernel:
    """A module of views and element-wise ops; `order` is how the result lies in memory."""
    result = module.results[0]
    writer = KernelWriter(module, orders, (order,))
    text, elements = writer.text, writer.elements
    count = product(result.shape)
    block = _SMALL if isinstance(count, int) and count <= 64 * _SMALL else _BLOCK
    writer.lanes = ("i",)
    text.root("i", f"{writer.program()} * {block} + tl.arange(0, {block})")
    if not (isinstance(count, int) and count % block == 0):
        text.line(f"inside = i < {text.dim(count)}")
        elements.masks.append(("inside", text.roots["i"]))
    decompose(writer, "i", result.shape, order)
    place = maps.identity(result.shape)
    elements.flat = (flat_place(result.shape, order), "i")
    value = elements.of(result, place)
    writer.release()
    writer.store(value, result.dtype, place)
    warps = 4 if block == _BLOCK else 2
    return writer.kernel(Launch((ceildiv(count, block), 1, 1), warps))


def flat_place(shape: tuple[DimLike, ...], order: tuple[int, ...] | None) -> DimLike:
    """The place in memory of an element, over the axes of the iteration space."""
    total: DimLike = 0
    for index, step in zip(maps.identity(shape).indices, strides_of(shape, order), strict=True):
        total = total + (index * step if not isinstance(index, int) else step * index)
    return total


def decompose(writer: KernelWriter, flat: str, shape: Sequence[DimLike], order: tuple[int, ...] | None = None) -> None:
    """Write the variable of each axis from a place counted in `order` of the axes, outermost first."""
    text = writer.text
    live = [axis for axis in (order or range(len(shape))) if not (isinstance(shape[axis], int) and shape[axis] == 1)]
    left = flat
    for axis in reversed(live[1:]):
        size = text.dim(shape[axis])
        text.derive(axis_name(axis), f"{left} % {size}", left)
        left = text.derive(text.fresh("left"), f"{left} // {size}", left)
    if live:
        text.derive(axis_name(live[0]), left, left)
