"""Columns back to an image: every element goes over the places of a block that may lie on it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction, Module
from argosy.ops.col2im import Col2Im
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.steering import given, number
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["image_kernel", "image_sizes"]


def image_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of the result of a `col2im`."""
    x = present(instruction, 0)
    block = product(tuple(given(elements.entries(None, present(instruction, 2)))))
    elements.text.faults = True
    sizes = f"{number(elements, x.shape[1])}, {number(elements, block)}"
    channels = elements.local(f"remaining_size(fault, {sizes})", 0)
    return [[x.shape[0], channels, *given(elements.entries(None, present(instruction, 1)))]]


def image_kernel(module: Module) -> Kernel:
    """The kernel of a `col2im`."""
    result = module.results[0]
    if result.dtype.kind == "bool":
        raise DeclinedError("bools have no sum")
    kernel = OpKernel(module)
    text, op = kernel.text, op_of(kernel.instruction, Col2Im)
    image, block = result.shape[2:], given(kernel.elements.entries(None, kernel.operand(2)))
    rank, kind = len(image), scalar.compute_type(result.dtype)
    strides, dilations = op.strides or (1,) * rank, op.dilations or (1,) * rank
    pads = op.pads or (0,) * (2 * rank)
    counts: list[DimLike] = []
    for axis, size in enumerate(image):
        room = size + (pads[axis] + pads[rank + axis]) - dilations[axis] * (block[axis] - 1) - 1
        counts.append(dims.floordiv(room, strides[axis]) + 1)
    kernel.items(product(result.shape))
    wanted = number(kernel.elements, product(tuple(counts)))
    if dims.equal(kernel.operand(0).shape[2], product(tuple(counts))) is not True:
        kernel.elements.fault(f"{kernel.dim(0, 2)} + i * 0 != {wanted}", Fault.SHAPES, "2")
    text.line(f"taps, blocks = {kernel.count(block)}, {kernel.count(counts)}")
    _, _, *places = kernel.counters("i", result.shape, "o")
    text.line(f"plane = i // {kernel.count(image)}")
    kernel.zeros("total", kind)
    with contextlib.ExitStack() as stack:
        for axis, size in enumerate(block):
            stack.enter_context(text.block(f"for k{axis} in range(0, {text.dim(size)}):"))
        text.line("tap, spot, known = 0, i * 0, inside")
        for axis in range(rank):
            count = text.dim(counts[axis])
            text.line(f"tap = tap * {text.dim(block[axis])} + k{axis}")
            text.line(f"d{axis} = {places[axis]} + {pads[axis]} - k{axis} * {dilations[axis]}")
            text.line(f"b{axis} = d{axis} // {strides[axis]}")
            text.line(f"known = known & (d{axis} >= 0) & (d{axis} % {strides[axis]} == 0) & (b{axis} < {count})")
            text.line(f"spot = spot * {count} + b{axis}")
        value = kernel.load(0, "(plane * taps + tap) * blocks + spot", "known")
        total = scalar.apply("add", ["total", value], [result.dtype] * 2, result.dtype)
        text.line(f"total = tl.where(known, {total}, total)")
    kernel.put("i", "total")
    return kernel.finished()
