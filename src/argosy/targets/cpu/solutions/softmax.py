"""Softmax."""

from __future__ import annotations

from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.softmax import softmax_loops, softmax_rows
from argosy.targets.cpu.solution import OneKernel, Problem, register_solution

__all__ = ["SoftmaxLoops", "SoftmaxRows"]


@register_solution
class SoftmaxLoops(OneKernel):
    """Three passes over each row."""

    name = "softmax loops"
    anchors = frozenset({"softmax"})

    def kernel(self, problem: Problem) -> Kernel:
        return softmax_loops(problem.module, problem.anchor_instruction)


@register_solution
class SoftmaxRows(OneKernel):
    """Vectors along the last axis."""

    name = "softmax rows"
    anchors = frozenset({"softmax"})
    rank = 1

    def kernel(self, problem: Problem) -> Kernel:
        return softmax_rows(problem.module, problem.anchor_instruction)
