"""Ops that keep as many elements as the data says: counted first, then copied."""

from __future__ import annotations

from typing import Any

from argosy.ir.dtype import INT64
from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.ops.index import Compress
from argosy.ops.shapes import normalize_axis
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import op_of

__all__ = ["CompressCopies", "NonZeroCoordinates"]


@register_solution
class NonZeroCoordinates(LoneOp):
    """A pass that counts and one that writes."""

    name = "nonzero coordinates"
    anchors = frozenset({"nonzero"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        _define_count(self, problem, steps, _count_nonzero(problem.module))
        self.call(problem, steps, _coordinates(problem.module))


@register_solution
class CompressCopies(LoneOp):
    """A pass that counts and one that copies."""

    name = "compress copies"
    anchors = frozenset({"compress"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        _define_count(self, problem, steps, _count_selected(problem.module))
        self.call(problem, steps, _selected(problem.module))


def _define_count(solution: LoneOp, problem: Problem, steps: Steps, kernel: Kernel) -> None:
    names = [name for name, _ in steps.undefined(0)]
    if names:
        count = steps.temporary(TensorType(INT64, (1,)))
        solution.call(problem, steps, kernel, writes=[count])
        steps.define(names[0], count)


def _is_nonzero(kernel: OpKernel) -> str:
    """Whether element `i` is not zero; NaN is not."""
    value = kernel.load(0, "i")
    if kernel.operand(0).dtype.kind == "complex":
        return f"({value}.re != 0 || {value}.im != 0)"
    return f"({value} != 0)"


def _count_nonzero(module: Module) -> Kernel:
    kernel = OpKernel(module, [INT64])
    kernel.text.line("int64 count = 0;")
    with kernel.text.loop("i", "0", kernel.count(kernel.operand(0).shape)):
        kernel.text.line(f"count += {_is_nonzero(kernel)};")
    kernel.text.line("y0[0] = count;")
    return kernel.kernel(1)


def _coordinates(module: Module) -> Kernel:
    kernel = OpKernel(module, [INT64])
    shape = kernel.operand(0).shape
    if not shape:
        return kernel.kernel(1)
    count = kernel.text.let("int64", kernel.text.dim(kernel.instruction.result().shape[1]))
    kernel.text.line("int64 next = 0;")
    with kernel.text.loop("i", "0", kernel.count(shape)), kernel.text.block(f"if ({_is_nonzero(kernel)})"):
        for axis, place in enumerate(kernel.counters("i", shape, "c")):
            kernel.text.line(f"y0[{axis} * {count} + next] = {place};")
        kernel.text.line("++next;")
    return kernel.kernel(1)


def _sizes(kernel: OpKernel) -> tuple[str, str, str]:
    """Elements before the axis, along it, and after it."""
    op, shape = op_of(kernel.instruction, Compress), kernel.operand(0).shape
    if op.axis is None:
        return "1", kernel.text.let("int64", kernel.count(shape)), "1"
    axis = normalize_axis(op.axis, len(shape))
    parts = (shape[:axis], shape[axis : axis + 1], shape[axis + 1 :])
    outer, size, inner = (kernel.text.let("int64", kernel.count(part)) for part in parts)
    return outer, size, inner


def _count_selected(module: Module) -> Kernel:
    kernel = OpKernel(module, [INT64])
    _, size, _ = _sizes(kernel)
    kernel.text.line("int64 count = 0;")
    with kernel.text.loop("i", "0", kernel.dim(1, 0)), kernel.text.block(f"if ({kernel.load(1, 'i')})"):
        kernel.text.line(f"if (i >= {size}) {{ argosy_fail(scratch, ARGOSY_INDEX, i); return; }}")
        kernel.text.line("++count;")
    kernel.text.line("y0[0] = count;")
    return kernel.kernel(1)


def _selected(module: Module) -> Kernel:
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype])
    outer, size, inner = _sizes(kernel)
    text = kernel.text
    axis = op_of(kernel.instruction, Compress).axis
    place = 0 if axis is None else normalize_axis(axis, result.rank)
    count = text.let("int64", text.dim(result.shape[place]))
    text.line("int64 next = 0;")
    with text.loop("i", "0", kernel.dim(1, 0)), text.block(f"if ({kernel.load(1, 'i')})"):
        with text.loop("row", "0", outer), text.loop("k", "0", inner):
            value = kernel.load(0, f"(row * {size} + i) * {inner} + k")
            text.line(kernel.store(0, result.dtype, f"(row * {count} + next) * {inner} + k", value))
        text.line("++next;")
    return kernel.kernel(1)
