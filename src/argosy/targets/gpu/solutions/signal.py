"""Fourier transforms by a table of sines, and the matrix of the mel scale."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64
from argosy.ir.types import TensorType
from argosy.targets.gpu.codegen.fourier import fourier_sizes, table_kernel, transform_kernel
from argosy.targets.gpu.codegen.mel import mel_kernel, mel_sizes
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.gpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import present

__all__ = ["FourierSums", "MelMatrix"]


@register_solution
class FourierSums(LoneOp):
    """A sum over the signal for each frequency, in float64."""

    name = "fourier sums"
    anchors: ClassVar = frozenset({"dft"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, fourier_sizes)
        dft = problem.anchor_instruction
        # the length is not a dim of a one-sided result, but less than twice the longest of them
        longest: DimLike = 2
        for size in (*dft.result().shape, *present(dft, 0).shape):
            longest = 2 * size + longest
        table = steps.temporary(TensorType(FLOAT64, (longest, 2)))
        self.call(problem, steps, table_kernel(problem.module, longest), writes=[table])
        self.call(problem, steps, transform_kernel(problem.module), [table])


@register_solution
class MelMatrix(LoneOp):
    """Every element from the edges of its bin."""

    name = "mel matrix"
    anchors: ClassVar = frozenset({"mel_weights"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, mel_sizes)
        self.call(problem, steps, mel_kernel(problem.module))
