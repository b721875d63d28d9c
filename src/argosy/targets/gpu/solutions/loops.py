"""Views, element-wise ops, reductions and softmax: one kernel each."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.loops import elementwise_kernel
from argosy.targets.gpu.codegen.reduction import reduction_kernel
from argosy.targets.gpu.codegen.rows import rows_kernel
from argosy.targets.gpu.codegen.softmax import softmax_kernel
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution

__all__ = ["Elementwise", "OneKernel", "Reduction", "Rows", "SoftmaxRows"]


class OneKernel(Solution):
    """Base of the solutions that always apply and are one kernel over all parameters, as they lie, and one result."""

    @abstractmethod
    def kernel(self, problem: Problem) -> Kernel:
        """The kernel; raises DeclinedError where it can't be generated."""

    def applies(self, problem: Problem) -> str:
        return "" if len(problem.module.results) == 1 else "it has several results"

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        places = range(len(problem.module.parameters))
        kernel = self.kernel(problem).early([steps.is_weight(place) for place in places])
        steps.launch(kernel, [steps.operand(place) for place in places], [steps.result(0, problem.order)])


@register_solution
class Elementwise(OneKernel):
    """Views and element-wise ops."""

    name = "elementwise"
    anchors: ClassVar = frozenset({""})

    def kernel(self, problem: Problem) -> Kernel:
        return elementwise_kernel(problem.module, problem.orders, problem.order)


@register_solution
class Reduction(OneKernel):
    """Sums, extremes and their positions."""

    name = "reduction"
    anchors: ClassVar = frozenset({"reduce", "arg_reduce"})

    def kernel(self, problem: Problem) -> Kernel:
        return reduction_kernel(problem.module, problem.anchor_instruction, problem.orders, problem.order)


@register_solution
class Rows(OneKernel):
    """Norms and softmaxes with what is element-wise around them."""

    name = "rows"
    anchors: ClassVar = frozenset({"rows"})

    def kernel(self, problem: Problem) -> Kernel:
        return rows_kernel(problem.module, problem.orders, problem.order)


@register_solution
class SoftmaxRows(OneKernel):
    """Softmax and its logarithm."""

    name = "softmax"
    anchors: ClassVar = frozenset({"softmax"})

    def kernel(self, problem: Problem) -> Kernel:
        return softmax_kernel(problem.module, problem.anchor_instruction, problem.orders, problem.order)
