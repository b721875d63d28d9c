"""Pooling."""

from __future__ import annotations

from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.pooling import pool_loops
from argosy.targets.cpu.solution import OneKernel, Problem, register_solution

__all__ = ["PoolLoops"]


@register_solution
class PoolLoops(OneKernel):
    """A loop over the window of each element of the result."""

    name = "pool loops"
    anchors = frozenset({"pool"})

    def kernel(self, problem: Problem) -> Kernel:
        return pool_loops(problem.module, problem.anchor_instruction)
