"""What a run must satisfy: one comparison."""

from __future__ import annotations

from argosy.ops.requirement import Require
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.solution import OneKernel, Problem, register_solution
from argosy.targets.lowering.accesses import op_of

__all__ = ["Requirement"]


@register_solution
class Requirement(OneKernel):
    """Reports shapes that do not fit each other, which is why the branch not taken can't run."""

    name = "requirement"
    anchors = frozenset({"require"})

    def kernel(self, problem: Problem) -> Kernel:
        kernel = OpKernel(problem.module, [])
        op = op_of(kernel.instruction, Require)
        count = kernel.count(kernel.operand(0).shape)
        kernel.text.line(f"if ({count} != 1) {{ argosy_fail(scratch, ARGOSY_SHAPES, -1); return; }}")
        kernel.text.line(f"if ({kernel.load(0, '0')} != {int(op.expected)}) argosy_fail(scratch, ARGOSY_SHAPES, -1);")
        return kernel.kernel(1).labelled("require")
