"""Fourier transforms in stages of the factors of their length, and the matrix of the mel scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64, INT64
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.ops.signal import Fourier
from argosy.targets.gpu.codegen.fourier import (
    FACTORS,
    factors_kernel,
    fourier_sizes,
    most_numbers,
    read_kernel,
    sums_kernel,
    table_kernel,
)
from argosy.targets.gpu.codegen.fourier_stages import RADICES, stage_kernel, stages_of, turns_kernel
from argosy.targets.gpu.codegen.mel import mel_kernel, mel_sizes
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.gpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import DeclinedError, op_of, present
from argosy.targets.lowering.transforms import fixed_length, known_axis

__all__ = ["FourierStages", "FourierSums", "MelMatrix"]


@register_solution
class FourierStages(LoneOp):
    """A kernel for each factor of a length that is known; the turns are made once, at load.

    The first computes what is fused with the transform, such as the frames of a signal and their window, as it reads.
    """

    name = "fourier stages"
    anchors: ClassVar = frozenset({"dft"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        dft = problem.anchor_instruction
        axis = known_axis(dft)
        if axis is None:
            return "the axis is known only when the program runs"
        length = fixed_length(dft, axis)
        if length is None or length < 1:
            return f"the length is {length}"
        return "" if isinstance(present(dft, 0).shape[-1], int) else "it is not known whether the signal is real"

    def configs(self, problem: Problem) -> Sequence[int]:
        del problem
        return RADICES

    def lower(self, problem: Problem, config: int, steps: Steps) -> None:
        dft, module = problem.anchor_instruction, problem.module
        axis = known_axis(dft)
        length = None if axis is None else fixed_length(dft, axis)
        if axis is None or length is None:
            raise DeclinedError("the axis or the length is known only when the program runs")
        define_sizes(problem, steps, fourier_sizes)
        x, wide = present(dft, 0), dft.result().dtype.compute
        lines = product((*x.shape[:axis], *x.shape[axis + 1 : -1]))
        turns = turns_kernel(length, wide, inverse=op_of(dft, Fourier).inverse)
        made = [steps.prepared(turns, [], TensorType(wide, (length, 2)))]
        for stage in stages_of(length, config):
            target = steps.result() if stage.last else steps.temporary(TensorType(wide, (lines, length, 2)))
            kernel = stage_kernel(module, axis, stage, problem.arch.wave_size)
            self.call(problem, steps, kernel, made, [target])
            made = [made[0], target]


@register_solution
class FourierSums(LoneOp):
    """Factors of the length that the run finds, and a stage of sums for each, in float64."""

    name = "fourier sums"
    anchors: ClassVar = frozenset({"dft"})

    def applies(self, problem: Problem) -> str:
        del problem
        return ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, fourier_sizes)
        dft, module = problem.anchor_instruction, problem.module
        # the length is not a dim of a one-sided result, but less than twice the longest of them
        longest: DimLike = 2
        for size in (*dft.result().shape, *present(dft, 0).shape):
            longest = 2 * size + longest
        table, factors = (
            steps.temporary(TensorType(FLOAT64, (longest, 2))),
            steps.temporary(TensorType(INT64, (FACTORS,))),
        )
        self.call(problem, steps, table_kernel(module, longest), writes=[table])
        self.call(problem, steps, factors_kernel(module), writes=[factors])
        kind = TensorType(FLOAT64, (2, most_numbers(module)))
        held = steps.temporary(kind)
        self.call(problem, steps, read_kernel(module), writes=[held])
        for place in range(FACTORS):
            target = steps.result() if place == FACTORS - 1 else steps.temporary(kind)
            self.call(problem, steps, sums_kernel(module, place), [table, factors, held], [target])
            held = target


@register_solution
class MelMatrix(LoneOp):
    """Every element from the edges of its bin."""

    name = "mel matrix"
    anchors: ClassVar = frozenset({"mel_weights"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, mel_sizes)
        self.call(problem, steps, mel_kernel(problem.module))
