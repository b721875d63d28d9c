"""A reduction over axes that only the run knows: every element is added to the total that it belongs to."""

from __future__ import annotations

import contextlib

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64, DType
from argosy.ir.module import Instruction, Module
from argosy.ops.reduce import Reduce
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.op_kernel import OpKernel, dot_text
from argosy.targets.cpu.codegen.reduction import fold_start, fold_step
from argosy.targets.cpu.codegen.steering import check_axes, names_axis
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["reduction_sizes", "steered_reduction", "total_type"]


def total_type(instruction: Instruction) -> DType:
    """The element type of the totals."""
    op, dtype = op_of(instruction, Reduce), present(instruction, 0).dtype
    if dtype.is_float and op.kind in ("sum", "mean", "prod"):
        return FLOAT64
    return dtype.compute


def _masks(elements: Elements, instruction: Instruction) -> list[str]:
    """For each axis a C variable that says whether it is reduced."""
    op, rank = op_of(instruction, Reduce), present(instruction, 0).rank
    axes = elements.entries(op.axes, instruction.operands[1] if len(instruction.operands) > 1 else None) or []
    check_axes(elements, axes, rank)
    everything = "0" if op.noop_with_empty_axes else "1"
    return [
        elements.text.let("int64", names_axis(elements, axes, axis, rank) if axes else everything)
        for axis in range(rank)
    ]


def reduction_sizes(elements: Elements, instruction: Instruction) -> list[list[DimLike]]:
    """The dims of the result."""
    op, shape = op_of(instruction, Reduce), present(instruction, 0).shape
    text = elements.text
    masks = _masks(elements, instruction)
    if op.keep_dims:
        pairs = zip(masks, shape, strict=True)
        return [[elements.local(f"{mask} ? 1 : {text.dim(size)}", 0) for mask, size in pairs]]
    rank = instruction.result().rank
    text.line(f"int64 kept[{len(shape) + 1}] = {{0}}, count = 0;")
    for mask, size in zip(masks, shape, strict=True):
        text.line(f"if (!{mask}) kept[count++] = {text.dim(size)};")
    text.line(f"if (count != {rank}) argosy_fail(scratch, ARGOSY_SHAPES, -1);")
    return [[elements.local(f"kept[{axis}]", 0) for axis in range(rank)]]


def steered_reduction(module: Module) -> Kernel:
    """The kernel; its second result holds the totals."""
    instruction = module.instructions[-1]
    op, x, result = op_of(instruction, Reduce), present(instruction, 0), instruction.result()
    wide = total_type(instruction)
    kernel = OpKernel(module, [result.dtype, wide])
    text = kernel.text
    masks = _masks(kernel.elements, instruction)
    text.line("int64 step = 1;")
    steps = [""] * x.rank
    for axis in reversed(range(x.rank)):
        steps[axis] = text.let("int64", f"{masks[axis]} ? 0 : step")
        text.line(f"step *= {masks[axis]} ? 1 : {text.dim(x.shape[axis])};")
    total = text.let("int64", kernel.count(result.shape))
    text.line(f"for (int64 i = 0; i < {total}; ++i) y1[i] = {fold_start(op.kind, wide)};")
    names = [f"a{axis}" for axis in range(x.rank)]
    with contextlib.ExitStack() as stack:
        for name, size in zip(names, x.shape, strict=True):
            stack.enter_context(text.loop(name, "0", text.dim(size)))
        text.line(f"const int64 to = {dot_text(names, steps)};")
        value = f"({scalar.compute_type(wide)}){kernel.load(0, dot_text(names, kernel.strides(x.shape)))}"
        text.line(f"y1[to] = {fold_step(op.kind, 'y1[to]', value, wide)};")
    count = text.let("int64", f"{total} ? {kernel.count(x.shape)} / {total} : 0")
    with text.loop("i", "0", total):
        value = "y1[i]"
        if op.kind == "mean":
            value = f"{value} / (float64){count}" if wide is FLOAT64 else f"({count} ? {value} / ({wide}){count} : 0)"
        rounded = scalar.apply("convert", [f"({value})"], [wide], result.dtype) if wide is FLOAT64 else value
        text.line(kernel.store(0, result.dtype, "i", rounded))
    return kernel.kernel(1)
