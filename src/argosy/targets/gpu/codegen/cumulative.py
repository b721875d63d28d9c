"""Running sums and products: programs scan tiles of some lines in parallel and carry the totals of earlier tiles."""

from __future__ import annotations

from typing import Final

from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.module import Module, Value
from argosy.ops.scan import Cumulative
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.blocks import at_most
from argosy.targets.gpu.codegen.kernel import Kernel, Launch
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.reduction import fold_start
from argosy.targets.lowering.accesses import DeclinedError, op_of

__all__ = ["COMBINE", "cumulative_kernel"]

_TILE: Final = 1024
COMBINE: Final = {"sum": "add_any", "prod": "mul_any"}
"""The function of each kind in the kernels' prelude."""


def cumulative_kernel(module: Module) -> Kernel:
    """The kernel of a `cumulative`."""
    kernel = OpKernel(module)
    op, text, x = op_of(kernel.instruction, Cumulative), kernel.text, kernel.operand(0)
    if x.rank == 0:
        raise DeclinedError("a scalar has no axis")
    size, inner, lines = _along(kernel, x)
    wide = at_most(size, _TILE)
    high = max(min(_TILE // wide, at_most(lines, _TILE)), 1)
    kind = scalar.compute_type(x.dtype)
    start, combine = fold_start(op.kind, x.dtype), COMBINE[op.kind]
    text.line(f"size, inner = {text.dim(size)}, {text.dim(inner)}")
    text.line(f"count = {text.dim(product(x.shape))}")
    text.line(f"line = {kernel.program()} * {high} + tl.arange(0, {high})[:, None]")
    # The least of all axes tells how many lines there are at most; those beyond the axis's own number have none.
    text.line("first = line // inner * size * inner + line % inner")
    text.line("known = line * size < count")
    text.line(f"carry = tl.full([{high}, 1], {start}, {kind})")
    if op.exclusive:
        end = "(size - 1) * inner" if op.reverse else "0"
        text.line(f"none = tl.full([{high}, 1], {start}, {kind})")
        kernel.put(f"first + {end}", "none", mask="known")
    with text.block(f"for begin in range(0, size, {wide}):"):
        text.line(f"step = begin + tl.arange(0, {wide})[None, :]")
        text.line("inside = known & (step < size)")
        text.line(f"place = first + {'(size - 1 - step)' if op.reverse else 'step'} * inner")
        value = kernel.load(0, "place")
        text.line(f"value = tl.where(inside, {value}, tl.full([], {start}, {kind}))")
        run = f"tl.associative_scan(value, 1, {combine})"
        total = f"tl.reduce(value, 1, {combine}, keep_dims=True)"
        text.line(f"run = {combine}({run}, carry).to({kind})")
        text.line(f"carry = {combine}(carry, {total}).to({kind})")
        if op.exclusive:
            moved = "place - inner" if op.reverse else "place + inner"
            kernel.put(moved, "run", mask="inside & (step + 1 < size)")
        else:
            kernel.put("place", "run")
    return kernel.kernel(Launch((ceildiv(lines, high), 1, 1), 4))


def _along(kernel: OpKernel, x: Value) -> tuple[DimLike, DimLike, DimLike]:
    """The size of the axis, elements behind it, and how many lines there are, at most."""
    given = kernel.number(1)
    if isinstance(given, int):
        axis = normalize_axis(given, x.rank)
        inner = product(x.shape[axis + 1 :])
        return x.shape[axis], inner, product(x.shape[:axis]) * inner
    text = kernel.text
    axis_text = text.let(f"{text.dim(given)} + tl.where({text.dim(given)} < 0, {x.rank}, 0)")
    size, inner_text, rest = text.dim(x.shape[-1]), "1", "1"
    for place in reversed(range(x.rank - 1)):
        rest = text.let(f"{rest} * {text.dim(x.shape[place + 1])}")
        size = text.let(f"tl.where({axis_text} == {place}, {text.dim(x.shape[place])}, {size})")
        inner_text = text.let(f"tl.where({axis_text} == {place}, {rest}, {inner_text})")
    lines = max((product((*x.shape[:a], *x.shape[a + 1 :])) for a in range(x.rank)), key=_known)
    if not all(isinstance(extent, int) for extent in x.shape):
        lines = product(x.shape)
    return (
        symbol_dim(Symbol(f"@{text.let(f'{size} + 0')}")),
        symbol_dim(Symbol(f"@{text.let(f'{inner_text} + 0')}")),
        lines,
    )


def _known(count: DimLike) -> int:
    return count if isinstance(count, int) else -1
