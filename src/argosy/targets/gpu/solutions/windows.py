"""Pools, and convolutions element by element where no product does them."""

from __future__ import annotations

from typing import ClassVar

from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.window import pool_kernel, window_kernel
from argosy.targets.gpu.solution import Order, Problem, register_solution
from argosy.targets.gpu.solutions.loops import OneKernel

__all__ = ["Pooling", "WindowConvolution", "last_channels"]


def last_channels(problem: Problem, index: int) -> Order:
    """Channels last, for what a window slides over, and for what its result is put together with."""
    anchor = problem.anchor_instruction
    x, parameter = anchor.operands[0], problem.module.parameters[index]
    if x is None or parameter.result().shape not in (x.shape, anchor.result().shape):
        return None
    return (0, *range(2, x.rank), 1)


@register_solution
class Pooling(OneKernel):
    """Pools of all kinds."""

    name = "pool"
    anchors: ClassVar = frozenset({"pool"})

    def prefers(self, problem: Problem, index: int) -> Order:
        return last_channels(problem, index)

    def kernel(self, problem: Problem) -> Kernel:
        return pool_kernel(problem.module, problem.anchor_instruction, problem.orders, problem.order)


@register_solution
class WindowConvolution(OneKernel):
    """Convolutions of any kind, an element of the result to a lane."""

    name = "window convolution"
    anchors: ClassVar = frozenset({"conv", "conv_transpose"})
    rank = -1

    def prefers(self, problem: Problem, index: int) -> Order:
        return last_channels(problem, index)

    def kernel(self, problem: Problem) -> Kernel:
        return window_kernel(problem.module, problem.anchor_instruction, problem.orders, problem.order)
