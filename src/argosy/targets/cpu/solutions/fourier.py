"""Fourier transforms in n log n steps, several signals side by side; computed in float64 and rounded once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.ir.dim import DimLike, ceildiv, dim_max, dim_min
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.ops.signal import Fourier
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.fourier import LANES, TABLES, TRANSFORM, transform_size
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.cpu.solutions.signal import axis_and_length, fourier_sizes
from argosy.targets.cpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import DeclinedError, op_of, present
from argosy.targets.lowering.transforms import fixed_length, known_axis, transform_length

__all__ = ["FastFourier"]


@register_solution
class FastFourier(LoneOp):
    """One kernel for the tables, at load where the length is known, one for all signals."""

    name = "fast fourier transform"
    anchors = frozenset({"dft"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        why = super().applies(problem)
        if why:
            return why
        if not isinstance(present(problem.anchor_instruction, 0).shape[-1], int):
            return "it is not known whether the signal is real"
        return "the axis is known only when the program runs" if known_axis(problem.anchor_instruction) is None else ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps, fourier_sizes)
        plan = _Plan(problem.anchor_instruction)
        make, kind = _tables(problem, plan), TensorType(FLOAT64, (plan.tables,))
        if plan.fixed is not None:
            tables = steps.prepared(make, [], kind)
        else:
            tables = steps.temporary(kind)
            self.call(problem, steps, make, writes=[tables])
        kernel = _signals(problem, plan)
        lanes = dim_min(dim_max(plan.lines, 1), LANES)
        work = steps.temporary(TensorType(FLOAT64, (kernel.chunks, 4 * plan.size * lanes)))
        self.call(problem, steps, kernel, [tables], [steps.result(), work])


class _Plan:
    """What is known of a transform while compiling: its length exactly (`fixed`) or at most, and its signals."""

    def __init__(self, dft: Instruction) -> None:
        axis = known_axis(dft)
        if axis is None:
            raise DeclinedError("the axis is known only when the program runs")
        x, result = present(dft, 0), dft.result()
        self.axis = axis
        self.inner: DimLike = product(x.shape[axis + 1 : -1])
        self.lines: DimLike = product((*x.shape[:axis], self.inner))
        default = transform_length(dft, axis)
        self.fixed = fixed_length(dft, axis)
        self.length: DimLike = dim_max(2 * result.shape[axis] if default is None else default, 1)
        self.size: DimLike = 4 * self.length if self.fixed is None else transform_size(self.fixed)
        # Where the size is the length, turns are all that is needed; else behind the tables is room for a transform.
        self.tables: DimLike = 2 * self.size if self.size == self.fixed else 8 * self.size + 2 * self.length


def _tables(problem: Problem, plan: _Plan) -> Kernel:
    """The tables; of a fixed length without operands."""
    if plan.fixed is not None:
        writer = KernelWriter(Module("tables", (), (), (), ()), [FLOAT64])
        writer.text.line(f"const int64 length = {max(plan.fixed, 1)};")
    else:
        writer = OpKernel(problem.module, [FLOAT64])
        _, _, length = axis_and_length(writer.elements, problem.anchor_instruction)
        writer.text.line(f"const int64 length = max_int64({length}, 1);")
    writer.text.line(f"const int64 size = {ENTRY}_size_of(length);")
    writer.text.line(f"{ENTRY}_tables(length, size, y0, y0 + 4 * size + 2 * length);")
    made = writer.kernel(1)
    return replace(made, text=TABLES + made.text)


def _signals(problem: Problem, plan: _Plan) -> Kernel:
    """The signals, up to 8 side by side."""
    (result,) = problem.module.results
    kernel = OpKernel(problem.module, [result.dtype, FLOAT64], [FLOAT64])
    text, op, x = kernel.text, op_of(kernel.instruction, Fourier), kernel.operand(0)
    parts, wide = x.shape[-1], x.dtype.compute
    _, size, length = axis_and_length(kernel.elements, kernel.instruction)
    half = op.inverse and op.onesided
    text.line(
        f"const int64 whole = max_int64({length}, 1), inner = {text.dim(plan.inner)}, lines = {text.dim(plan.lines)};"
    )
    text.line(f"const int64 elements = {ENTRY}_size_of(whole), most = min_int64(max_int64(lines, 1), {LANES});")
    text.line(f"const int64 kept = {'whole / 2 + 1' if op.onesided and not op.inverse else 'whole'};")
    text.line(f"if ({length} < 1) return;")
    with kernel.share("unit", "(lines + most - 1) / most"):
        text.line("const int64 first = unit * most, lanes = min_int64(most, lines - first);")
        text.line("float64 *held[4];")
        text.line("for (int64 part = 0; part < 4; ++part)")
        text.line("  held[part] = y1 + (chunk * 4 + part) * elements * most;")
        # The inverse exchanges the parts on the way in and on the way out.
        text.line(f"float64 *re = held[{int(op.inverse)}], *im = held[{int(not op.inverse)}];")
        with text.loop("lane", "0", "lanes"):
            text.line("const int64 line = first + lane;")
            text.line(f"const int64 base = line / inner * {size} * inner + line % inner;")
            with text.loop("j", "0", "whole"):
                text.line(f"const int64 from = {'2 * j <= whole ? j : whole - j' if half else 'j'};")
                at = f"(base + from * inner) * {parts}"
                text.line("float64 real = 0, imaginary = 0;")
                with text.block(f"if (from < {size})"):
                    text.line(f"real = (float64){kernel.load(0, at)};")
                    if parts == 2:
                        value = f"(float64){kernel.load(0, f'{at} + 1')}"
                        # the half that is left out is the mirror image; the ends count as real
                        mirror = f"2 * j == whole || j == 0 ? 0 : from == j ? {value} : -{value}"
                        text.line(f"imaginary = {mirror if half else value};")
                text.line("re[j * lanes + lane] = real; im[j * lanes + lane] = imaginary;")
        text.line(f"{ENTRY}_transform(whole, elements, lanes, temporary0, held);")
        text.line(f"re = held[{int(op.inverse)}]; im = held[{int(not op.inverse)}];")
        scale = "1 / (float64)whole" if op.inverse else "1.0"
        text.line(f"const float64 scale = {scale};")
        with text.loop("lane", "0", "lanes"):
            text.line("const int64 line = first + lane;")
            text.line("const int64 target = line / inner * kept * inner + line % inner;")
            with text.loop("k", "0", "kept"):
                for part, name in enumerate(["re"] if half else ["re", "im"]):
                    rounded = scalar.apply("convert", [f"({name}[k * lanes + lane] * scale)"], [FLOAT64], wide)
                    place = f"(target + k * inner) * {1 if half else 2} + {part}"
                    text.line(kernel.store(0, result.dtype, place, rounded))
        text.line("(void)im;")
    units = ceildiv(plan.lines, LANES)
    made = kernel.kernel(chunk_count(product(result.shape) * 16, units))
    return replace(made, text=TRANSFORM + made.text)
