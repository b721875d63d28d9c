"""One step of a recurrent layer in vectors: the gates of 16 hidden units at a time, products and activations together.

A *panel* is 16 hidden units: a row of it holds 16 numbers for each gate side by side. `rows` of panels are what the
states are multiplied by, `[panels][hidden][gates][16]`; shares of the inputs and biases lie in panels too. So the
sums of all gates of a unit meet in one register each, and a state is read and written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.ir.dtype import FLOAT32
from argosy.ops.recurrent import GATES, Recurrent
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.activation import activation_text
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.kernel import ENTRY
from argosy.targets.cpu.codegen.products import Products
from argosy.targets.cpu.codegen.recurrent_limbs import GROUP, LIMBS, panel_bytes
from argosy.targets.cpu.codegen.tile import BLOCK

__all__ = ["STATES", "Cell", "gate_groups", "step_function"]

STATES: Final = 4
"""Rows of a sequence's states: h, the h to come, c (or what a GRU's late product reads), and gates kept for later."""
_CHAINS: Final = 8
"""Sums that must be in flight so that none waits for the one before."""
_VECTOR: Final = "float32x16"


def gate_groups(op: Recurrent) -> tuple[tuple[int, ...], ...]:
    """The gates whose products with a state are one pass over the panels: those of a GRU may be two."""
    if op.kind == "gru" and not op.linear_before_reset:
        return ((0, 1), (2,))
    return (tuple(range(GATES[op.kind])),)


@dataclass(frozen=True, slots=True)
class Cell:
    """What the text of a step depends on. `sequences` are done side by side."""

    op: Recurrent
    hidden: int
    sequences: int
    has_bias: bool
    has_peepholes: bool
    coded: bool
    """Whether the recurrent weights are int8, their sums to be scaled."""
    limbs: Products | None = None
    """How codes are multiplied with the bytes of states; None where they become floats."""

    @property
    def gates(self) -> int:
        """Gates to a unit."""
        return GATES[self.op.kind]

    @property
    def panels(self) -> int:
        """Panels of 16 hidden units."""
        return -(-self.hidden // BLOCK)

    @property
    def width(self) -> int:
        """Numbers of a sequence's gates."""
        return self.panels * self.gates * BLOCK

    def rows(self, gates: int) -> int:
        """Recurrent weights of a direction, in the panels of so many gates."""
        return self.panels * (panel_bytes(self.hidden, gates) if self.limbs else self.hidden * gates * BLOCK)


def step_function(cell: Cell) -> str:
    """The C function `step<sequences>`: the states of sequences after one step go to `fresh`, c in place.

    `rows0` and `rows1` are panels of the direction, `bias` those of W and of R, `peepholes` of i, o and f, `scales`
    what the sums over codes are multiplied by. For each sequence there are `share`, `h`, `fresh`, `c` and `kept`.
    """
    writer = _Step(cell)
    weights = ", ".join(f"const {_row_type(cell)} *restrict rows{number}" for number in range(2))
    weights += "".join(f", const float32 *restrict {name}" for name in ("bias", "peepholes", "scales"))
    states = ", ".join(f"float32 *const *{name}" for name in ("h", "fresh", "c", "kept"))
    head = f"{weights}, int64 direction, const float32 *const *share, {states}"
    {"rnn": writer.rnn, "gru": writer.gru, "lstm": writer.lstm}[cell.op.kind]()
    unused = ", ".join(f"(void){name}" for name in ("rows1", "bias", "peepholes", "scales", "direction", "c", "kept"))
    body = writer.text.text()
    return f"static void {ENTRY}_step{cell.sequences}({head}) {{\n  {unused};\n{body}\n}}\n"


def _row_type(cell: Cell) -> str:
    return "int8" if cell.coded else "float32"


class _Step:
    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.text = CText()

    # Parts

    def _vector(self, expression: str) -> str:
        return self.text.let(_VECTOR, expression)

    def _load(self, pointer: str, place: str) -> str:
        return f"*(const {_VECTOR} *)({pointer} + {place})"

    def _share(self, q: int, gate: int) -> str:
        """What the inputs add to a gate, with the bias of W."""
        gates = self.cell.gates
        place = f"(panel * {gates} + {gate}) * {BLOCK}"
        value = self._load(f"share[{q}]", place)
        return f"{value} + {self._load('bias', place)}" if self.cell.has_bias else value

    def _hidden_bias(self, gate: int) -> str:
        """The bias of R; empty where there is none."""
        cell = self.cell
        place = f"({cell.panels * cell.gates} + panel * {cell.gates} + {gate}) * {BLOCK}"
        return self._load("bias", place) if cell.has_bias else ""

    def _start(self, q: int, gate: int) -> str:
        bias = self._hidden_bias(gate)
        return f"{self._share(q, gate)} + ({bias})" if bias else self._share(q, gate)

    def _products(self, rows: str, state: str, starts: list[list[str]], first: int = 0) -> list[list[str]]:
        """Sums `start + R state` of the panel at hand, for each sequence and gate of a group that begins at `first`."""
        if not self.cell.coded:
            return self._sums(rows, state, starts)
        if self.cell.limbs:
            sums = self._limb_sums(rows, state, len(starts[0]), self.cell.limbs.function)
        else:
            sums = self._sums(rows, state, [[f"({_VECTOR})0"] * len(line) for line in starts])
        places = [f"(panel * {self.cell.gates} + {first + gate}) * {BLOCK}" for gate in range(len(starts[0]))]
        scales = [self._vector(self._load("scales", place)) for place in places]
        return [
            [self._vector(f"muladd({total}, {scale}, {start})") for total, scale, start in zip(*line, strict=True)]
            for line in ((totals, scales, line) for totals, line in zip(sums, starts, strict=True))
        ]

    def _split(self, state: str) -> None:
        """Before the loop over panels: the bytes of the states that it reads."""
        cell, padded = self.cell, self.cell.panels * BLOCK
        if not cell.limbs:
            return
        self.text.line(f"float32 unit[{cell.sequences}];")
        self.text.line(f"uint8 limbs[{cell.sequences}][{LIMBS * padded}] __attribute__((aligned(64)));")
        for q in range(cell.sequences):
            self.text.line(f"unit[{q}] = split({state}[{q}], limbs[{q}]);")

    def _limb_sums(self, rows: str, state: str, gates: int, function: str) -> list[list[str]]:
        """Sums `R state` of the panel at hand from the bytes of the states."""
        text, cell = self.text, self.cell
        padded, row = cell.panels * BLOCK, text.fresh("row")
        start_of = f"{rows} + panel * {panel_bytes(cell.hidden, gates)}"
        text.line(f"const int8 *{row} = {start_of};")
        sums = [[[text.fresh("sum") for _ in range(LIMBS)] for _ in range(gates)] for _ in range(cell.sequences)]
        for line in sums:
            for gate, names in enumerate(line):
                for limb, name in enumerate(names):
                    start = f"((const uint32x16 *){row})[{gate}]" if limb == LIMBS - 1 else "0"
                    text.line(f"uint32x16 {name} = {start};")
        with text.loop("k", "0", str(-(-cell.hidden // GROUP))):
            text.line(f"{row} += {gates * BLOCK * GROUP};")
            for gate in range(gates):
                text.line(f"const uint32x16 w{gate} = ((const uint32x16 *){row})[{gate}];")
            for q, line in enumerate(sums):
                for limb in range(LIMBS):
                    text.line(f"const uint32x16 s{q}_{limb} = load_word(limbs[{q}] + {limb * padded} + {GROUP} * k);")
                    for gate, names in enumerate(line):
                        text.line(f"{names[limb]} = {function}(s{q}_{limb}, w{gate}, {names[limb]});")
        found = []
        for q, line in enumerate(sums):
            totals = text.fresh("totals")
            text.line(f"{_VECTOR} {totals}[{gates}];")
            for gate, names in enumerate(line):
                low, middle, high = (f"to_float((int32x16){name})" for name in names)
                total = f"muladd({high}, ({_VECTOR})65536.0f, muladd({middle}, ({_VECTOR})256.0f, {low}))"
                text.line(f"{totals}[{gate}] = {total} * unit[{q}];")
            text.line(f"if (unit[{q}] != unit[{q}]) sum_floats({state}[{q}], {start_of}, {gates}, {totals});")
            found.append([f"{totals}[{gate}]" for gate in range(gates)])
        return found

    def _sums(self, rows: str, state: str, starts: list[list[str]]) -> list[list[str]]:
        text, cell = self.text, self.cell
        gates = len(starts[0])
        ways = max(1, min(8, _CHAINS // (gates * cell.sequences)))
        ways = 1 << (ways.bit_length() - 1)
        names = [[text.fresh("sum") for _ in line] for line in starts]
        for line, values in zip(names, starts, strict=True):
            for name, value in zip(line, values, strict=True):
                text.line(f"{_VECTOR} {name} = {value};")
                for way in range(1, ways):
                    text.line(f"{_VECTOR} {name}_{way} = ({_VECTOR})0;")
        row = text.fresh("row")
        text.line(f"const {_row_type(cell)} *{row} = {rows} + panel * {cell.hidden * gates * BLOCK};")

        def term(way: int) -> None:
            for gate in range(gates):
                place = f"((k + {way}) * {gates} + {gate}) * {BLOCK}"
                codes = f"int8_to_float32x16(load_int8x16({row} + {place}))"
                text.line(f"const {_VECTOR} w{gate}_{way} = {codes if cell.coded else self._load(row, place)};")
            for q, line in enumerate(names):
                text.line(f"const {_VECTOR} s{q}_{way} = ({_VECTOR}){state}[{q}][k + {way}];")
                for gate, name in enumerate(line):
                    total = f"{name}_{way}" if way else name
                    text.line(f"{total} = muladd(s{q}_{way}, w{gate}_{way}, {total});")

        whole = cell.hidden // ways * ways
        with text.block(f"for (int64 k = 0; k < {whole}; k += {ways})"):
            for way in range(ways):
                term(way)
        if whole < cell.hidden:
            with text.block(f"for (int64 k = {whole}; k < {cell.hidden}; ++k)"):
                term(0)
        if ways == 1:
            return names
        return [
            [self._vector(" + ".join([n, *(f"{n}_{way}" for way in range(1, ways))])) for n in line] for line in names
        ]

    def _activated(self, number: int, value: str) -> str:
        """Activation `number` of the direction at hand, of a sum that is clipped before."""
        op, text = self.cell.op, self.text
        if op.clip is not None:
            low, high = (scalar.constant(bound, FLOAT32, BLOCK) for bound in (-op.clip, op.clip))
            value = text.let(_VECTOR, f"min_float32(max_float32({value}, {low}), {high})")
        return self._plain(number, value)

    def _plain(self, number: int, value: str) -> str:
        op = self.cell.op
        count = len(op.activations) // op.directions
        texts = [
            activation_text(op.activations[place], value, op.alphas[place], op.betas[place], FLOAT32, BLOCK)
            for place in range(number, len(op.activations), count)
        ]
        if len(set(texts)) == 1:
            return self._vector(texts[0])
        name = self.text.fresh()
        self.text.line(f"{_VECTOR} {name};")
        self.text.line(f"if (direction == 0) {name} = {texts[0]}; else {name} = {texts[1]};")
        return name

    def _old(self, state: str, q: int) -> str:
        return self._vector(self._load(f"{state}[{q}]", f"panel * {BLOCK}"))

    def _put(self, state: str, q: int, value: str) -> None:
        self.text.line(f"*({_VECTOR} *)({state}[{q}] + panel * {BLOCK}) = {value};")

    # Cells

    def rnn(self) -> None:
        cell, text = self.cell, self.text
        self._split("h")
        with text.loop("panel", "0", str(cell.panels)):
            sums = self._products("rows0", "h", [[self._start(q, 0)] for q in range(cell.sequences)])
            for q, (total,) in enumerate(sums):
                self._put("fresh", q, self._activated(0, total))

    def lstm(self) -> None:
        """Gates in the order i o f c."""
        cell, text = self.cell, self.text
        self._split("h")
        with text.loop("panel", "0", str(cell.panels)):
            starts = [[self._start(q, gate) for gate in range(4)] for q in range(cell.sequences)]
            for q, sums in enumerate(self._products("rows0", "h", starts)):
                old = self._old("c", q)
                opened = self._activated(0, self._peeped(sums[0], 0, old))
                if cell.op.input_forget:
                    kept = self._vector(f"1.0f - {opened}")
                else:
                    kept = self._activated(0, self._peeped(sums[2], 2, old))
                state = self._vector(f"{kept} * {old} + {opened} * {self._activated(1, sums[3])}")
                self._put("c", q, state)
                out = self._activated(0, self._peeped(sums[1], 1, state))
                self._put("fresh", q, f"{out} * {self._plain(2, state)}")

    def _peeped(self, total: str, number: int, state: str) -> str:
        if not self.cell.has_peepholes:
            return total
        weight = self._load("peepholes", f"{number * self.cell.panels * BLOCK} + panel * {BLOCK}")
        return self._vector(f"{total} + {weight} * {state}")

    def gru(self) -> None:
        """Gates in the order z r h."""
        cell, text = self.cell, self.text
        late, count = not cell.op.linear_before_reset, range(cell.sequences)
        self._split("h")
        with text.loop("panel", "0", str(cell.panels)):
            nothing = f"({_VECTOR})0"
            apart = [] if late else [self._hidden_bias(2) or nothing]
            starts = [[*(self._start(q, gate) for gate in (0, 1)), *apart] for q in count]
            for q, sums in enumerate(self._products("rows0", "h", starts)):
                update, reset = self._activated(0, sums[0]), self._activated(0, sums[1])
                if late:
                    self._put("kept", q, update)
                    self._put("c", q, f"{reset} * {self._old('h', q)}")
                else:
                    self._mix(q, update, self._vector(f"{self._share(q, 2)} + {reset} * {sums[2]}"))
        if late:
            with text.block(""):
                self._late(count)

    def _late(self, count: range) -> None:
        """What a GRU adds of the states that its reset gates let through."""
        cell, text = self.cell, self.text
        self._split("c")
        with text.loop("panel", "0", str(cell.panels)):
            late_sums = self._products("rows1", "c", [[self._start(q, 2)] for q in count], 2)
            for q, (total,) in enumerate(late_sums):
                self._mix(q, self._old("kept", q), total)

    def _mix(self, q: int, update: str, total: str) -> None:
        fresh = self._activated(1, total)
        self._put("fresh", q, f"(1.0f - {update}) * {fresh} + {update} * {self._old('h', q)}")
