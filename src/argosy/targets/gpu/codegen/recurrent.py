"""The recurrence of RNN, GRU and LSTM: a program takes some sequences of one direction through all steps.

Each step goes over tiles of the hidden units: products of the states with R, then the gates. States lie in global
memory, of h that of this step and of the next; a barrier between steps lets all threads see what others wrote.

Where sequences are few, a program has one, and sums instead of products of tiles (`recurrent_rows.py`). Where R is
large, that would leave all of it to a few programs: then each step is a launch (`recurrent_step.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Module
from argosy.ops.recurrent import GATES, Recurrent
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.activation import activation_text
from argosy.targets.gpu.codegen.blocks import at_most
from argosy.targets.gpu.codegen.kernel import Kernel, Launch
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = [
    "CELLS",
    "STATES",
    "RecurrentLayer",
    "end_kernel",
    "phases_of",
    "recurrence_kernel",
    "start_kernel",
    "unit_tiles",
]

STATES: Final = 4
"""Slots of a unit's states: h of even and of odd steps, c (or of a GRU the reset h), the update gate."""
_BIAS, _LENGTHS, _INITIAL_H, _INITIAL_C, _PEEPHOLES, _SCALE, _INPUT_SCALE = range(3, 10)
_SEQUENCES: Final = 16
_UNITS: Final = (64, 32, 16)
_DEPTH: Final = 32


def unit_tiles(hidden: DimLike) -> list[int]:
    """How many hidden units a tile may have, the fastest first; fewer take fewer registers."""
    most = max(at_most(hidden, _UNITS[0]), _UNITS[-1])
    return [units for units in _UNITS if units <= most]


def recurrence_kernel(module: Module, units: int) -> Kernel:
    """The kernel of the steps, over tiles of so many hidden units.

    Its temporary holds the inputs' shares; behind the results it writes the states.
    """
    return RecurrentLayer(module, units).kernel()


def start_kernel(module: Module) -> Kernel:
    """Writes the states before the first step; operands and results are those of `recurrence_kernel`."""
    return RecurrentLayer(module, _UNITS[-1], spread=True).start()


def end_kernel(module: Module) -> Kernel:
    """Writes the last states as results."""
    return RecurrentLayer(module, _UNITS[-1], spread=True).end()


def phases_of(op: Recurrent) -> int:
    """Launches that a step takes: a GRU may need all of the reset h before the product for its candidate."""
    return 2 if op.kind == "gru" and not op.linear_before_reset else 1


class RecurrentLayer:
    """Writes the kernels of a layer. Of one that is `spread`, a program has one tile of the units."""

    sequences = _SEQUENCES
    """Of a program."""

    def __init__(self, module: Module, units: int, *, spread: bool = False) -> None:
        self.wide = module.parameters[0].result().dtype.compute
        self.k = kernel = OpKernel(module, [*(value.dtype for value in module.results), self.wide], [self.wide])
        self.op, self.text, self.units, self.spread = op_of(kernel.instruction, Recurrent), kernel.text, units, spread
        op = self.op
        self.block = (self.sequences, units)
        """The shape of what a tile has for each unit."""
        self.kind = scalar.compute_type(self.wide)
        self.slots = len(module.results)
        self.matrix = self.wide is FLOAT32
        self.depth = max(at_most(kernel.operand(2).shape[2], _DEPTH), 16) if self.matrix else 1
        shares = (op.directions, *kernel.operand(0).shape[:2], kernel.operand(2).shape[1])
        self.text.wide = self.text.wide or kernel.is_large(shares, self.wide)

    def kernel(self) -> Kernel:
        """The whole kernel."""
        text = self.text
        self.begin()
        self.tiles(self._first)
        text.line("tl.debug_barrier()")
        with text.block("for step in range(0, steps):"):
            self.turn()
            CELLS[self.op.kind](self)
            text.line("tl.debug_barrier()")
        self.tiles(self._last)
        return self.finished()

    def start(self) -> Kernel:
        """The kernel before the steps."""
        self.begin()
        self.tiles(self._first)
        return self.finished()

    def end(self) -> Kernel:
        """The kernel behind the steps."""
        self.begin()
        self.tiles(self._last)
        return self.finished()

    def begin(self) -> None:
        """The sizes, and what sequences and direction the program has."""
        self.program()
        self.sequence(f"tl.arange(0, {self.sequences})[:, None]")

    def program(self) -> None:
        """The sizes, and where the program is."""
        k, op, text = self.k, self.op, self.text
        for name, value in (("steps", k.dim(0, 0)), ("batch", k.dim(0, 1)), ("hidden", k.dim(2, 2))):
            text.line(f"{name} = {value}")
        text.line(f"rows = {GATES[op.kind]} * hidden")
        text.line(f"first = {k.program(0)} * {self.sequences}")
        text.line(f"direction = {k.program(1)}")
        text.line(f"size = {op.directions} * batch * hidden")

    def sequence(self, place: str) -> None:
        """The sequences at a place among those of the program, and how long each is."""
        k, text = self.k, self.text
        text.line(f"b = first + {place}")
        text.line("within = b < batch")
        text.line("length = b * 0 + steps")
        if k.has(_LENGTHS):
            given = k.load(_LENGTHS, "b", "within")
            text.line(f"length = tl.minimum(tl.maximum({given}, 0), steps).to({text.index_type})")

    def turn(self) -> None:
        """What a step knows of itself."""
        text = self.text
        text.line("now = step % 2")
        backward = {"forward": "step", "reverse": "length - 1 - step"}.get(
            self.op.direction, "tl.where(direction == 1, length - 1 - step, step)"
        )
        text.line("running = within & (step < length)")
        # a step that a sequence does not have gives 0 in its own place
        text.line(f"at = tl.where(running, {backward}, step)")

    def _first(self) -> None:
        for slot, index in ((0, _INITIAL_H), (2, _INITIAL_C)):
            zeros = f"tl.zeros({list(self.block)}, {self.kind})"
            self._keep(str(slot), self.k.load(index, "line") if self.k.has(index) else self.text.let(zeros))

    def _last(self) -> None:
        self.k.put("line", self._kept("(steps % 2)"), 1)
        if self.slots == 3:
            self.k.put("line", self._kept("2"), 2)

    def finished(self, warps: int = 4) -> Kernel:
        """The kernel, over all sequences, directions and, where it is spread, tiles."""
        k = self.k
        tiles = ceildiv(k.operand(2).shape[2], self.units) if self.spread else 1
        grid = (ceildiv(k.operand(0).shape[1], self.sequences), self.op.directions, tiles)
        return k.kernel(Launch(grid, warps), k.stored)

    def tiles(self, body: Callable[[], None]) -> None:
        """A loop over the hidden units, a tile at a time; a spread layer has one."""
        if self.spread:
            self.text.line(f"begin = {self.k.program(2)} * {self.units}")
            self._tile()
            body()
            return
        with self.text.block(f"for begin in range(0, hidden, {self.units}):"):
            self._tile()
            body()

    def _tile(self) -> None:
        text = self.text
        text.line(f"k = begin + tl.arange(0, {self.units})[None, :]")
        self.lines()

    def lines(self) -> None:
        """The places of the tile's units among the states, of the sequences at hand."""
        self.text.line("inside = within & (k < hidden)")
        self.text.line("line = (direction * batch + b) * hidden + k")

    def steady(self, index: int, place: str) -> str:
        """A variable with what an operand that no sequence changes has at a place for the tile's units."""
        return self.k.load(index, f"{place} + k", "k < hidden")

    def _kept(self, slot: str) -> str:
        """A variable with a state of the tile at hand."""
        place = f"{self.k.result(self.slots)} + {slot} * size + line"
        return self.text.let(f"tl.load({place}, mask=inside, other=0)")

    def _keep(self, slot: str, value: str) -> None:
        self.k.put(f"{slot} * size + line", value, self.slots)

    def state(self, slot: str) -> str:
        """Where a state of the sequences at hand begins."""
        return f"{self.k.result(self.slots)} + {slot} * size + (direction * batch + b) * hidden"

    def products(self, slot: str, gates: range) -> list[str]:
        """Variables with the products of a state and the rows of R of some gates, for the tile at hand."""
        text, k = self.text, self.k
        names = [f"g{gate}" for gate in gates]
        for name in names:
            text.line(f"{name} = tl.zeros([{_SEQUENCES}, {self.units}], {self.kind})")
        with text.block(f"for deep in range(0, hidden, {self.depth}):"):
            text.line(f"across = deep + tl.arange(0, {self.depth})[None, :]")
            text.line(f"down = deep + tl.arange(0, {self.depth})[:, None]")
            text.line(f"held = tl.load({self.state(slot)} + across, mask=within & (across < hidden), other=0)")
            for name, gate in zip(names, gates, strict=True):
                row = f"((direction * rows + {gate} * hidden + k) * hidden + down)"
                weight = f"{k.load(2, row, '(k < hidden) & (down < hidden)')}.to({self.kind})"
                if self.matrix:
                    text.line(f'{name} = tl.dot(held, {weight}, {name}, input_precision="ieee")')
                else:
                    text.line(f"{name} += held * {weight}")
        return self.scaled(names, gates)

    def scaled(self, names: list[str], gates: range) -> list[str]:
        """Variables with products of the rows of R of some gates, times the scales of its codes."""
        if not self.k.has(_SCALE):
            return names
        return [
            self.text.let(f"{name} * {self._of_gate(_SCALE, gate)}") for name, gate in zip(names, gates, strict=True)
        ]

    def _of_gate(self, index: int, gate: int) -> str:
        """A variable with what an operand [directions, rows] has for a gate of the tile's units."""
        return self.steady(index, f"direction * rows + {gate} * hidden")

    def bias(self, half: int, gate: int) -> str:
        """A variable with the bias of W (half 0) or R (half 1) for a gate."""
        return self.steady(_BIAS, f"(direction * 2 + {half}) * rows + {gate} * hidden")

    def share(self, gate: int, *, whole: bool = True) -> str:
        """A variable with what the inputs and the biases add to a gate; of R's bias only where `whole`."""
        place = f"((direction * steps + at) * batch + b) * rows + {gate} * hidden + k"
        value = self.k.load_temporary(0, place, "running & inside")
        if self.k.has(_INPUT_SCALE):
            value = f"{value} * {self._of_gate(_INPUT_SCALE, gate)}"
        if self.k.has(_BIAS):
            added = self.bias(0, gate)
            value = f"{value} + {f'({added} + {self.bias(1, gate)})' if whole else added}"
        return self.text.let(value)

    def gate(self, number: int, total: str) -> str:
        """A variable with activation `number` of a sum, which is clipped first."""
        if self.op.clip is not None:
            low, high = (scalar.constant(bound, self.wide) for bound in (-self.op.clip, self.op.clip))
            total = f"tl.minimum(tl.maximum({total}, {low}), {high})"
        return self.function(number, self.text.let(total))

    def function(self, number: int, value: str) -> str:
        """A variable with activation `number` of the direction at hand."""
        op, count = self.op, len(self.op.activations) // self.op.directions
        texts = [
            activation_text(op.activations[place], value, op.alphas[place], op.betas[place], self.wide)
            for place in range(number, len(op.activations), count)
        ]
        return self.text.let(texts[0] if len(set(texts)) == 1 else f"tl.where(direction == 0, {texts[0]}, {texts[1]})")

    def finish(self, h: str, old: str) -> None:
        """The tile's new h, where the sequence goes on."""
        self._keep("(1 - now)", self.text.let(f"tl.where(running, {h}, {old})"))
        place = f"((at * {self.op.directions} + direction) * batch + b) * hidden + k"
        self.k.put(place, self.text.let(f"tl.where(running, {h}, 0.0).to({self.kind})"))

    def peephole(self, number: int) -> str:
        """What a gate sees of c, as a factor; empty where it sees none."""
        if not self.k.has(_PEEPHOLES):
            return ""
        return self.steady(_PEEPHOLES, f"(direction * 3 + {number}) * hidden")

    def rnn(self) -> None:
        """One gate."""

        def body() -> None:
            share, old = self.share(0), self._kept("now")
            (product,) = self.products("now", range(1))
            self.finish(self.gate(0, f"{share} + {product}"), old)

        self.tiles(body)

    def lstm(self) -> None:
        """Gates in the order i o f c."""
        self.tiles(self._lstm_tile)

    def _lstm_tile(self) -> None:
        # what else is read comes in while the products are made
        shares, old, h = [self.share(gate) for gate in range(4)], self._kept("2"), self._kept("now")
        products = self.products("now", range(4))
        i, o, f, cell = (f"{share} + {product}" for share, product in zip(shares, products, strict=True))
        if self.k.has(_PEEPHOLES):
            i, f = f"{i} + {self.peephole(0)} * {old}", f"{f} + {self.peephole(2)} * {old}"
        opened = self.gate(0, i)
        forgotten = f"(1.0 - {opened})" if self.op.input_forget else self.gate(0, f)
        new = self.text.let(f"{forgotten} * {old} + {opened} * {self.gate(1, cell)}")
        if self.k.has(_PEEPHOLES):
            o = f"{o} + {self.peephole(1)} * {new}"
        self._keep("2", self.text.let(f"tl.where(running, {new}, {old})"))
        self.finish(self.text.let(f"{self.gate(0, o)} * {self.function(2, new)}"), h)

    def gru(self) -> None:
        """Gates in the order z r h."""
        if self.op.linear_before_reset:
            self.tiles(self._gru_tile)
            return
        self.tiles(self.gru_gates)
        self.text.line("tl.debug_barrier()")
        self.tiles(self.gru_candidate)

    def _gru_tile(self) -> None:
        shares, old = [self.share(0), self.share(1), self.share(2, whole=False)], self._kept("now")
        z, r, h = self.products("now", range(3))
        update, reset = self.gate(0, f"{shares[0]} + {z}"), self.gate(0, f"{shares[1]} + {r}")
        recurrent = f"{reset} * ({h} + {self.bias(1, 2)})" if self.k.has(_BIAS) else f"{reset} * {h}"
        self._gru_end(update, f"{shares[2]} + {recurrent}", old)

    def gru_gates(self) -> None:
        """The first phase of a GRU that resets before the product: the update gate and the reset h."""
        shares, old = [self.share(0), self.share(1)], self._kept("now")
        z, r = self.products("now", range(2))
        update, reset = self.gate(0, f"{shares[0]} + {z}"), self.gate(0, f"{shares[1]} + {r}")
        self._keep("3", update)
        self._keep("2", self.text.let(f"{reset} * {old}"))

    def gru_candidate(self) -> None:
        """The second phase."""
        share, old, update = self.share(2, whole=False), self._kept("now"), self._kept("3")
        (h,) = self.products("2", range(2, 3))
        self._gru_end(update, f"{share} + ({h} + {self.bias(1, 2)})" if self.k.has(_BIAS) else f"{share} + {h}", old)

    def _gru_end(self, update: str, total: str, old: str) -> None:
        candidate = self.gate(1, total)
        self.finish(self.text.let(f"(1.0 - {update}) * {candidate} + {update} * {old}"), old)


CELLS: Final[Mapping[str, Callable[[RecurrentLayer], None]]] = {
    "rnn": RecurrentLayer.rnn,
    "gru": RecurrentLayer.gru,
    "lstm": RecurrentLayer.lstm,
}
"""The step of each kind."""
