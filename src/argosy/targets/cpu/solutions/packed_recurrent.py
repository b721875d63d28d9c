"""RNN, GRU and LSTM in vectors: weights in panels of 16 hidden units, the inputs of all steps as one matrix product.

Sequences do not depend on each other, so that chunks share out directions and sequences, a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.ir.builder import Builder
from argosy.ir.dim import ceildiv
from argosy.ir.dtype import FLOAT32, DType
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize
from argosy.ops.recurrent import GATES, Recurrent
from argosy.ops.shapes import product
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Reshape, Transpose
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.loops import elementwise_kernel
from argosy.targets.cpu.codegen.products import Products
from argosy.targets.cpu.codegen.recurrent_limbs import LIMBS, limb_products, pack_limb_rows, split_text
from argosy.targets.cpu.codegen.recurrent_panels import STATES, Cell, gate_groups, step_function
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.cpu.solutions.inner_steps import lower_inner
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["PackedRecurrence"]

_W, _R, _BIAS, _LENGTHS, _INITIAL_H, _INITIAL_C, _PEEPHOLES, _R_SCALE, _W_SCALE = range(1, 10)
_MOST_SEQUENCES: Final = 6
_MOST_STATES: Final = 1 << 12
"""States of a sequence whose bytes lie on the stack, and whose sums with codes fit 32 bits."""


@register_solution
class PackedRecurrence(LoneOp):
    """Weights are packed once, at load, those of R as codes where they are; sums are float32."""

    name = "packed recurrence"
    anchors = frozenset({"rnn"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        why = super().applies(problem)
        if why:
            return why
        layer = problem.anchor_instruction
        if present(layer, 0).dtype.compute is not FLOAT32:
            return f"there are no panels of {present(layer, 0).dtype}"
        r = present(layer, 2).shape
        return "" if isinstance(r[2], int) and r[2] > 0 else f"the hidden size is {r[2]}"

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        layer = _Layer(problem, steps)
        shares = layer.shares()
        given = [(FLOAT32, shares)]
        given += [
            (layer.value(_R).dtype if layer.cell.coded else FLOAT32, layer.rows(g)) for g in gate_groups(layer.op)
        ]
        if layer.cell.has_bias:
            given.append((FLOAT32, layer.bias()))
        if layer.cell.has_peepholes:
            given.append((FLOAT32, layer.peepholes()))
        if layer.cell.coded:
            given.append((FLOAT32, layer.scales()))
        optional = (_LENGTHS, _INITIAL_H, _INITIAL_C)
        given += [(layer.value(i).dtype, steps.operand(layer.place(i))) for i in optional if layer.has(i)]
        results = [steps.result(number) for number in range(len(problem.module.results))]
        batch = layer.x.shape[1]
        states = TensorType(FLOAT32, (layer.op.directions, batch, STATES, layer.cell.panels * BLOCK))
        kernel = _recurrence(layer, [kind for kind, _ in given])
        steps.call(kernel, [number for _, number in given], [*results, steps.temporary(states)])


class _Layer:
    """The layer of a problem, and the buffers that its recurrence reads."""

    def __init__(self, problem: Problem, steps: Steps) -> None:
        (self.instruction,) = problem.module.instructions
        self.problem = problem
        self.steps = steps
        self.op = op_of(self.instruction, Recurrent)
        self.x = self.value(0)
        hidden = self.value(2).shape[2]
        if not isinstance(hidden, int):
            raise DeclinedError("the hidden size is symbolic")
        coded, limbs = self.has(_R_SCALE), self._limbs(hidden)
        self.cell = Cell(self.op, hidden, self._sequences(limbs), self.has(_BIAS), self.has(_PEEPHOLES), coded, limbs)

    def has(self, index: int) -> bool:
        """Whether an operand is given."""
        return index < len(self.instruction.operands) and self.instruction.operands[index] is not None

    def value(self, index: int) -> Value:
        """An operand that is given."""
        return present(self.instruction, index)

    def place(self, index: int) -> int:
        """Which parameter of the module an operand is."""
        return sum(self.has(before) for before in range(index))

    def _limbs(self, hidden: int) -> Products | None:
        """How codes are multiplied as they are, where the registers hold the sums of a sequence's bytes."""
        row, width = self._row()
        if (
            not self.has(_R_SCALE)
            or hidden > _MOST_STATES
            or (LIMBS + 1) * row + width > self.problem.arch.vector_registers
        ):
            return None
        return limb_products(self.problem.arch)

    def _row(self) -> tuple[int, int]:
        """The registers of a row of weights, and of a vector."""
        width = max(1, BLOCK * FLOAT32.bits // self.problem.arch.vector_bits)
        return width * max(len(group) for group in gate_groups(self.op)), width

    def _sequences(self, limbs: Products | None) -> int:
        """How many sequences the registers hold beside a row of weights and a state."""
        (row, width), batch = self._row(), self.x.shape[1]
        sums = row * LIMBS if limbs else row
        most = max(1, min((self.problem.arch.vector_registers - row - width) // sums, _MOST_SEQUENCES))
        return ceildiv(batch, ceildiv(batch, most)) if isinstance(batch, int) and batch > 0 else most  # type: ignore[return-value]

    def shares(self) -> int:
        """What the inputs of every step add to the gates: `[steps * batch, directions * panels * gates * 16]`."""
        cell, op, w = self.cell, self.op, self.value(_W)
        gates, depth, columns = GATES[op.kind], w.shape[2], op.directions * cell.width
        build, operands = Builder(), [self.place(0), self.place(_W)]
        left = build.parameter("x", TensorType(self.x.dtype, (product(self.x.shape[:2]), depth)))
        weights = build.parameter("w", TensorType(w.dtype, (op.directions, gates, cell.hidden, depth)))
        right = build.add(Reshape((depth, columns)), _in_panels(build, weights, 2, (4, 0, 2, 1, 3)))
        if self.has(_W_SCALE):
            scale = build.parameter("scale", TensorType(FLOAT32, (op.directions, gates, cell.hidden)))
            operands.append(self.place(_W_SCALE))
            scales = build.add(Reshape((columns,)), _in_panels(build, scale, 2, (0, 2, 1, 3)))
            right = build.add(Dequantize(FLOAT32, 1), right, scales)
        result = build.add(Dot(FLOAT32), left, right)
        return lower_inner(build.module({"y": result}), result.instruction, self.problem, self.steps, operands)

    def rows(self, gates: Sequence[int]) -> int:
        """The panels of R for some gates: `[directions, panels, hidden, gates, 16]`."""
        cell, op = self.cell, self.op
        if cell.limbs:
            return self._made(_R, *pack_limb_rows(op.directions, cell.gates, cell.hidden, tuple(gates)))

        def views(build: Builder, r: Value) -> Value:
            part = build.add(Slice((gates[0],), (gates[-1] + 1,), (1,), (1,)), r) if len(gates) < cell.gates else r
            return _in_panels(build, part, 2, (0, 2, 4, 1, 3))

        return self._packed(_R, (op.directions, cell.gates, cell.hidden, cell.hidden), views)

    def scales(self) -> int:
        """What the sums over the rows of R are multiplied by: `[directions, panels, gates, 16]`."""
        shape = (self.op.directions, self.cell.gates, self.cell.hidden)
        return self._packed(_R_SCALE, shape, lambda build, s: _in_panels(build, s, 2, (0, 2, 1, 3)))

    def bias(self) -> int:
        """The biases of W and of R: `[directions, 2, panels, gates, 16]`."""
        shape = (self.op.directions, 2, self.cell.gates, self.cell.hidden)
        return self._packed(_BIAS, shape, lambda build, b: _in_panels(build, b, 3, (0, 1, 3, 2, 4)))

    def peepholes(self) -> int:
        """The peepholes of i, o and f: `[directions, 3, panels * 16]`."""
        shape = (self.op.directions, 3, self.cell.hidden)
        return self._packed(_PEEPHOLES, shape, lambda build, p: _in_panels(build, p, 2, (0, 1, 2, 3)))

    def _packed(self, index: int, shape: tuple[int, ...], views: Callable[[Builder, Value], Value]) -> int:
        """An operand, read as of that shape, in other places: once where it is a weight. All but codes is float32."""
        operand = self.value(index)
        build = Builder()
        value = views(build, build.parameter("x", TensorType(operand.dtype, shape)))
        if operand.dtype is not FLOAT32 and not (self.cell.coded and index == _R):
            value = build.convert(value, FLOAT32)
        return self._made(index, elementwise_kernel(build.module({"y": value})), value.tensor)

    def _made(self, index: int, kernel: Kernel, kind: TensorType) -> int:
        """What a kernel makes of an operand: once where it is a weight."""
        steps, reads = self.steps, [self.steps.operand(self.place(index))]
        if steps.is_weight(self.place(index)):
            return steps.prepared(kernel, reads, kind)
        buffer = steps.temporary(kind)
        steps.call(kernel, reads, [buffer])
        return buffer


def _in_panels(build: Builder, value: Value, axis: int, order: tuple[int, ...]) -> Value:
    """The hidden units along `axis` filled up with zeros and cut into panels of 16, then the axes in another order."""
    shape = list(value.shape)
    hidden = shape[axis]
    if not isinstance(hidden, int):
        raise DeclinedError("the hidden size is symbolic")
    panels = -(-hidden // BLOCK)
    if hidden % BLOCK:
        pads = [0] * 2 * len(shape)
        pads[len(shape) + axis] = panels * BLOCK - hidden
        value = build.add(Pad("constant", tuple(pads)), value)
    cut = build.add(Reshape((*shape[:axis], panels, BLOCK, *shape[axis + 1 :])), value)
    return build.add(Transpose(order), cut)


@dataclass(frozen=True, slots=True)
class _Names:
    """The C pointers of what the recurrence reads."""

    rows: tuple[str, ...]
    bias: str
    peepholes: str
    scales: str
    lengths: str
    first: tuple[str, str]


def _recurrence(layer: _Layer, kinds: Sequence[DType]) -> Kernel:
    """The steps. Results: y, the last h, (the last c,) room for the states of each sequence."""
    cell, op, x = layer.cell, layer.op, layer.x
    count = len(layer.problem.module.results)
    parameters = tuple(_parameter(kind, number) for number, kind in enumerate(kinds))
    module = Module("recurrence", parameters, (), (), ())
    kernel = KernelWriter(module, [*[x.dtype] * count, FLOAT32])
    text, names = kernel.text, _names(layer)
    many, padded = cell.sequences, cell.panels * BLOCK
    backward = {"forward": "false", "reverse": "true"}.get(op.direction, "direction == 1")
    place = f"((at * {op.directions} + direction) * batch + first + q) * {cell.hidden} + k"
    text.line(f"const int64 steps = {text.dim(x.shape[0])}, batch = {text.dim(x.shape[1])};")
    text.line(f"const int64 blocks = (batch + {many - 1}) / {many}, total = {op.directions} * blocks;")
    with text.loop("block", "total * chunk / chunks", "total * (chunk + 1) / chunks"):
        text.line(f"const int64 direction = block / blocks, first = block % blocks * {many};")
        text.line(f"const int64 width = min_int64({many}, batch - first);")
        text.line(f"float32 *h[{many}], *fresh[{many}], *c[{many}], *kept[{many}];")
        text.line(f"const float32 *share[{many}];")
        text.line(f"int64 length[{many}], longest = 0, shortest = steps;")
        with text.loop("q", "0", "width"):
            text.line("const int64 line = direction * batch + first + q;")
            text.line(f"h[q] = y{count} + line * {STATES * padded}; fresh[q] = h[q] + {padded};")
            text.line(f"c[q] = fresh[q] + {padded}; kept[q] = c[q] + {padded};")
            length = scalar.load(layer.value(_LENGTHS).dtype, names.lengths, "first + q") if names.lengths else "steps"
            text.line(f"length[q] = clamp_int64((int64){length}, 0, steps);")
            text.line("longest = max_int64(longest, length[q]); shortest = min_int64(shortest, length[q]);")
            for state, pointer in zip(("h", "c"), names.first, strict=True):
                start = scalar.load(x.dtype, pointer, f"line * {cell.hidden} + k") if pointer else "0"
                text.line(f"for (int64 k = 0; k < {padded}; ++k) {state}[q][k] = k < {cell.hidden} ? {start} : 0;")
        rows = [f"{name} + direction * {cell.rows(len(group))}"
                for name, group in zip(names.rows, gate_groups(op), strict=True)]  # fmt: skip
        weights = ", ".join([
            *rows, *["0"] * (2 - len(rows)), f"{names.bias} + direction * {2 * cell.width}" if names.bias else "0",
            f"{names.peepholes} + direction * {3 * padded}" if names.peepholes else "0",
            f"{names.scales} + direction * {cell.width}" if names.scales else "0", "direction",
        ])  # fmt: skip
        with text.loop("step", "0", "longest"):
            with text.loop("q", "0", "width"):
                text.line("if (step >= length[q]) continue;")
                text.line(f"const int64 at = {backward} ? length[q] - 1 - step : step;")
                place_of = f"((at * batch + first + q) * {op.directions} + direction)"
                text.line(f"share[q] = x0 + {place_of} * {cell.width};")
            states = "share{0}, h{0}, fresh{0}, c{0}, kept{0}"
            alone = f"{ENTRY}_step1({weights}, {states.format(' + q')})"
            one_by_one = f"for (int64 q = 0; q < width; ++q) if (step < length[q]) {alone};"
            if many > 1:
                whole = f"{ENTRY}_step{many}({weights}, {states.format('')})"
                text.line(f"if (width == {many} && step < shortest) {whole};")
                text.line(f"else {one_by_one}")
            else:
                text.line(one_by_one)
            with text.loop("q", "0", "width"):
                text.line("if (step >= length[q]) continue;")
                text.line(f"const int64 at = {backward} ? length[q] - 1 - step : step;")
                text.line("float32 *old = h[q]; h[q] = fresh[q]; fresh[q] = old;")
                text.line(f"for (int64 k = 0; k < {cell.hidden}; ++k) {scalar.store(x.dtype, 'y0', place, 'h[q][k]')};")
        with text.loop("q", "0", "width"):
            with text.loop("at", "length[q]", "steps"), text.loop("k", "0", str(cell.hidden)):
                text.line(f"{scalar.store(x.dtype, 'y0', place, scalar.constant(0, x.dtype))};")
            with text.loop("k", "0", str(cell.hidden)):
                last = f"(direction * batch + first + q) * {cell.hidden} + k"
                for number, state in enumerate(("h", "c")[: count - 1], 1):
                    text.line(f"{scalar.store(x.dtype, f'y{number}', last, f'{state}[q][k]')};")
    work = product(x.shape[:2]) * product(layer.value(2).shape)
    made = kernel.kernel(chunk_count(work, ceildiv(x.shape[1], many) * op.directions))
    functions = [split_text(cell.limbs, cell.hidden)] if cell.limbs else []
    functions += [step_function(replace(cell, sequences=size)) for size in sorted({1, many})]
    return replace(made, text="\n".join([*functions, made.text]))


def _names(layer: _Layer) -> _Names:
    """The pointers in the order in which the buffers are given."""
    left = iter(range(1, 20))

    def named(*, given: bool) -> str:
        return f"x{next(left)}" if given else ""

    rows = tuple(named(given=True) for _ in gate_groups(layer.op))
    bias, peepholes = named(given=layer.cell.has_bias), named(given=layer.cell.has_peepholes)
    scales = named(given=layer.cell.coded)
    lengths = named(given=layer.has(_LENGTHS))
    return _Names(
        rows, bias, peepholes, scales, lengths, (named(given=layer.has(_INITIAL_H)), named(given=layer.has(_INITIAL_C)))
    )


def _parameter(kind: DType, number: int) -> Instruction:
    of = TensorType(kind, ())
    return Instruction(Parameter(of), (), (of,), (None,), (f"x{number}",))
