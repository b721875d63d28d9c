"""Reductions of float32 by vectors."""

from __future__ import annotations

from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.vector_reduction import reduce_across, reduce_along
from argosy.targets.cpu.solution import OneKernel, Problem, register_solution

__all__ = ["ReductionAcross", "ReductionAlong"]


@register_solution
class ReductionAcross(OneKernel):
    """Sixteen results side by side in a vector."""

    name = "reduction across"
    anchors = frozenset({"reduce", "arg_reduce"})
    rank = 2

    def kernel(self, problem: Problem) -> Kernel:
        return reduce_across(problem.module, problem.anchor_instruction)


@register_solution
class ReductionAlong(OneKernel):
    """Sixteen neighbours of the last axis in a vector."""

    name = "reduction along"
    anchors = frozenset({"reduce", "arg_reduce"})
    rank = 1

    def kernel(self, problem: Problem) -> Kernel:
        return reduce_along(problem.module, problem.anchor_instruction)
