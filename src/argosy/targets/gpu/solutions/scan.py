"""Running sums and products along an axis that may be known only when the program runs."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.targets.gpu.codegen.cumulative import cumulative_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution

__all__ = ["CumulativeScans"]


@register_solution
class CumulativeScans(LoneOp):
    """Each program scans some lines, a tile of each at a time."""

    name = "cumulative scans"
    anchors: ClassVar = frozenset({"cumulative"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        self.call(problem, steps, cumulative_kernel(problem.module))
