"""RNN, GRU and LSTM: one product for the inputs of all steps, then all steps in one kernel, or each in its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from argosy.ir.builder import Builder
from argosy.ir.module import Module, Value
from argosy.ir.types import TensorType
from argosy.ops.matmul import Dot
from argosy.ops.recurrent import Recurrent
from argosy.ops.view import Reshape, Transpose
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.blocks import size_hint
from argosy.targets.gpu.codegen.recurrent import (
    FEW_UNITS,
    STATES,
    end_kernel,
    phases_of,
    recurrence_kernel,
    start_kernel,
    step_kernel,
    unit_tiles,
)
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.gpu.solutions.products import MatrixProduct, launch_product
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["RecurrentLaunches", "RecurrentSteps", "step_times"]

_MOST_LAUNCHES: Final = 4096
_LAUNCH: Final = 2.5
"""Microseconds from a launch in a graph to the next."""
_CACHED: Final = 4
"""What a program reads from the cache, in units of its share of the memory's bandwidth."""
_BANDWIDTH: Final = 1e12
_UNITS: Final = 64
"""Bytes a second and compute units of devices that the table has no figure for."""


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
        self._recur(problem, steps, units, shares, [*results, states])

    def _recur(self, problem: Problem, steps: Steps, units: int, shares: int, writes: Sequence[int]) -> None:
        """The kernels behind the product, which write the results and the states."""
        self.call(problem, steps, recurrence_kernel(problem.module, units), [shares], writes)


@register_solution
class RecurrentLaunches(RecurrentSteps):
    """Each step is a launch, or two, over all hidden units: where R is so large that few programs read it too long."""

    name = "recurrent launches"
    rank = 1

    def applies(self, problem: Problem) -> str:
        layer = problem.anchor_instruction
        op, x, r = op_of(layer, Recurrent), present(layer, 0), present(layer, 2)
        if not isinstance(x.shape[0], int):
            return "how many steps there are depends on the run"
        if x.shape[0] * phases_of(op) > _MOST_LAUNCHES:
            return f"{x.shape[0]} steps are too many launches"
        alone, spread = step_times(r, size_hint(x.shape[1], 1), phases_of(op), problem.arch)
        if alone <= spread:
            return f"a step takes {alone:.1f} us in programs for some sequences each, {spread:.1f} us as a launch"
        return super().applies(problem)

    def configs(self, problem: Problem) -> Sequence[Any]:
        return [(config, FEW_UNITS) for config in MatrixProduct().configs(_shares(problem))]

    def _recur(self, problem: Problem, steps: Steps, units: int, shares: int, writes: Sequence[int]) -> None:
        layer, module = problem.anchor_instruction, problem.module
        count = present(layer, 0).shape[0]
        reads = [*(steps.ordered(index, None) for index in range(len(module.parameters))), shares]
        steps.launch(start_kernel(module), reads, writes)
        kernels = [step_kernel(module, phase) for phase in range(phases_of(op_of(layer, Recurrent)))]
        for step in range(count if isinstance(count, int) else 0):
            for kernel in kernels:
                steps.launch(kernel, reads, writes, [step])
        steps.launch(end_kernel(module), reads, writes)


def step_times(r: Value, batch: int, phases: int, arch: GpuArch) -> tuple[float, float]:
    """A model of a step's microseconds: in programs for 16 sequences of a direction each, and as launches over all.

    Both read R once for every 16 sequences. A program gets a few times its share of the memory's bandwidth, as R comes
    from the cache; many programs get all of it. Sizes that only the run knows count as `size_hint` has them.
    """
    directions, rows, hidden = (size_hint(size) for size in r.shape)
    groups = -(-batch // 16)
    each = rows * hidden * max(r.dtype.bits // 8, 1)
    bandwidth = (arch.product.bandwidth or _BANDWIDTH) / 1e6
    units = arch.product.compute_units or _UNITS
    alone = each / (bandwidth * _CACHED / units)
    share = min(groups * directions * -(-hidden // FEW_UNITS) / units, 1)
    return alone, phases * _LAUNCH + each * groups * directions / (bandwidth * share)


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
