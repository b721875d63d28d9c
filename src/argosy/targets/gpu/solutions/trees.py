"""Ensembles of decision trees: every lane walks down every tree."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.targets.gpu.codegen.trees import tree_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution

__all__ = ["TreeWalks"]


@register_solution
class TreeWalks(LoneOp):
    """A lane for each row and target; sums are taken in float64."""

    name = "tree walks"
    anchors: ClassVar = frozenset({"tree_ensemble"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        self.call(problem, steps, tree_kernel(problem.module))
