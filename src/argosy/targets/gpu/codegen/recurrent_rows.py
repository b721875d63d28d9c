"""All steps of RNN, GRU and LSTM for one sequence in a program: each row of R times the state, tile by tile of units.

Where R is small, its rows stay in registers from the first step to the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import DimLike
from argosy.ir.module import Module
from argosy.ops.recurrent import GATES, Recurrent
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.blocks import power_of_two, size_hint
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.recurrent import RecurrentLayer

__all__ = ["RowTile", "row_tile", "rows_kernel"]

_EACH: Final = 64
"""Elements of R that a lane holds."""
_LANES: Final = 512


@dataclass(frozen=True, slots=True)
class RowTile:
    """Hidden `units` at a time, of their rows of R `depth` elements at a time; `whole` where that is all of R."""

    units: int
    depth: int
    warps: int
    whole: bool


def row_tile(op: Recurrent, hidden: DimLike, arch: GpuArch) -> RowTile:
    """The tile of a layer: as many whole rows as registers hold."""
    gates, most = power_of_two(GATES[op.kind]), _EACH * _LANES
    all_units = power_of_two(size_hint(hidden))
    depth = min(all_units, most // gates // 2)
    units = max(min(all_units, most // (gates * depth)), 1)
    warps = max(min(power_of_two(-(-gates * units * depth // (_EACH * arch.wave_size))), _LANES // arch.wave_size), 1)
    return RowTile(units, depth, warps, isinstance(hidden, int) and hidden <= min(units, depth))


def rows_kernel(module: Module, tile: RowTile) -> Kernel:
    """The kernel of the steps; operands and results are those of `recurrence_kernel`."""
    return _Rows(module, tile).kernel()


class _Rows(RecurrentLayer):
    """Units lie along axis 0 of blocks of one column; what belongs to the sequence is a scalar."""

    sequences = 1

    def __init__(self, module: Module, tile: RowTile) -> None:
        super().__init__(module, tile.units)
        self.tile, self.depth = tile, tile.depth
        self.block = (tile.units, 1)
        hidden = self.k.operand(2).shape[2]
        self.is_deep = not (isinstance(hidden, int) and hidden <= tile.depth)

    def begin(self) -> None:
        """The sizes, the sequence, and all rows where they stay."""
        self.program()
        self.sequence("0")
        if not self.is_deep:
            self.text.line(f"across = tl.arange(0, {self.depth})[None, :]")
        if self.tile.whole:
            self.text.line("begin = 0")
            self._units()
            for gate in range(GATES[self.op.kind]):
                self.text.line(f"weights{gate} = {self._row(gate)}")

    def finished(self, warps: int = 0) -> Kernel:
        """The kernel, over all sequences and directions."""
        return super().finished(warps or self.tile.warps)

    def tiles(self, body: Callable[[], None]) -> None:
        """A loop over the hidden units, where one tile has not all."""
        if self.tile.whole:
            body()
            return
        with self.text.block(f"for begin in range(0, hidden, {self.units}):"):
            self._units()
            body()

    def products(self, slot: str, gates: range) -> list[str]:
        """Variables with the products of the state and the rows of R of some gates."""
        text = self.text
        held = f"tl.load({self.state(slot)} + across, mask=within & (across < hidden), other=0)"
        if not self.is_deep:
            text.line(f"held = {held}")
            rows = [f"weights{gate}" if self.tile.whole else self._row(gate) for gate in gates]
            return self.scaled([self._sum(f"{row} * held") for row in rows], gates)
        for gate in gates:
            text.line(f"terms{gate} = tl.zeros([{self.units}, {self.depth}], {self.kind})")
        with text.block(f"for deep in range(0, hidden, {self.depth}):"):
            text.line(f"across = deep + tl.arange(0, {self.depth})[None, :]")
            text.line(f"held = {held}")
            for gate in gates:
                text.line(f"terms{gate} += {self._row(gate)} * held")
        return self.scaled([self._sum(f"terms{gate}") for gate in gates], gates)

    def _units(self) -> None:
        self.text.line(f"k = begin + tl.arange(0, {self.units})[:, None]")
        self.lines()

    def _row(self, gate: int) -> str:
        place = f"((direction * rows + {gate} * hidden + k) * hidden + across)"
        return self.text.let(f"{self.k.load(2, place, '(k < hidden) & (across < hidden)')}.to({self.kind})")

    def _sum(self, terms: str) -> str:
        return self.text.let(f"tl.sum({terms}, 1, keep_dims=True)")
