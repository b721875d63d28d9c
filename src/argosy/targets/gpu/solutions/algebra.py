"""Einstein sums that are no products of matrices, and determinants."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.ir.dtype import FLOAT64
from argosy.ir.types import TensorType
from argosy.targets.gpu.codegen.determinant import determinant_kernel
from argosy.targets.gpu.codegen.einsum import einsum_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution

__all__ = ["DeterminantElimination", "EinsumLoops"]


@register_solution
class EinsumLoops(LoneOp):
    """One sum of products for each element of the result."""

    name = "einsum loops"
    anchors: ClassVar = frozenset({"einsum"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        self.call(problem, steps, einsum_kernel(problem.module))


@register_solution
class DeterminantElimination(LoneOp):
    """Gaussian elimination with row pivots, in float64: a program for each matrix."""

    name = "determinant elimination"
    anchors: ClassVar = frozenset({"determinant"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        room = steps.temporary(TensorType(FLOAT64, problem.module.parameters[0].result().shape))
        self.call(problem, steps, determinant_kernel(problem.module), writes=[steps.result(), room])
