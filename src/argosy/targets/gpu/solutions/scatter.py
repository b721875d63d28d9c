"""Scatters: every element of the result looks for its updates, or is told which one came last."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from argosy.ir.dim import bounds
from argosy.ir.dtype import INT32
from argosy.ir.types import TensorType
from argosy.targets.gpu.codegen.kernel import KernelWriter
from argosy.targets.gpu.codegen.scatter import Scatter, last_kernel, none_kernel, search_kernel, take_last_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution

__all__ = ["ScatterLast", "ScatterSearch"]

_FEW: Final = 64
"""Updates among which looking is as good as being told."""


@register_solution
class ScatterLast(LoneOp):
    """For a scatter that replaces: the number of each element's last update, by atomic maxima, then every element.

    Maxima are the same in any order.
    """

    name = "scatter last"
    anchors: ClassVar = frozenset({"scatter_elements", "scatter_nd"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        scatter = Scatter.of(problem.module)
        if scatter.reduction != "none":
            return "its updates are combined"
        upper = bounds(scatter.candidates)[1]
        if upper is not None and upper <= _FEW:
            return "an element has few updates to look at"
        if KernelWriter.is_large(scatter.numbers, INT32):
            return "the updates have numbers beyond 31 bits"
        return super().applies(problem)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module = problem.module
        last = steps.temporary(TensorType(INT32, Scatter.of(module).slots))
        steps.launch(none_kernel(module), [], [last])
        self.call(problem, steps, last_kernel(module), writes=[last])
        self.call(problem, steps, take_last_kernel(module), [last])


@register_solution
class ScatterSearch(LoneOp):
    """Every element goes over the updates that may be its own, in order, and rounds once.

    No two lanes write to one place, so that the bits are the same in every run.
    """

    name = "scatter search"
    anchors: ClassVar = frozenset({"scatter_elements", "scatter_nd"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        self.call(problem, steps, search_kernel(problem.module))
