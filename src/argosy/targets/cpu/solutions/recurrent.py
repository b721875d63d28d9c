"""RNN, GRU and LSTM: a product for the inputs of all steps, then the steps of every sequence.

Sequences do not depend on each other, so that chunks share out directions and sequences.
"""

from __future__ import annotations

from typing import Any

from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.ops.recurrent import GATES, Recurrent
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.activation import activation_text
from argosy.targets.cpu.codegen.element import op_of, present
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution

__all__ = ["RecurrentSteps"]

_BIAS, _LENGTHS, _INITIAL_H, _INITIAL_C, _PEEPHOLES = 3, 4, 5, 6, 7


@register_solution
class RecurrentSteps(LoneOp):
    """Two kernels: the inputs' share of all gates, and the recurrence."""

    name = "recurrent steps"
    anchors = frozenset({"rnn"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        (layer,) = problem.module.instructions
        op, x, r = op_of(layer, Recurrent), present(layer, 0), present(layer, 2)
        wide, hidden, rows = x.dtype.compute, r.shape[2], r.shape[1]
        shares = steps.temporary(TensorType(wide, (op.directions, x.shape[0], x.shape[1], rows)))
        gates = steps.temporary(TensorType(wide, (op.directions, x.shape[1], rows)))
        states = steps.temporary(TensorType(wide, (op.directions, x.shape[1], 3, hidden)))
        self.call(problem, steps, _shares(problem.module), writes=[shares])
        results = [steps.result(number) for number in range(len(problem.module.results))]
        self.call(problem, steps, _recurrence(problem.module), [shares], [*results, gates, states])


def _product(kernel: OpKernel, left: str, right: str, depth: str, kind: str) -> str:
    """A sum of products over `i`, as a variable."""
    total = kernel.text.fresh("sum")
    kernel.text.line(f"{kind} {total} = 0;")
    with kernel.text.loop("i", "0", depth):
        kernel.text.line("#pragma clang fp reassociate(on)")
        kernel.text.line(f"{total} += {left} * {right};")
    return total


def _shares(module: Module) -> Kernel:
    """What the inputs of every step add to the gates, biases included."""
    kernel = OpKernel(module, [module.parameters[0].result().dtype.compute])
    text, op = kernel.text, op_of(kernel.instruction, Recurrent)
    x, w = kernel.operand(0), kernel.operand(1)
    kind = scalar.compute_type(x.dtype)
    rows, depth = text.let("int64", kernel.dim(1, 1)), text.let("int64", kernel.dim(1, 2))
    lines = text.let("int64", f"{kernel.dim(0, 0)} * {kernel.dim(0, 1)}")
    with kernel.share("row", f"{op.directions} * {rows}"):
        text.line(f"const int64 direction = row / {rows}, gate = row % {rows};")
        text.line(f"{kind} bias = 0;")
        if kernel.has(_BIAS):
            first = kernel.load(_BIAS, f"direction * 2 * {rows} + gate")
            second = kernel.load(_BIAS, f"direction * 2 * {rows} + {rows} + gate")
            # the bias of R stays apart for the hidden gate of a GRU: the reset gate may scale it
            apart = f" && gate < 2 * ({rows} / 3)" if op.kind == "gru" else ""
            text.line(f"bias = {first};")
            text.line(f"if (true{apart}) bias += {second};")
        with text.loop("line", "0", lines):
            total = _product(
                kernel, kernel.load(0, f"line * {depth} + i"), kernel.load(1, f"row * {depth} + i"), depth, kind
            )
            text.line(f"y0[(direction * {lines} + line) * {rows} + gate] = {total} + bias;")
    work = product(x.shape) * product(w.shape[:2])
    return kernel.kernel(chunk_count(work, w.shape[0] * w.shape[1]))


def _recurrence(module: Module) -> Kernel:
    """The steps. Results: y, the last h, (the last c,) room for the gates and for the states of each sequence."""
    x = module.parameters[0].result()
    wide = x.dtype.compute
    count = len(module.results)
    kernel = OpKernel(module, [*[x.dtype] * count, wide, wide], [wide])
    text, op = kernel.text, op_of(kernel.instruction, Recurrent)
    kind = scalar.compute_type(wide)
    text.line(f"const int64 steps = {kernel.dim(0, 0)}, batch = {kernel.dim(0, 1)}, hidden = {kernel.dim(2, 2)};")
    text.line(f"const int64 rows = {GATES[op.kind]} * hidden;")
    with kernel.share("line", f"{op.directions} * batch"):
        text.line("const int64 direction = line / batch, sequence = line % batch;")
        text.line(f"{kind} *restrict gate = y{count} + line * rows, *restrict h = y{count + 1} + line * 3 * hidden;")
        text.line(f"{kind} *restrict c = h + hidden, *restrict kept = c + hidden;")
        text.line("(void)kept;")
        length = (
            f"clamp_int64((int64){kernel.load(_LENGTHS, 'sequence')}, 0, steps)" if kernel.has(_LENGTHS) else "steps"
        )
        text.line(f"const int64 length = {length};")
        for index, name in ((_INITIAL_H, "h"), (_INITIAL_C, "c")):
            start = kernel.load(index, "line * hidden + k") if kernel.has(index) else "0"
            text.line(f"for (int64 k = 0; k < hidden; ++k) {name}[k] = {start};")
        backward = {"forward": "false", "reverse": "true"}.get(op.direction, "direction == 1")
        with text.loop("step", "0", "length"):
            text.line(f"const int64 at = {backward} ? length - 1 - step : step;")
            text.line(
                f"const {kind} *restrict share = temporary0 + ((direction * steps + at) * batch + sequence) * rows;"
            )
            _CELLS[op.kind](kernel, op)
            with text.loop("k", "0", "hidden"):
                place = f"((at * {op.directions} + direction) * batch + sequence) * hidden + k"
                text.line(kernel.store(0, x.dtype, place, "h[k]"))
        with text.loop("at", "length", "steps"), text.loop("k", "0", "hidden"):
            place = f"((at * {op.directions} + direction) * batch + sequence) * hidden + k"
            text.line(kernel.store(0, x.dtype, place, scalar.constant(0, x.dtype)))
        with text.loop("k", "0", "hidden"):
            text.line(kernel.store(1, x.dtype, "line * hidden + k", "h[k]"))
            if count == 3:
                text.line(kernel.store(2, x.dtype, "line * hidden + k", "c[k]"))
    w = kernel.operand(2)
    work = product(x.shape[:2]) * product(w.shape)
    return kernel.kernel(chunk_count(work, x.shape[1] * op.directions))


def _function(kernel: OpKernel, op: Recurrent, number: int, value: str) -> str:
    """Activation `number` of the direction at hand of a variable."""
    count = len(op.activations) // op.directions
    texts = [
        activation_text(
            op.activations[place], value, op.alphas[place], op.betas[place], kernel.operand(0).dtype.compute
        )
        for place in range(number, len(op.activations), count)
    ]
    return texts[0] if len(set(texts)) == 1 else f"(direction == 0 ? {texts[0]} : {texts[1]})"


def _clipped(kernel: OpKernel, op: Recurrent, value: str) -> str:
    """A variable with the sum that goes into an activation."""
    kind = kernel.operand(0).dtype.compute
    if op.clip is None:
        return kernel.text.let(scalar.compute_type(kind), value)
    low, high = scalar.constant(-op.clip, kind), scalar.constant(op.clip, kind)
    return kernel.text.let(scalar.compute_type(kind), f"min_{kind}(max_{kind}({value}, {low}), {high})")


def _times_recurrent(kernel: OpKernel, state: str, row: str) -> str:
    """The product of a state with a row of R."""
    kind = scalar.compute_type(kernel.operand(0).dtype)
    return _product(kernel, kernel.load(2, f"(direction * rows + {row}) * hidden + i"), f"{state}[i]", "hidden", kind)


def _rnn(kernel: OpKernel, op: Recurrent) -> None:
    text = kernel.text
    with text.loop("k", "0", "hidden"):
        total = _times_recurrent(kernel, "h", "k")
        value = _clipped(kernel, op, f"share[k] + {total}")
        text.line(f"gate[k] = {_function(kernel, op, 0, value)};")
    text.line("for (int64 k = 0; k < hidden; ++k) h[k] = gate[k];")


def _lstm(kernel: OpKernel, op: Recurrent) -> None:
    """Gates in the order i o f c."""
    text = kernel.text

    def peephole(number: int) -> str:
        return kernel.load(_PEEPHOLES, f"(direction * 3 + {number}) * hidden + k")

    with text.loop("g", "0", "rows"):
        total = _times_recurrent(kernel, "h", "g")
        text.line(f"gate[g] = share[g] + {total};")
    with text.loop("k", "0", "hidden"):
        given = kernel.has(_PEEPHOLES)
        opening = _clipped(kernel, op, f"gate[k] + {peephole(0)} * c[k]" if given else "gate[k]")
        text.line(f"const {scalar.compute_type(kernel.operand(0).dtype)} opened = {_function(kernel, op, 0, opening)};")
        if op.input_forget:
            forgotten = "1 - opened"
        else:
            forget = "gate[2 * hidden + k]"
            forgotten = _function(
                kernel, op, 0, _clipped(kernel, op, f"{forget} + {peephole(2)} * c[k]" if given else forget)
            )
        cell = _function(kernel, op, 1, _clipped(kernel, op, "gate[3 * hidden + k]"))
        text.line(f"c[k] = ({forgotten}) * c[k] + opened * {cell};")
        out = _clipped(kernel, op, f"gate[hidden + k] + {peephole(1)} * c[k]" if given else "gate[hidden + k]")
        text.line(f"h[k] = {_function(kernel, op, 0, out)} * {_function(kernel, op, 2, 'c[k]')};")


def _gru(kernel: OpKernel, op: Recurrent) -> None:
    """Gates in the order z r h."""
    text = kernel.text
    with text.loop("g", "0", "2 * hidden"):
        total = _times_recurrent(kernel, "h", "g")
        value = _clipped(kernel, op, f"share[g] + {total}")
        text.line(f"gate[g] = {_function(kernel, op, 0, value)};")
    bias = kernel.load(_BIAS, "(direction * 2 + 1) * rows + 2 * hidden + k") if kernel.has(_BIAS) else "0"
    if not op.linear_before_reset:
        text.line("for (int64 k = 0; k < hidden; ++k) kept[k] = gate[hidden + k] * h[k];")
    with text.loop("k", "0", "hidden"):
        if op.linear_before_reset:
            share = f"gate[hidden + k] * ({_times_recurrent(kernel, 'h', '2 * hidden + k')} + {bias})"
        else:
            share = f"{_times_recurrent(kernel, 'kept', '2 * hidden + k')} + {bias}"
        value = _clipped(kernel, op, f"share[2 * hidden + k] + ({share})")
        text.line(f"gate[2 * hidden + k] = {_function(kernel, op, 1, value)};")
    text.line("for (int64 k = 0; k < hidden; ++k) h[k] = (1 - gate[k]) * gate[2 * hidden + k] + gate[k] * h[k];")


_CELLS = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}
