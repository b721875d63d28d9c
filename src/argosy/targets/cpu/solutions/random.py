"""Random numbers: every element on its own, from its place and the number of the draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.ir.dtype import FLOAT64, INT64
from argosy.ir.module import Module
from argosy.ops.numpy_scalar import convert
from argosy.ops.random import Random
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import op_of

__all__ = ["PhiloxNumbers"]


@register_solution
class PhiloxNumbers(LoneOp):
    """A loop over the result."""

    name = "philox numbers"
    anchors = frozenset({"random"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        self.call(problem, steps, _numbers(problem.module), [steps.draw_number()])


def _numbers(module: Module) -> Kernel:
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype], [INT64])
    op = op_of(kernel.instruction, Random)
    first, second = (scalar.constant(number, FLOAT64) for number in (op.first, op.second))
    with kernel.share("i", kernel.count(result.shape)):
        words = f"philox((uint64)i, (uint64)temporary0[0], {op.seed & 0xFFFFFFFF}u, {op.node & 0xFFFFFFFF}u)"
        if op.distribution == "uniform":
            width = scalar.constant(op.second - op.first, FLOAT64)
            drawn = f"{first} + uniform_float64({words}) * {width}"
        else:
            drawn = f"normal_float64({words}, {first}, {second})"
        value = kernel.elements.let(result.dtype, scalar.apply("convert", [f"({drawn})"], [FLOAT64], result.dtype))
        if op.distribution == "uniform" and result.dtype is not FLOAT64 and op.second > op.first:
            # rounding must not reach the end of the half-open interval
            end, start = (convert(np.asarray(number), result.dtype) for number in (op.second, op.first))
            most = scalar.constant(np.nextafter(end, start), result.dtype)
            value = f"min_{result.dtype.compute}({value}, {most})"
        kernel.text.line(kernel.store(0, result.dtype, "i", value))
    return kernel.kernel(chunk_count(product(result.shape) * 32, product(result.shape)))
