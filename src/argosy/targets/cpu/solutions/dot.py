"""Matrix products."""

from __future__ import annotations

from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.product_loops import dot_loops
from argosy.targets.cpu.solution import OneKernel, Problem, register_solution

__all__ = ["DotLoops"]


@register_solution
class DotLoops(OneKernel):
    """A sum for each element of the result."""

    name = "dot loops"
    anchors = frozenset({"dot"})

    def kernel(self, problem: Problem) -> Kernel:
        return dot_loops(problem.module, problem.anchor_instruction)
