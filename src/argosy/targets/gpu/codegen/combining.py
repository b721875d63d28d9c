"""Kernels of scatters that combine: the updates sorted by the slot that they go to, then a fold of each slot's run.

Runs are cut into parts of some updates. A part that lies within one run is folded by itself, so that even a slot
that takes all of n updates folds its whole parts and fewer single ones than two parts have. The order is that of the
updates, in every run of the program: the bits are always the same.
"""

from __future__ import annotations

from typing import Final

from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import INT64, DType
from argosy.ir.module import Module
from argosy.ops.scatter import ScatterElements
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel, Launch
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.radix import SortedLines
from argosy.targets.gpu.codegen.reduction import fold_step
from argosy.targets.gpu.codegen.scatter import FOLDS, Scatter, depth_of, target_of

__all__ = ["PARTS", "combine_kernel", "no_runs_kernel", "part_kernel", "run_kernel", "slots_kernel"]

PARTS: Final = (256,)
"""Updates that are folded by themselves where they are all of one slot."""


def slots_kernel(module: Module, order: SortedLines) -> Kernel:
    """Writes the key of each update: its slot, or behind all slots where its indices are outside."""
    kernel = OpKernel(module, [order.dtype])
    kernel.items(product(Scatter.of(module).numbers))
    place, valid = target_of(kernel, "i")
    slots = kernel.count(Scatter.of(module).slots)
    kernel.put("i", f"tl.where({valid}, {place}, {slots}).to({scalar.tl_type(order.dtype)})")
    return kernel.finished()


def run_kernel(order: SortedLines) -> Kernel:
    """Writes where the run of each slot begins and ends in the sorted updates; the rest of both results is 0 already.

    Its temporary are the sorted keys.
    """
    writer = order.writer(order.dtype)
    text, keys = writer.text, writer.temporary(0)
    text.line(f"size = {text.dim(order.size)}")
    text.line(f"at = {writer.program()} * 1024 + tl.arange(0, 1024)")
    text.line("inside = at < size")
    text.line(f"key = tl.load({keys} + at, mask=inside, other=0)")
    text.line("more = inside & (at + 1 < size)")
    text.line("less = inside & (at > 0)")
    text.line(f"opens = inside & ((at == 0) | (tl.load({keys} + at - 1, mask=less, other=0) != key))")
    text.line(f"closes = inside & ((at + 1 == size) | (tl.load({keys} + at + 1, mask=more, other=0) != key))")
    text.line(f"tl.store({writer.result()} + key, at, mask=opens)")
    text.line(f"tl.store({writer.result(1)} + key, at + 1, mask=closes)")
    return writer.kernel(Launch((ceildiv(order.size, 1024), 1, 1), 4), [order.places] * 2).labelled("scatter_runs")


def _inner(kernel: OpKernel) -> DimLike:
    """Elements that an update replaces."""
    if isinstance(kernel.instruction.op, ScatterElements):
        return 1
    return product(kernel.operand(0).shape[depth_of(kernel.instruction) :])


def _number(kernel: OpKernel, index: int, at: str, mask: str) -> str:
    """A variable with the number of an update, from a temporary."""
    return kernel.text.let(f"{kernel.load_temporary(index, at, mask)}.to({kernel.text.index_type})")


def _folded(kernel: OpKernel, total: str, value: str) -> str:
    """The Triton of a fold and one value more."""
    kind = kernel.operand(0).dtype
    step = fold_step(FOLDS[Scatter.of(kernel.module).reduction], total, value, kind)
    return f"({step}).to({scalar.compute_type(kind)})"


def part_kernel(module: Module, order: SortedLines, part: int) -> Kernel:
    """Writes the fold of each part of the sorted updates that is of one slot, and leaves the others as they are.

    Temporaries: the sorted keys, and the number of each update.
    """
    wide = module.results[0].dtype.compute
    kernel = OpKernel(module, [wide], [order.dtype, order.places])
    text, inner = kernel.text, _inner_text(kernel)
    parts = ceildiv(order.size, part)
    kernel.items(product((parts, _inner(kernel))))
    text.line(f"size, first = {text.dim(order.size)}, i // {inner} * {part}")
    text.line(f"full = inside & (first + {part} <= size)")
    opens, closes = kernel.load_temporary(0, "first", "full"), kernel.load_temporary(0, f"first + {part - 1}", "full")
    text.line(f"whole = full & ({opens} == {closes})")
    number = _number(kernel, 1, "first", "whole")
    text.line(f"value = {kernel.load(2, f'{number} * {inner} + i % {inner}', 'whole')}")
    with text.block(f"for k in range(1, tl.where(tl.max(whole.to(tl.int32), 0) > 0, {part}, 1)):"):
        number = _number(kernel, 1, "first + k", "whole")
        update = kernel.load(2, f"{number} * {inner} + i % {inner}", "whole")
        text.line(f"value = {_folded(kernel, 'value', update)}")
    kernel.put("i", "value", mask="whole")
    return kernel.finished()


def _inner_text(kernel: OpKernel) -> str:
    """How many elements an update replaces, at least 1, as Triton."""
    inner = _inner(kernel)
    return kernel.text.dim(inner) if isinstance(inner, int) and inner else f"tl.maximum({kernel.text.dim(inner)}, 1)"


def combine_kernel(module: Module, order: SortedLines, part: int) -> Kernel:
    """Every element combines the updates of its slot's run.

    Temporaries: the number of each update in the order of the slots, where runs begin and end, the folds of parts.
    """
    kind = module.results[0].dtype
    places: list[DType] = [order.places] * 3
    kernel = OpKernel(module, temporaries=[*places, kind.compute])
    text, inner = kernel.text, _inner_text(kernel)
    kernel.items(product(kernel.operand(0).shape))
    text.line(f"inner = {inner}")
    text.line("slot, behind = i // inner, i % inner")
    text.line(f"value = {kernel.load(0, 'i')}")
    text.line(f"at = {kernel.load_temporary(1, 'slot')}")
    text.line(f"end = {kernel.load_temporary(2, 'slot')}")
    with text.block("while tl.max((at < end).to(tl.int32), 0) > 0:"):
        text.line("live = at < end")
        text.line(f"whole = live & (at % {part} == 0) & (at + {part} <= end)")
        text.line("single = live & (whole == 0)")
        number = _number(kernel, 0, "at", "single")
        update = kernel.load(2, f"{number} * inner + behind", "single")
        folded = kernel.load_temporary(3, f"at // {part} * inner + behind", "whole")
        text.line(f"update = tl.where(whole, {folded}, {update})")
        text.line(f"value = tl.where(live, {_folded(kernel, 'value', 'update')}, value)")
        text.line(f"at = at + tl.where(whole, {part}, 1)")
    kernel.put("i", "value")
    return kernel.finished()


def no_runs_kernel(order: SortedLines, count: DimLike) -> Kernel:
    """Writes `count` zeros into each of two buffers of places."""
    writer = order.writer()
    text = writer.text
    text.wide = text.wide or writer.is_large((count,), INT64)
    text.line(f"at = {writer.program()} * 1024 + tl.arange(0, 1024)")
    text.line(f"none = tl.zeros([1024], {scalar.tl_type(order.places)})")
    for result in range(2):
        text.line(f"tl.store({writer.result(result)} + at, none, mask=at < {text.dim(count)})")
    return writer.kernel(Launch((ceildiv(count, 1024), 1, 1), 4), [order.places] * 2).labelled("scatter_none")
