"""Convolutions and their transposes."""

from __future__ import annotations

from typing import Any

from argosy.ir.builder import Builder
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.loops import elementwise_kernel
from argosy.targets.cpu.codegen.part import append, part_of
from argosy.targets.cpu.codegen.product_loops import conv_loops, conv_transpose_loops
from argosy.targets.cpu.solution import OneKernel, Problem, Solution, Steps, register_solution
from argosy.targets.cpu.solutions.inner_steps import lower_inner

__all__ = ["ConvLoops", "ConvTransposeLoops", "ConvolutionApart"]


@register_solution
class ConvolutionApart(Solution):
    """The convolution alone, then loops for what follows: where that can't be done on the tiles."""

    name = "convolution apart"
    anchors = frozenset({"conv", "conv_transpose"})

    def applies(self, problem: Problem) -> str:
        return "nothing follows it" if problem.module.results[0] == problem.anchor_instruction.result() else ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module, anchor = problem.module, problem.anchor_instruction
        alone = part_of(module, [anchor.result()])
        made = lower_inner(alone.module, anchor, problem, steps, alone.parameters)
        rest = part_of(module, [module.results[0]], {anchor})
        build = Builder("rest")
        values = {anchor.result(): build.parameter("made", anchor.types[0])}
        append(build, rest.module, values)
        kernel = elementwise_kernel(build.module({"y": values[module.results[0]]}))
        steps.call(kernel, [made, *(steps.operand(index) for index in rest.parameters)], [steps.result()])


@register_solution
class ConvLoops(OneKernel):
    """A sum over a window for each element of the result."""

    name = "convolution loops"
    anchors = frozenset({"conv"})
    rank = -1

    def kernel(self, problem: Problem) -> Kernel:
        return conv_loops(problem.module, problem.anchor_instruction)


@register_solution
class ConvTransposeLoops(OneKernel):
    """For each element of the result, the sum of what the inputs add to it."""

    name = "transposed convolution loops"
    anchors = frozenset({"conv_transpose"})
    rank = -1

    def kernel(self, problem: Problem) -> Kernel:
        return conv_transpose_loops(problem.module, problem.anchor_instruction)
