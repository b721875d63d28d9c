"""One step of a recurrent layer for a few sequences side by side: products with the states, then gates one by one.

The kernel that writes a cell has these C names: for sequence `q` of `width`, `H[q]`, `C[q]` and `K[q]` are its states
and room for another, `G[q]` its gates; `running(q)` says whether it goes on, `share_of(q)` is what the inputs
add to its gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from argosy.ops.recurrent import Recurrent
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.activation import activation_text
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.codegen.row_products import row_products

__all__ = ["BIAS", "CELLS", "PEEPHOLES"]

BIAS: Final = 3
PEEPHOLES: Final = 7


class _Cell:
    """What the kinds of cells share."""

    def __init__(self, kernel: OpKernel, op: Recurrent) -> None:
        self.kernel = kernel
        self.op = op
        self.text = kernel.text
        self.kind = kernel.operand(0).dtype.compute
        self.ctype = scalar.compute_type(self.kind)

    def products(self, state: str, begin: str, end: str) -> None:
        """Put the products of rows of R with a state of each sequence into its gates."""
        with self.text.block(""):
            row_products(
                self.kernel,
                (begin, end),
                "width",
                "hidden",
                self.ctype,
                lambda row: self.kernel.load(2, f"(direction * rows + {row}) * hidden + i"),
                lambda q: f"{state}[{q}][i]",
                lambda row, q, total: f"G[{q}][{row}] = {total};",
            )

    @contextmanager
    def sequences(self) -> Iterator[None]:
        """Statements for each sequence that goes on."""
        with self.text.loop("q", "0", "width"):
            self.text.line("if (!running(q)) continue;")
            for name, array in (("gate", "G"), ("h", "H"), ("c", "C"), ("kept", "K")):
                self.text.line(f"{self.ctype} *restrict {name} = {array}[q];")
            self.text.line(f"const {self.ctype} *restrict share = share_of(q);")
            self.text.line("(void)share, (void)gate, (void)h, (void)c, (void)kept;")
            yield

    def function(self, number: int, value: str) -> str:
        """Activation `number` of the direction at hand of a variable."""
        op, count = self.op, len(self.op.activations) // self.op.directions
        texts = [
            activation_text(op.activations[place], value, op.alphas[place], op.betas[place], self.kind)
            for place in range(number, len(op.activations), count)
        ]
        return texts[0] if len(set(texts)) == 1 else f"(direction == 0 ? {texts[0]} : {texts[1]})"

    def clipped(self, value: str) -> str:
        """A variable with the sum that goes into an activation."""
        if self.op.clip is None:
            return self.text.let(self.ctype, value)
        low, high = scalar.constant(-self.op.clip, self.kind), scalar.constant(self.op.clip, self.kind)
        return self.text.let(self.ctype, f"min_{self.kind}(max_{self.kind}({value}, {low}), {high})")


def _rnn(kernel: OpKernel, op: Recurrent) -> None:
    cell = _Cell(kernel, op)
    cell.products("H", "0", "rows")
    with cell.sequences(), cell.text.loop("k", "0", "hidden"):
        value = cell.clipped("share[k] + gate[k]")
        cell.text.line(f"h[k] = {cell.function(0, value)};")


def _lstm(kernel: OpKernel, op: Recurrent) -> None:
    """Gates in the order i o f c."""
    cell = _Cell(kernel, op)
    text = cell.text
    cell.products("H", "0", "rows")
    places = {name: f"[{number} * hidden + k]" for number, name in enumerate("iofc")}

    def total(gate: str, peephole: int | None = None) -> str:
        value = f"share{places[gate]} + gate{places[gate]}"
        if peephole is None or not kernel.has(PEEPHOLES):
            return cell.clipped(value)
        weight = kernel.load(PEEPHOLES, f"(direction * 3 + {peephole}) * hidden + k")
        return cell.clipped(f"{value} + {weight} * c[k]")

    with cell.sequences(), text.loop("k", "0", "hidden"):
        text.line(f"const {cell.ctype} opened = {cell.function(0, total('i', 0))};")
        forgotten = "1 - opened" if op.input_forget else cell.function(0, total("f", 2))
        text.line(f"c[k] = ({forgotten}) * c[k] + opened * {cell.function(1, total('c'))};")
        text.line(f"h[k] = {cell.function(0, total('o', 1))} * {cell.function(2, 'c[k]')};")


def _gru(kernel: OpKernel, op: Recurrent) -> None:
    """Gates in the order z r h."""
    cell = _Cell(kernel, op)
    text = cell.text
    late = not op.linear_before_reset
    cell.products("H", "0", "2 * hidden" if late else "rows")
    with cell.sequences():
        with text.loop("k", "0", "2 * hidden"):
            text.line(f"gate[k] = {cell.function(0, cell.clipped('share[k] + gate[k]'))};")
        if late:
            text.line("for (int64 k = 0; k < hidden; ++k) kept[k] = gate[hidden + k] * h[k];")
    if late:
        cell.products("K", "2 * hidden", "rows")
    bias = kernel.load(BIAS, "(direction * 2 + 1) * rows + 2 * hidden + k") if kernel.has(BIAS) else "0"
    with cell.sequences(), text.loop("k", "0", "hidden"):
        hidden = f"(gate[2 * hidden + k] + {bias})"
        value = cell.clipped(f"share[2 * hidden + k] + {hidden if late else f'gate[hidden + k] * {hidden}'}")
        text.line(f"h[k] = (1 - gate[k]) * {cell.function(1, value)} + gate[k] * h[k];")


CELLS: Final[Mapping[str, Callable[[OpKernel, Recurrent], None]]] = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}
