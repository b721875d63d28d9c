"""Running sums and products along an axis that may be known only when the program runs."""

from __future__ import annotations

from typing import Any

from argosy.ir.module import Module
from argosy.ops.scan import Cumulative
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.codegen.reduction import fold_start, fold_step
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import DeclinedError, op_of

__all__ = ["CumulativeLoops"]


@register_solution
class CumulativeLoops(LoneOp):
    """A loop along the axis for every line of the tensor."""

    name = "cumulative loops"
    anchors = frozenset({"cumulative"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        self.call(problem, steps, _cumulative(problem.module))


def _cumulative(module: Module) -> Kernel:
    kernel = OpKernel(module, [module.results[0].dtype])
    op, text = op_of(kernel.instruction, Cumulative), kernel.text
    x = kernel.operand(0)
    axes = kernel.elements.entries(None, kernel.operand(1))
    if not axes or x.rank == 0:
        raise DeclinedError("the axis of a cumulative op is not one number")
    given = text.dim(axes[0])
    axis = text.let("int64", f"{given} + ({given} < 0 ? {x.rank} : 0)")
    text.line(f"if ({axis} < 0 || {axis} >= {x.rank}) {{ argosy_fail(scratch, ARGOSY_INDEX, {given}); return; }}")
    text.line("int64 size = 1, inner = 1;")
    for number, dim in enumerate(x.shape):
        text.line(f"size = {axis} == {number} ? {text.dim(dim)} : size;")
        text.line(f"inner *= {number} > {axis} ? {text.dim(dim)} : 1;")
    kind = "sum" if op.kind == "sum" else "prod"
    wide = x.dtype.compute
    with kernel.share("line", f"size ? {kernel.count(x.shape)} / size : 0"):
        base = text.let("int64", "line / inner * size * inner + line % inner")
        text.line(f"{scalar.compute_type(wide)} total = {fold_start(kind, wide)};")
        with text.loop("i", "0", "size"):
            at = text.let("int64", f"{base} + {'(size - 1 - i)' if op.reverse else 'i'} * inner")
            value = text.let(scalar.compute_type(wide), kernel.load(0, at))
            if op.exclusive:
                text.line(kernel.store(0, x.dtype, at, "total"))
            text.line(f"total = {fold_step(kind, 'total', value, wide)};")
            if not op.exclusive:
                text.line(kernel.store(0, x.dtype, at, "total"))
    return kernel.kernel(chunk_count(product(x.shape), product(x.shape)))
