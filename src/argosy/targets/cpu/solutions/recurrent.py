"""RNN, GRU and LSTM: a product for the inputs of all steps, then the steps of every sequence.

Sequences do not depend on each other, so that chunks share out directions and sequences, four at a time.
"""

from __future__ import annotations

from typing import Any

from argosy.ir.dim import ceildiv
from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.ops.recurrent import GATES, Recurrent
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.codegen.recurrent_cells import BIAS, CELLS
from argosy.targets.cpu.codegen.row_products import TILE, row_products
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["RecurrentSteps"]

_LENGTHS, _INITIAL_H, _INITIAL_C, _SCALE = 4, 5, 6, 8
_ROWS = 16
"""Gates of a chunk."""


@register_solution
class RecurrentSteps(LoneOp):
    """Two kernels: the inputs' share of all gates, and the recurrence."""

    name = "recurrent steps"
    anchors = frozenset({"rnn"})

    def applies(self, problem: Problem) -> str:
        coded = problem.anchor is not None and len(problem.anchor.operands) > _SCALE
        return super().applies(problem) or ("the recurrent weights are codes" if coded else "")

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


def _shares(module: Module) -> Kernel:
    """What the inputs of every step add to the gates, biases included."""
    kernel = OpKernel(module, [module.parameters[0].result().dtype.compute])
    text, op = kernel.text, op_of(kernel.instruction, Recurrent)
    x, w = kernel.operand(0), kernel.operand(1)
    kind = scalar.compute_type(x.dtype)
    rows, depth = text.let("int64", kernel.dim(1, 1)), text.let("int64", kernel.dim(1, 2))
    lines = text.let("int64", f"{kernel.dim(0, 0)} * {kernel.dim(0, 1)}")
    blocks = text.let("int64", f"({rows} + {_ROWS - 1}) / {_ROWS}")
    with kernel.share("block", f"{op.directions} * {blocks}"):
        text.line(f"const int64 direction = block / {blocks}, begin = block % {blocks} * {_ROWS};")
        text.line(f"const int64 end = min_int64(begin + {_ROWS}, {rows});")
        text.line(f"{kind} bias[{_ROWS}] = {{0}};")
        if kernel.has(BIAS):
            with text.loop("gate", "begin", "end"):
                first = kernel.load(BIAS, f"direction * 2 * {rows} + gate")
                second = kernel.load(BIAS, f"direction * 2 * {rows} + {rows} + gate")
                # the bias of R stays apart for the hidden gate of a GRU: the reset gate may scale it
                apart = f"gate >= 2 * ({rows} / 3) ? 0 : " if op.kind == "gru" else ""
                text.line(f"bias[gate - begin] = {first} + ({apart}{second});")
        with text.block(f"for (int64 line = 0; line < {lines}; line += {TILE})"):
            text.line(f"const int64 width = min_int64({TILE}, {lines} - line);")
            target = f"y0[(direction * {lines} + line + %s) * {rows} + %s]"
            row_products(
                kernel,
                ("begin", "end"),
                "width",
                depth,
                kind,
                lambda row: kernel.load(1, f"(direction * {rows} + {row}) * {depth} + i"),
                lambda q: kernel.load(0, f"(line + {q}) * {depth} + i"),
                lambda row, q, total: f"{target % (q, row)} = {total} + bias[{row} - begin];",
            )
    work = product(x.shape) * product(w.shape[:2])
    return kernel.kernel(chunk_count(work, ceildiv(w.shape[1], _ROWS) * op.directions))


def _recurrence(module: Module) -> Kernel:
    """The steps. Results: y, the last h, (the last c,) room for the gates and for the states of each sequence."""
    x = module.parameters[0].result()
    wide = x.dtype.compute
    count = len(module.results)
    kernel = OpKernel(module, [*[x.dtype] * count, wide, wide], [wide])
    text, op = kernel.text, op_of(kernel.instruction, Recurrent)
    kind = scalar.compute_type(wide)
    backward = {"forward": "false", "reverse": "true"}.get(op.direction, "direction == 1")
    text.line(f"const int64 steps = {kernel.dim(0, 0)}, batch = {kernel.dim(0, 1)}, hidden = {kernel.dim(2, 2)};")
    text.line(f"const int64 rows = {GATES[op.kind]} * hidden, blocks = (batch + {TILE - 1}) / {TILE};")
    with kernel.share("block", f"{op.directions} * blocks"):
        text.line(f"const int64 direction = block / blocks, first = block % blocks * {TILE};")
        text.line(f"const int64 width = min_int64({TILE}, batch - first);")
        text.line(f"{kind} *G[{TILE}], *H[{TILE}], *C[{TILE}], *K[{TILE}];")
        text.line(f"int64 length[{TILE}], longest = 0;")
        with text.loop("q", "0", "width"):
            text.line("const int64 line = direction * batch + first + q;")
            text.line(f"G[q] = y{count} + line * rows; H[q] = y{count + 1} + line * 3 * hidden;")
            text.line("C[q] = H[q] + hidden; K[q] = C[q] + hidden;")
            text.line("length[q] = steps;")
            if kernel.has(_LENGTHS):
                text.line(f"length[q] = clamp_int64((int64){kernel.load(_LENGTHS, '(first + q)')}, 0, steps);")
            text.line("longest = max_int64(longest, length[q]);")
            for index, name in ((_INITIAL_H, "H"), (_INITIAL_C, "C")):
                start = kernel.load(index, "line * hidden + k") if kernel.has(index) else "0"
                text.line(f"for (int64 k = 0; k < hidden; ++k) {name}[q][k] = {start};")
            text.line("for (int64 k = 0; k < hidden; ++k) K[q][k] = 0;")
        place = f"((at * {op.directions} + direction) * batch + first + q) * hidden + k"
        with text.loop("step", "0", "longest"):
            # which step of a sequence this is
            text.line(f"#define at_of(q) ({backward} ? length[q] - 1 - step : step)")
            text.line("#define running(q) (step < length[q])")
            text.line("#define share_of(q) (temporary0 + ((direction * steps + at_of(q)) * batch + first + q) * rows)")
            CELLS[op.kind](kernel, op)
            with text.loop("q", "0", "width"), text.block("if (running(q))"):
                text.line("const int64 at = at_of(q);")
                text.line(f"for (int64 k = 0; k < hidden; ++k) {kernel.store(0, x.dtype, place, 'H[q][k]')}")
        with text.loop("q", "0", "width"):
            with text.loop("at", "length[q]", "steps"), text.loop("k", "0", "hidden"):
                text.line(kernel.store(0, x.dtype, place, scalar.constant(0, x.dtype)))
            with text.loop("k", "0", "hidden"):
                last = "(direction * batch + first + q) * hidden + k"
                text.line(kernel.store(1, x.dtype, last, "H[q][k]"))
                if count == 3:
                    text.line(kernel.store(2, x.dtype, last, "C[q][k]"))
    work = product(x.shape[:2]) * product(kernel.operand(2).shape)
    return kernel.kernel(chunk_count(work, ceildiv(x.shape[1], TILE) * op.directions))
