"""Resize: every mode, with scales, sizes and regions that may be known only when the program runs."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.targets.gpu.codegen.resize import resize_kernel
from argosy.targets.gpu.codegen.resize_axes import resize_sizes
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.steered import define_sizes

__all__ = ["ResizedElements"]


@register_solution
class ResizedElements(Solution):
    """Every element of the result reads its neighbours."""

    name = "resized elements"
    anchors: ClassVar = frozenset({"resize"})

    def applies(self, problem: Problem) -> str:
        return "" if len(problem.module.instructions) == 1 else "it is fused with other ops"

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, resize_sizes)
        kernel = resize_kernel(problem.module, problem.orders, problem.order)
        reads = [steps.operand(i) for i in range(len(problem.module.parameters))]
        steps.launch(kernel, reads, [steps.result(0, problem.order)])
