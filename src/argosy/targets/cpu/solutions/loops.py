"""Plain loop nests: every module of views and elementwise ops, and reductions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.targets.cpu.codegen.loops import elementwise_kernel
from argosy.targets.cpu.codegen.piece import pieces_of
from argosy.targets.cpu.codegen.reduction import reduction_kernel
from argosy.targets.cpu.solution import Problem, Solution, Steps, register_solution

__all__ = ["ElementwiseLoops", "ReductionLoops"]


@register_solution
class ElementwiseLoops(Solution):
    """One loop nest over the result."""

    name = "elementwise loops"
    anchors = frozenset({""})

    def applies(self, problem: Problem) -> str:
        del problem
        return ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        kernel = replace(elementwise_kernel(problem.module), pieces=pieces_of(problem.module))
        steps.call(kernel, [steps.operand(i) for i in range(len(problem.module.parameters))], [steps.result()])


@register_solution
class ReductionLoops(Solution):
    """Loops over the reduced axes inside loops over the result."""

    name = "reduction loops"
    anchors = frozenset({"reduce", "arg_reduce"})

    def applies(self, problem: Problem) -> str:
        return "" if problem.anchor is not None else "no anchor"

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        kernel = reduction_kernel(problem.module, problem.anchor_instruction)
        steps.call(kernel, [steps.operand(i) for i in range(len(problem.module.parameters))], [steps.result()])
