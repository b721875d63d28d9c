"""RNN, GRU and LSTM: one product for the inputs of all steps, then a program for some sequences over all steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.ir.builder import Builder
from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.ops.matmul import Dot
from argosy.ops.recurrent import Recurrent
from argosy.ops.view import Reshape, Transpose
from argosy.targets.gpu.codegen.recurrent import STATES, recurrence_kernel, unit_tiles
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.gpu.solutions.products import MatrixProduct, launch_product
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["RecurrentSteps"]


@register_solution
class RecurrentSteps(LoneOp):
    """Two kernels: the inputs' share of all gates, and the recurrence."""

    name = "recurrent steps"
    anchors: ClassVar = frozenset({"rnn"})

    def configs(self, problem: Problem) -> Sequence[Any]:
        tiles = unit_tiles(present(problem.anchor_instruction, 2).shape[2])
        return [(config, units) for config in MatrixProduct().configs(_shares(problem)) for units in tiles]

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        layer = problem.anchor_instruction
        op, x, r = op_of(layer, Recurrent), present(layer, 0), present(layer, 2)
        (of_product, units), product = config, _shares(problem)
        shares = steps.temporary(product.module.results[0].tensor)
        reads, weights = [steps.ordered(place, None) for place in (0, 1)], [steps.is_weight(place) for place in (0, 1)]
        launch_product(product, of_product, steps, reads, weights, shares)
        states = steps.temporary(TensorType(x.dtype.compute, (STATES, op.directions, x.shape[1], r.shape[2])))
        results = [steps.result(number) for number in range(len(problem.module.results))]
        self.call(problem, steps, recurrence_kernel(problem.module, units), [shares], [*results, states])


def _shares(problem: Problem) -> Problem:
    """The product that gives what the inputs of every step add to the gates: [directions, steps * batch, gates]."""
    layer = problem.anchor_instruction
    x, w = present(layer, 0), present(layer, 1)
    builder = Builder("shares")
    inputs, weights = builder.parameter("x", x.tensor), builder.parameter("w", w.tensor)
    rows = builder.add(Reshape((x.shape[0] * x.shape[1], x.shape[2])), inputs)
    columns = builder.add(Transpose((0, 2, 1)), builder.convert(weights, x.dtype))
    total = builder.add(Dot(x.dtype.compute), rows, columns)
    module: Module = builder.module({"shares": total})
    return Problem(module, total.instruction, problem.arch, problem.options, (None, None))
