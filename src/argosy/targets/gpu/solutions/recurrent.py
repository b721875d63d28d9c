"""RNN, GRU and LSTM: one product for the inputs of all steps, then all steps in one kernel, or each in its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike
from argosy.ir.module import Module, Value
from argosy.ir.types import TensorType
from argosy.ops.matmul import Dot
from argosy.ops.recurrent import Recurrent
from argosy.ops.view import Reshape, Transpose
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.blocks import size_hint
from argosy.targets.gpu.codegen.recurrent import (
    STATES,
    end_kernel,
    phases_of,
    recurrence_kernel,
    start_kernel,
    unit_tiles,
)
from argosy.targets.gpu.codegen.recurrent_rows import RowTile, row_tile, rows_kernel
from argosy.targets.gpu.codegen.recurrent_step import SEQUENCES, StepTile, step_kernel, step_tile
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.gpu.solutions.products import MatrixProduct, launch_product
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["RecurrentLaunches", "RecurrentRows", "RecurrentSteps", "StepTimes", "step_times"]

_MOST_LAUNCHES: Final = 4096
_FEW: Final = 4
"""Sequences of a program of a step where only the run knows how many there are."""
_LAUNCH: Final = (3.0, 1.2)
"""Microseconds from a launch in a graph to the next, for one sequence: where it waits for the one in front, and not.

This, what follows for another sequence, and products of tiles were measured on an H200.
"""
_SEQUENCE: Final = 0.7
_TURN: Final = 1.0
"""Of a step inside a program, beside its products."""
_PRODUCT: Final = 1.2
"""Of a product of a tile of 64 units and 32 elements of the states for one gate, inside a program."""
_ROWS: Final = 1.4
"""Of a step inside a program whose registers hold all of R."""
_TILE: Final = 2.3
"""Of a tile of rows inside a program, beside what it reads."""
_CACHE: Final = 1e5
"""Bytes a microsecond that a program reads from the cache: 64 of a clock."""
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
        (of_product, tile), product = config, _shares(problem)
        shares = steps.temporary(product.module.results[0].tensor)
        reads, weights = [steps.ordered(place, None) for place in (0, 1)], [steps.is_weight(place) for place in (0, 1)]
        launch_product(product, of_product, steps, reads, weights, shares)
        states = steps.temporary(TensorType(x.dtype.compute, (STATES, op.directions, x.shape[1], r.shape[2])))
        results = [steps.result(number) for number in range(len(problem.module.results))]
        self._recur(problem, steps, tile, shares, [*results, states])

    def _recur(self, problem: Problem, steps: Steps, tile: Any, shares: int, writes: Sequence[int]) -> None:
        """The kernels behind the product, which write the results and the states."""
        self.call(problem, steps, recurrence_kernel(problem.module, tile), [shares], writes)


@register_solution
class RecurrentRows(RecurrentSteps):
    """A program for each sequence: where they are few."""

    name = "recurrent rows"
    rank = 1

    def applies(self, problem: Problem) -> str:
        layer = problem.anchor_instruction
        op, x, r = op_of(layer, Recurrent), present(layer, 0), present(layer, 2)
        times = step_times(op, r, x.shape[1], problem.arch)
        if times.tiles <= times.rows:
            return f"a step takes {times.rows:.1f} us in programs for one sequence, {times.tiles:.1f} us for 16"
        return super().applies(problem)

    def configs(self, problem: Problem) -> Sequence[Any]:
        layer = problem.anchor_instruction
        tile = row_tile(op_of(layer, Recurrent), present(layer, 2).shape[2], problem.arch)
        return [(config, tile) for config in MatrixProduct().configs(_shares(problem))]

    def _recur(self, problem: Problem, steps: Steps, tile: RowTile, shares: int, writes: Sequence[int]) -> None:
        self.call(problem, steps, rows_kernel(problem.module, tile), [shares], writes)


@register_solution
class RecurrentLaunches(RecurrentSteps):
    """Each step is a launch, or two, over all hidden units: where R is so large that few programs read it too long."""

    name = "recurrent launches"
    rank = 2

    def applies(self, problem: Problem) -> str:
        layer = problem.anchor_instruction
        op, x, r = op_of(layer, Recurrent), present(layer, 0), present(layer, 2)
        if not isinstance(x.shape[0], int):
            return "how many steps there are depends on the run"
        if x.shape[0] * phases_of(op) > _MOST_LAUNCHES:
            return f"{x.shape[0]} steps are too many launches"
        times = step_times(op, r, x.shape[1], problem.arch)
        alone = min(times.tiles, times.rows)
        if alone <= times.launches:
            return (
                f"a step takes {alone:.1f} us in programs for their own sequences, {times.launches:.1f} us as a launch"
            )
        return super().applies(problem)

    def configs(self, problem: Problem) -> Sequence[Any]:
        layer = problem.anchor_instruction
        op, x, r = op_of(layer, Recurrent), present(layer, 0), present(layer, 2)
        tile = step_tile(op, _sequences(r, x.shape[1], problem.arch), r.shape[2], problem.arch)
        return [(config, tile) for config in MatrixProduct().configs(_shares(problem))]

    def _recur(self, problem: Problem, steps: Steps, tile: StepTile, shares: int, writes: Sequence[int]) -> None:
        layer, module = problem.anchor_instruction, problem.module
        count = present(layer, 0).shape[0]
        reads = [*(steps.ordered(index, None) for index in range(len(module.parameters))), shares]
        weights = [steps.is_weight(index) for index in range(len(module.parameters))]
        steps.launch(start_kernel(module), reads, writes)
        phases = range(phases_of(op_of(layer, Recurrent)))
        kernels = [step_kernel(module, tile, phase).early(weights) for phase in phases]
        for step in range(count if isinstance(count, int) else 0):
            for kernel in kernels:
                steps.launch(kernel, reads, writes, [step])
        steps.launch(end_kernel(module), reads, writes)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """A model of a step's microseconds: in programs for 16 sequences each, for one each, and as launches over all."""

    tiles: float
    rows: float
    launches: float


def step_times(op: Recurrent, r: Value, batch: DimLike, arch: GpuArch) -> StepTimes:
    """The times of a layer. Sizes that only the run knows count as `size_hint` has them, but for one sequence.

    The first is a chain of small products, however little R is; the second reads all of R from the cache unless it
    stays in registers; launches read R once for the sequences that a program has, one after another.
    """
    directions, rows, hidden = (size_hint(size) for size in r.shape)
    sequences, units = size_hint(batch, 1), arch.units or _UNITS
    products = rows * -(-hidden // 64) * -(-hidden // 32) / max(hidden, 1)
    tiles = (_TURN + _PRODUCT * products) * -(-directions * -(-sequences // 16) // units)
    size = rows * hidden * max(r.dtype.bits // 8, 1)
    tile = row_tile(op, r.shape[2], arch)
    rows_alone = _ROWS if tile.whole else _TURN + _TILE * -(-hidden // tile.units) + size / _CACHE
    alone = rows_alone * -(-directions * sequences // units)
    launches = _LAUNCH[arch.has("programmatic_launch")] + min(_shared_times(r, sequences, arch))
    return StepTimes(tiles, alone, phases_of(op) * launches)


def _shared_times(r: Value, sequences: int, arch: GpuArch) -> list[float]:
    """What a launch takes beside itself where a program has so many sequences as `SEQUENCES` says, or has them all."""
    directions, rows, hidden = (size_hint(size) for size in r.shape)
    found = []
    for each in SEQUENCES:
        groups = -(-sequences // each) * directions
        share = min(groups * hidden / (arch.units or _UNITS), 1)
        bandwidth = (arch.product.bandwidth or _BANDWIDTH) / 1e6 * share
        read = rows * hidden * max(r.dtype.bits // 8, 1) * groups
        found.append(_SEQUENCE * (min(each, sequences) - 1) + read / bandwidth)
    return found


def _sequences(r: Value, batch: DimLike, arch: GpuArch) -> int:
    """How many sequences a program of a step has."""
    times = _shared_times(r, size_hint(batch, _FEW), arch)
    return SEQUENCES[times.index(min(times))] if isinstance(batch, int) else _FEW


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
