"""Running sums and products along an axis that may be known only when the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from argosy.ir.dim import bounds
from argosy.ir.types import TensorType
from argosy.ops.operands import numbers
from argosy.ops.shapes import normalize_axis
from argosy.targets.gpu.codegen.cumulative import cumulative_kernel
from argosy.targets.gpu.codegen.scan_tiles import SCAN_TILE, Tiles, carry_kernel, tile_kernel, total_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import DeclinedError, present

__all__ = ["CumulativeScans", "CumulativeTiles"]

_LONG: Final = 8192
"""Steps of a line from which on a program that takes all takes longer than two launches more."""
_WAVES: Final = 2
"""Programs of a compute unit that hide one another's waits."""
_UNITS: Final = 64
"""Compute units of devices that the table has no figure for."""


@register_solution
class CumulativeTiles(LoneOp):
    """For few lines that are known to be long: all tiles at once, behind the totals of those before them."""

    name = "cumulative tiles"
    anchors: ClassVar = frozenset({"cumulative"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        if why := super().applies(problem):
            return why
        axis = _axis(problem)
        if axis is None:
            return "the axis is known only when the program runs"
        tiles = Tiles.of(problem.module, axis, SCAN_TILE)
        least = bounds(tiles.size)[0] or 0
        if least < _LONG:
            return "a line may be so short that one program does it in less time than launches take"
        most = bounds(tiles.lines)[1]
        units = problem.arch.product.compute_units or _UNITS
        if most is None or most > tiles.high * units * _WAVES:
            return "there are lines enough for all programs that run at a time"
        return ""

    def configs(self, problem: Problem) -> Sequence[int]:
        del problem
        return (SCAN_TILE,)

    def lower(self, problem: Problem, config: int, steps: Steps) -> None:
        axis, module = _axis(problem), problem.module
        if axis is None:
            raise DeclinedError("the axis is known only when the program runs")
        tiles = Tiles.of(module, axis, config)
        kind = TensorType(module.results[0].dtype.compute, (tiles.lines, tiles.count))
        totals, carries = steps.temporary(kind), steps.temporary(kind)
        self.call(problem, steps, total_kernel(module, tiles), writes=[totals])
        steps.launch(carry_kernel(module, tiles), [totals], [carries])
        self.call(problem, steps, tile_kernel(module, tiles), [carries])


def _axis(problem: Problem) -> int | None:
    """The axis, counted from the front, where it is known."""
    cumulative = problem.anchor_instruction
    found = numbers(None, present(cumulative, 1))
    return None if not found else normalize_axis(found[0], present(cumulative, 0).rank)


@register_solution
class CumulativeScans(LoneOp):
    """Each program scans some lines, a tile of each at a time."""

    name = "cumulative scans"
    anchors: ClassVar = frozenset({"cumulative"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        self.call(problem, steps, cumulative_kernel(problem.module))
