"""Solutions of single ops: what they share."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.solution import Problem, Solution, Steps

__all__ = ["LoneOp"]


class LoneOp(Solution):
    """Base of solutions for one op that is not fused with others, whose kernels see all tensors in row-major order.

    They decline while they write, by DeclinedError.
    """

    def applies(self, problem: Problem) -> str:
        if problem.anchor is None or len(problem.module.instructions) != 1:
            return "it is fused with other ops"
        return ""

    @staticmethod
    def call(
        problem: Problem, steps: Steps, kernel: Kernel, temporaries: Sequence[int] = (), writes: Sequence[int] = ()
    ) -> None:
        """Append a launch that reads all operands and the temporaries; without `writes` it writes all results."""
        reads = [steps.ordered(index, None) for index in range(len(problem.module.parameters))]
        results = list(writes) or [steps.result(index) for index in range(len(problem.module.results))]
        steps.launch(kernel, [*reads, *temporaries], results)
