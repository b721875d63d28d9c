"""A reduction over axes that only the run knows.

Each axis belongs either to the rows or to the columns, so its extent in the other is 1: a place among the rows gives
the indices of the axes that stay, a place in a row those of the others, and an element lies at their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.module import Instruction, Module
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.reduction import Order, Rows, reduced
from argosy.targets.gpu.codegen.result_sizes import kept_sizes
from argosy.targets.gpu.codegen.steering import check_axes, names_axis, number, optional
from argosy.targets.lowering.accesses import axes_access, op_of, present

__all__ = ["reduction_sizes", "steered_reduction"]

_HIGH: Final = 4
_WIDE: Final = 512


def _masks(elements: Elements, instruction: Instruction) -> list[str]:
    """For each axis a condition that says whether it is reduced."""
    op, rank = op_of(instruction, Reduce), present(instruction, 0).rank
    axes = elements.entries(op.axes, optional(instruction, 1)) or []
    check_axes(elements, axes, rank)
    if not axes:
        return [elements.let(f"{number(elements, 1)} == {int(op.noop_with_empty_axes) + 1}")] * rank
    return [elements.text.let(names_axis(elements, axes, axis, rank)) for axis in range(rank)]


def reduction_sizes(elements: Elements, instruction: Instruction) -> list[list[DimLike]]:
    """The dims of the result."""
    shape = present(instruction, 0).shape
    masks = _masks(elements, instruction)
    if not op_of(instruction, Reduce).keep_dims:
        return [kept_sizes(elements, masks, shape, instruction.result().rank)]
    pairs = zip(masks, shape, strict=True)
    return [[elements.local(f"tl.where({mask}, 1, {number(elements, size)})", 0) for mask, size in pairs]]


def steered_reduction(module: Module, orders: Sequence[Order]) -> Kernel:
    """The kernel of a module of one `reduce`; its result is row-major."""
    (instruction,) = module.instructions
    source, result = present(instruction, 0), instruction.result()
    writer = KernelWriter(module, orders, (None,))
    text, elements = writer.text, writer.elements
    masks, count = _masks(elements, instruction), product(result.shape)
    sizes = [number(elements, size) for size in source.shape]
    text.root("i", f"{writer.program()} * {_HIGH} + tl.arange(0, {_HIGH})[:, None]")
    text.line(f"inside = i < {text.dim(count)}")
    elements.masks.append(("inside", text.roots["i"]))
    writer.lanes = ("i",)
    decompose(writer, "i", result.shape)
    left = "i"
    indices: list[DimLike] = []
    columns: list[DimLike] = []
    for axis in reversed(range(source.rank)):
        size = f"tl.where({masks[axis]}, 1, {sizes[axis]}).to({text.index_type})"
        stays = text.let(f"tl.maximum({size}, 1)")
        text.derive(f"k{axis}", f"{left} % {stays}", left)
        left = text.derive(text.fresh("left"), f"{left} // {stays}", left)
        columns.insert(0, elements.local(f"tl.where({masks[axis]}, {sizes[axis]}, 1).to({text.index_type})", 0))
        indices.insert(0, symbol_dim(Symbol(f"@k{axis}", 0)) + symbol_dim(Symbol(f"@r{axis}", 0)))
    access = axes_access(result.shape, source.shape, indices)
    rows = Rows(access, tuple(f"r{axis}" for axis in range(source.rank)), tuple(columns), inner=True)
    with elements.scope():
        total = reduced(writer, instruction, source, rows, _HIGH, _WIDE)
    writer.store(total, result.dtype, maps.identity(result.shape))
    return writer.kernel(Launch((ceildiv(count, _HIGH), 1, 1), 4))
