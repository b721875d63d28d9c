"""The kernel of a max pool that also says where each greatest element is."""

from __future__ import annotations

import contextlib

from argosy.ir.module import Module
from argosy.ops.pooling import Pool
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.window import geometry
from argosy.targets.lowering.accesses import op_of

__all__ = ["positions_kernel"]


def positions_kernel(module: Module) -> Kernel:
    """The kernel of a `pool` with indices: of equals the first counts, and so does the first NaN."""
    kernel = OpKernel(module)
    text, op, x = kernel.text, op_of(kernel.instruction, Pool), kernel.operand(0)
    window, result = geometry(kernel.instruction), module.results[0]
    spatial = [text.dim(size) for size in x.shape[2:]]
    rank = len(spatial)
    kernel.items(product(result.shape))
    _, _, *out = kernel.counters("i", result.shape, "o")
    text.line(f"plane = i // {kernel.count(result.shape[2:])} * {kernel.count(x.shape[2:])}")
    kernel.zeros("best", scalar.compute_type(x.dtype))
    kernel.zeros("place", "tl.int64", "-1")
    order = range(rank - 1, -1, -1) if op.column_major else range(rank)
    with contextlib.ExitStack() as stack:
        for axis, size in enumerate(window.kernel):
            stack.enter_context(text.block(f"for k{axis} in range(0, {text.dim(size)}):"))
        text.line("known = inside")
        for axis in range(rank):
            tap = f"k{axis} * {window.dilations[axis]} - {text.dim(window.before[axis])}"
            text.line(f"a{axis} = {out[axis]} * {window.strides[axis]} + {tap}")
            text.line(f"known = known & (a{axis} >= 0) & (a{axis} < {spatial[axis]})")
        value = kernel.load(0, f"plane + {_flat(spatial, range(rank))}", "known")
        text.line(f"here = plane + {_flat(spatial, order)}")
        better = f"({value} > best) | (place < 0) | (({value} != {value}) & (best == best))"
        text.line(f"take = known & ({better})")
        text.line(f"best = tl.where(take, {value}, best)")
        text.line("place = tl.where(take, here, place).to(tl.int64)")
    kernel.put("i", "best")
    kernel.put("i", "place", 1)
    return kernel.finished()


def _flat(sizes: list[str], order: range) -> str:
    """The place of the coordinates `a0`, `a1`, … within a plane whose axes lie in an order, outermost first."""
    total = f"a{order[0]}"
    for axis in order[1:]:
        total = f"({total}) * {sizes[axis]} + a{axis}"
    return total
