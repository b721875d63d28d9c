"""Work on whole rows: a program holds some rows, reads each once, and reduces it as often as its ops ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.shapes import product
from argosy.rewrite.rows import reduces_rows
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.blocks import at_most, power_of_two
from argosy.targets.gpu.codegen.element import Elements, element
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.reduction import fold_start
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["rows_kernel"]

_TILE: Final = 4096
_FEW: Final = 64
"""Programs below which each takes fewer rows, so that more units work."""
Order = tuple[int, ...] | None
_FOLDS: Final = {"sum": "tl.sum({}, 1, keep_dims=True)", "mean": "tl.sum({}, 1, keep_dims=True)",
                 "max": "tl.reduce({}, 1, max_nan, keep_dims=True)",
                 "min": "tl.reduce({}, 1, min_nan, keep_dims=True)"}  # fmt: skip


def rows_kernel(module: Module, orders: Sequence[Order], order: Order) -> Kernel:
    """The kernel of a module that `rewrite.rows` found."""
    root = module.results[0]
    shape = next((present(each, 0).shape for each in module.instructions if reduces_rows(each)), root.shape)
    size = shape[-1]
    if not isinstance(size, int):
        raise DeclinedError("the length of a row is symbolic")
    writer = KernelWriter(module, orders, (order,))
    text, elements = writer.text, writer.elements
    last = len(shape) - 1
    outer: tuple[DimLike, ...] = (*shape[:-1], 1)
    count = product(outer)
    wide = power_of_two(size)
    high = min(max(_TILE // wide, 1), at_most(count, 8))
    while high > 1 and isinstance(count, int) and count < high * _FEW:
        high //= 2
    column = axis_name(last)
    writer.lanes = ("i", column)
    text.root("i", f"{writer.program()} * {high} + tl.arange(0, {high})[:, None]")
    if not (isinstance(count, int) and count % high == 0):
        text.line(f"inside = i < {text.dim(count)}")
        elements.masks.append(("inside", text.roots["i"]))
    decompose(writer, "i", outer)
    text.root(column, f"tl.arange(0, {wide})[None, :]")
    if size != wide:
        text.line(f"across = {column} < {size}")
        elements.masks.append(("across", text.roots[column]))
    elements.row = (f"[{high}, {wide}]", "across" if size != wide else "", shape)
    place = maps.identity(root.shape)
    value = elements.of(root, place)
    writer.release()
    writer.store(value, root.dtype, place)
    warps = 4 if high * wide >= 2048 else 2 if high * wide >= 512 else 1
    return writer.kernel(Launch((ceildiv(count, high), 1, 1), 8 if wide > 4096 else warps))


def _row(elements: Elements, instruction: Instruction) -> tuple[str, str]:
    """The whole rows that an op reduces, and the mask of their elements."""
    if elements.row is None or not reduces_rows(instruction):
        raise DeclinedError(f"{instruction.op.name} inside a kernel that holds no rows")
    shape, mask, whole = elements.row
    source = present(instruction, 0)
    if source.shape[-1] != whole[-1] or source.rank != len(whole):
        raise DeclinedError("its rows have another length")
    own: Access = axes_access(whole, source.shape, maps.identity(whole).indices)
    return elements.text.let(f"tl.broadcast_to({elements.of(source, own)}, {shape})"), mask


@element("reduce")
def _reduce(elements: Elements, instruction: Instruction, access: Access) -> str:
    del access  # a number to each row, wherever it is read
    op, source = op_of(instruction, Reduce), present(instruction, 0)
    value, mask = _row(elements, instruction)
    kind = source.dtype
    own = scalar.compute_type(kind)
    if mask:
        value = elements.let(f"tl.where({mask}, {value}, tl.full([], {fold_start(op.kind, kind)}, {own}))")
    total = elements.let(_FOLDS[op.kind].format(value))
    if op.kind != "mean":
        return total
    number = f"tl.full([], {source.shape[-1]}, {own})"
    return elements.let(scalar.apply("div", [total, number], [kind, kind], kind))


@element("softmax")
def _softmax(elements: Elements, instruction: Instruction, access: Access) -> str:
    del access  # it is read at its own place
    op, kind = op_of(instruction, Softmax), instruction.result().dtype.compute
    value, mask = _row(elements, instruction)
    if mask:
        value = elements.let(f'tl.where({mask}, {value}, float("-inf"))')
    most = elements.let(f"tl.reduce({value}, 1, max_nan, keep_dims=True)")
    shifted = elements.let(f"{value} - {most}")
    powers = elements.let(elements.exp(shifted) if kind is FLOAT32 else f"libdevice.exp({shifted})")
    total = elements.let(f"tl.sum({powers}, 1, keep_dims=True)")
    if op.log:
        return elements.let(f"{shifted} - libdevice.log({total})")
    return elements.let(scalar.apply("div", [powers, total], [kind, kind], kind))
