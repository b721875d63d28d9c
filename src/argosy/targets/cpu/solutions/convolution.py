"""Convolutions and their transposes."""

from __future__ import annotations

from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.product_loops import conv_loops, conv_transpose_loops
from argosy.targets.cpu.solution import OneKernel, Problem, register_solution

__all__ = ["ConvLoops", "ConvTransposeLoops"]


@register_solution
class ConvLoops(OneKernel):
    """A sum over a window for each element of the result."""

    name = "convolution loops"
    anchors = frozenset({"conv"})

    def kernel(self, problem: Problem) -> Kernel:
        return conv_loops(problem.module, problem.anchor_instruction)


@register_solution
class ConvTransposeLoops(OneKernel):
    """For each element of the result, the sum of what the inputs add to it."""

    name = "transposed convolution loops"
    anchors = frozenset({"conv_transpose"})

    def kernel(self, problem: Problem) -> Kernel:
        return conv_transpose_loops(problem.module, problem.anchor_instruction)
