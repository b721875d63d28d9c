"""A step of RNN, GRU and LSTM as a launch: a program has one hidden unit, and its rows of R, one for each gate.

It holds the rows in registers, so that one that starts before the step in front of it has ended reads them while it
waits for the states. Its sequences take turns, each a product of every row with a state.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import DimLike
from argosy.ir.module import Module
from argosy.ops.recurrent import GATES, Recurrent
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.blocks import power_of_two
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.recurrent import CELLS, RecurrentLayer, phases_of

__all__ = ["SEQUENCES", "StepTile", "step_kernel", "step_tile"]

SEQUENCES: Final = (1, 2, 4, 8)
"""How many sequences a program may have."""
_EACH: Final = 64
"""Elements of R that a lane holds."""
_WARPS: Final = 8


@dataclass(frozen=True, slots=True)
class StepTile:
    """What a program has: some `sequences`, and of each row of R `depth` elements at a time."""

    sequences: int
    depth: int
    warps: int


def step_tile(op: Recurrent, sequences: int, hidden: DimLike, arch: GpuArch) -> StepTile:
    """The tile of a layer: whole rows where registers hold them."""
    gates = power_of_two(GATES[op.kind])
    most = _EACH * _WARPS * arch.wave_size // gates
    depth = power_of_two(hidden) if isinstance(hidden, int) else most // 2
    if depth > most:
        depth = most // 2  # the other half are sums
    warps = power_of_two(-(-gates * depth // (_EACH * arch.wave_size)))
    return StepTile(sequences, depth, warps)


def step_kernel(module: Module, tile: StepTile, phase: int = 0) -> Kernel:
    """One of the `phases_of` a step, whose number each launch gives; operands are those of `recurrence_kernel`."""
    return _Step(module, tile).step(phase)


class _Step(RecurrentLayer):
    """Of a unit all but its rows of R are scalars: every lane has them."""

    def __init__(self, module: Module, tile: StepTile) -> None:
        super().__init__(module, 1, spread=True)
        self.sequences, self.depth, self.warps = tile.sequences, tile.depth, tile.warps
        hidden = self.k.operand(2).shape[2]
        self.whole = isinstance(hidden, int) and hidden <= self.depth
        self._steady: dict[tuple[int, str], str] = {}
        self._is_released = False

    def step(self, phase: int) -> Kernel:
        """The kernel of a step, or of a phase of it."""
        text, two = self.text, phases_of(self.op) == 2
        gates = (range(2), range(2, 3))[phase] if two else range(GATES[self.op.kind])
        self.program()
        text.line(f"k = {self.k.program(2)}")
        text.line(f"gate = {gates.start} + tl.arange(0, {power_of_two(len(gates))})[:, None]")
        text.line(f"is_gate = gate < {gates.stop}")
        if self.whole:
            text.line(f"across = tl.arange(0, {self.depth})[None, :]")
            text.line(f"weights = {self._weights()}")
        text.line(f"step = {self.k.launch_number()}")
        if two:
            self.tiles((self.gru_gates, self.gru_candidate)[phase])
        else:
            CELLS[self.op.kind](self)
        return self.finished(self.warps)

    def tiles(self, body: Callable[[], None]) -> None:
        """The program's sequences, one after another, as far as there are more than the first."""
        batch = self.k.operand(0).shape[1]
        for place in range(self.sequences):
            certain = place == 0 or (isinstance(batch, int) and batch % self.sequences == 0)
            with nullcontext() if certain else self.text.block(f"if first + {place} < batch:"):
                self.sequence(str(place))
                self.turn()
                self.lines()
                body()

    def products(self, slot: str, gates: range) -> list[str]:
        """Variables with the products of a state and the rows of R of some gates."""
        text = self.text
        if not self._is_released:
            # the next launch may come in and read its rows of R
            self.k.release()
            self._is_released = True
        held = f"tl.load({self.state(slot)} + across, mask=within & (across < hidden), other=0)"
        if self.whole:
            text.line(f"terms = weights * {held}")
        else:
            text.line(f"terms = tl.zeros([{power_of_two(len(gates))}, {self.depth}], {self.kind})")
            with text.block(f"for deep in range(0, hidden, {self.depth}):"):
                text.line(f"across = deep + tl.arange(0, {self.depth})[None, :]")
                text.line(f"terms += {self._weights()} * {held}")
        text.line("sums = tl.sum(terms, 1, keep_dims=True)")
        found = [self.text.let(f"tl.sum(tl.where(gate == {gate}, sums, 0.0))") for gate in gates]
        return self.scaled(found, gates)

    def steady(self, index: int, place: str) -> str:
        """A variable with what an operand has at a place for the unit, read once for all sequences."""
        if (index, place) not in self._steady:
            self._steady[index, place] = super().steady(index, place)
        return self._steady[index, place]

    def _weights(self) -> str:
        place = "((direction * rows + gate * hidden + k) * hidden + across)"
        return f"{self.k.load(2, place, 'is_gate & (across < hidden)')}.to({self.kind})"
