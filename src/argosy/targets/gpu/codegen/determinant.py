"""Determinants by elimination with row pivots, in float64, on a copy of each matrix in global memory."""

from __future__ import annotations

from typing import Final

from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel, Launch
from argosy.targets.gpu.codegen.op_kernel import OpKernel

__all__ = ["determinant_kernel"]

_LINE: Final = 128
_TILE: Final = (8, 32)


def determinant_kernel(module: Module) -> Kernel:
    """The kernel of a `determinant`; behind the result it writes the room for the matrices.

    Barriers part what some threads read from what others write after it.
    """
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype, FLOAT64])
    text, x = kernel.text, kernel.operand(0)
    room = kernel.result(1)
    text.line(f"size = {kernel.dim(0, x.rank - 1)}")
    text.line(f"first = {kernel.program()} * size * size")
    with text.block(f"for begin in range(0, size * size, {_LINE}):"):
        text.line(f"at = begin + tl.arange(0, {_LINE})")
        text.line("inside = at < size * size")
        value = kernel.load(0, "first + at")
        kernel.put("first + at", f"{value}.to(tl.float64)", 1)
    text.line(f"total = {scalar.constant(1.0, FLOAT64)}")
    text.line("tl.debug_barrier()")
    with text.block("for k in range(0, size):"):
        kernel.code(f"""
best = {scalar.constant(-1.0, FLOAT64)}
pivot = k + 0 * size
for begin in range(k, size, {_LINE}):
    at = begin + tl.arange(0, {_LINE})
    held = tl.abs(tl.load({room} + first + at * size + k, mask=at < size, other=-1.0))
    held = tl.where(at < size, held, -1.0)
    most, place = tl.max(held, 0), tl.argmax(held, 0) + begin
    pivot = tl.where(most > best, place, pivot)
    best = tl.where(most > best, most, best)
head = tl.load({room} + first + pivot * size + k)
total = total * tl.where(pivot == k, head, -head)
share = tl.where(head == 0.0, 0.0, 1.0 / tl.where(head == 0.0, 1.0, head))
tl.debug_barrier()
for begin in range(k, size, {_LINE}):
    at = begin + tl.arange(0, {_LINE})
    own = {room} + first + k * size + at
    other = {room} + first + pivot * size + at
    left, right = tl.load(own, mask=at < size, other=0.0), tl.load(other, mask=at < size, other=0.0)
    tl.store(other, left, mask=at < size)
    tl.store(own, right, mask=at < size)
tl.debug_barrier()
for up in range(k + 1, size, {_TILE[0]}):
    row = up + tl.arange(0, {_TILE[0]})[:, None]
    factor = tl.load({room} + first + row * size + k, mask=row < size, other=0.0) * share
    for begin in range(k + 1, size, {_TILE[1]}):
        column = begin + tl.arange(0, {_TILE[1]})[None, :]
        known = (row < size) & (column < size)
        held = tl.load({room} + first + row * size + column, mask=known, other=0.0)
        over = tl.load({room} + first + k * size + column, mask=column < size, other=0.0)
        tl.store({room} + first + row * size + column, held - factor * over, mask=known)
tl.debug_barrier()""")
    rounded = scalar.apply("convert", ["total"], [FLOAT64], result.dtype.compute)
    kernel.put(kernel.program(), rounded, mask="")
    return kernel.kernel(Launch((product(x.shape[:-2]), 1, 1), 4), kernel.stored)
