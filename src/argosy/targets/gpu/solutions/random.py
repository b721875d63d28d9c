"""Random numbers: every element on its own, from its place and the number of the draw."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.targets.gpu.codegen.drawing import random_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution

__all__ = ["PhiloxNumbers"]


@register_solution
class PhiloxNumbers(LoneOp):
    """A lane for each element."""

    name = "philox numbers"
    anchors: ClassVar = frozenset({"random"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        self.call(problem, steps, random_kernel(problem.module), [steps.draw_number()])
