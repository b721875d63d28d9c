"""Fourier transforms by a table of sines, and the matrix of the mel scale."""

from __future__ import annotations

from typing import Any

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.ops.signal import Fourier, MelWeights
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.codegen.result_sizes import optional
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.cpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["FourierSums", "MelMatrix", "axis_and_length", "fourier_sizes"]


@register_solution
class FourierSums(LoneOp):
    """A sum over the signal for each frequency, in float64: for an axis that only the run knows."""

    name = "fourier sums"
    anchors = frozenset({"dft"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps, fourier_sizes)
        (dft,) = problem.module.instructions
        # the length is not a dim of a one-sided result, but less than twice the longest of them
        longest: DimLike = 2
        for size in (*dft.result().shape, *present(dft, 0).shape):
            longest = 2 * size + longest
        table = steps.temporary(TensorType(FLOAT64, (longest, 2)))
        self.call(problem, steps, _table(problem.module), writes=[table])
        self.call(problem, steps, _transform(problem.module), [table])


def axis_and_length(elements: Elements, instruction: Instruction) -> tuple[str, str, str]:
    """C variables: the axis, its size, and the length of the transform."""
    op, x = op_of(instruction, Fourier), present(instruction, 0)
    text = elements.text
    axes = elements.entries(None if op.axis is None else (op.axis,), optional(instruction, 2))
    lengths = elements.entries(None if op.length is None else (op.length,), optional(instruction, 1))
    if not axes:
        raise DeclinedError("the axis of a Fourier transform is not one number")
    given = text.dim(axes[0])
    axis = text.let("int64", f"{given} + ({given} < 0 ? {x.rank} : 0)")
    text.line(f"if ({axis} < 0 || {axis} >= {x.rank - 1}) {{ argosy_fail(scratch, ARGOSY_INDEX, {given}); return; }}")
    size = "0"
    for number, dim in enumerate(x.shape[:-1]):
        size = f"({axis} == {number} ? {text.dim(dim)} : {size})"
    size = text.let("int64", size)
    half = op.inverse and op.onesided
    length = text.dim(lengths[0]) if lengths else f"2 * ({size} - 1)" if half else size
    return axis, size, text.let("int64", length)


def fourier_sizes(elements: Elements, instruction: Instruction) -> list[list[DimLike]]:
    """The dims of the result of a `dft`."""
    op, x = op_of(instruction, Fourier), present(instruction, 0)
    axis, _, length = axis_and_length(elements, instruction)
    kept = f"{length} / 2 + 1" if op.onesided and not op.inverse else length
    shape = [
        elements.local(f"{axis} == {number} ? {kept} : {elements.text.dim(size)}")
        for number, size in enumerate(x.shape[:-1])
    ]
    return [[*shape, instruction.result().shape[-1]]]


def _table(module: Module) -> Kernel:
    """cos and sin of -2 pi k / n."""
    kernel = OpKernel(module, [FLOAT64])
    _, _, length = axis_and_length(kernel.elements, kernel.instruction)
    with kernel.text.loop("k", "0", length):
        kernel.text.line(f"const float64 turn = (float64)k / (float64){length};")
        kernel.text.line("y0[2 * k] = cos_float64(turn * 0x1.921fb54442d18p+2);")
        kernel.text.line("y0[2 * k + 1] = -sin_float64(turn * 0x1.921fb54442d18p+2);")
    return kernel.kernel(1)


def _transform(module: Module) -> Kernel:
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype], [FLOAT64])
    text, op = kernel.text, op_of(kernel.instruction, Fourier)
    x = kernel.operand(0)
    parts = x.shape[-1]
    if not isinstance(parts, int):
        raise DeclinedError("it is not known whether the signal is real")
    axis, size, length = axis_and_length(kernel.elements, kernel.instruction)
    text.line("int64 inner = 1;")
    for number, dim in enumerate(x.shape[:-1]):
        text.line(f"inner *= {number} > {axis} ? {text.dim(dim)} : 1;")
    half = op.inverse and op.onesided
    kept = f"{length} / 2 + 1" if op.onesided and not op.inverse else length
    kept = text.let("int64", kept)
    taken = text.let("int64", f"min_int64({size}, {length} / 2 + 1)" if half else f"min_int64({size}, {length})")
    wide = x.dtype.compute
    lines = f"({size} * inner ? {kernel.count(x.shape[:-1])} / {size} : 0)"
    with kernel.share("at", f"{lines} * {kept}"):
        text.line(f"const int64 line = at / {kept}, k = at % {kept};")
        text.line(f"const int64 base = line / inner * {size} * inner + line % inner;")
        text.line(f"const int64 target = (line / inner * {kept} + k) * inner + line % inner;")
        text.line("float64 re = 0, im = 0;")
        text.line("int64 turn = 0;")
        with text.loop("j", "0", taken):
            text.line("const float64 c = temporary0[2 * turn], s = temporary0[2 * turn + 1];")
            text.line(f"turn += k; turn -= turn >= {length} ? {length} : 0;")
            load = f"(base + j * inner) * {parts}"
            text.line(f"const float64 a = (float64){kernel.load(0, load)};")
            imaginary = f"(float64){kernel.load(0, f'{load} + 1')}" if parts == 2 else "0"
            text.line(f"const float64 b = {imaginary};")
            if half:
                # the half that is left out is the mirror image: all but the ends count twice
                text.line(f"const float64 twice = j == 0 || 2 * j == {length} ? 1.0 : 2.0;")
                text.line("re += twice * (a * c + (twice == 1.0 ? 0.0 : b * s));")
            elif op.inverse:
                text.line("re += a * c + b * s; im += b * c - a * s;")
            else:
                text.line("re += a * c - b * s; im += b * c + a * s;")
        if op.inverse:
            text.line(f"re /= (float64){length}; im /= (float64){length};")
        values = ["re"] if half else ["re", "im"]
        for part, value in enumerate(values):
            rounded = scalar.apply("convert", [value], [FLOAT64], wide)
            text.line(kernel.store(0, result.dtype, f"target * {len(values)} + {part}", rounded))
    work = product(result.shape) * 64
    return kernel.kernel(chunk_count(work, product(result.shape)))


@register_solution
class MelMatrix(LoneOp):
    """Every element from the edges of its bin."""

    name = "mel matrix"
    anchors = frozenset({"mel_weights"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps, _mel_sizes)
        self.call(problem, steps, _mel(problem.module))


def _mel_sizes(elements: Elements, instruction: Instruction) -> list[list[DimLike]]:
    bins, length = (elements.entries(None, present(instruction, index)) for index in range(2))
    if not bins or not length:
        raise DeclinedError("the number of bins or the length is not one number")
    return [[elements.local(f"{elements.text.dim(length[0])} / 2 + 1"), bins[0]]]


def _mel(module: Module) -> Kernel:
    dtype = module.results[0].dtype
    kernel = OpKernel(module, [dtype])
    op_of(kernel.instruction, MelWeights)
    text = kernel.text
    rows, bins = (text.dim(size) for size in kernel.instruction.result().shape)
    place = kernel.function(
        "place",
        "int64 (float64 edge, int64 length, int64 rate)",
        """
  float64 hertz = 700.0 * expm1_float64(edge / 2595.0 * 0x1.26bb1bbb55516p+1);
  return (int64)__builtin_elementwise_floor((float64)(length + 1) * hertz / (float64)rate);""",
    )
    length = text.let("int64", f"(int64){kernel.load(1, '0')}")
    rate = text.let("int64", f"(int64){kernel.load(2, '0')}")
    for index, name in ((3, "low"), (4, "high")):
        hertz = kernel.converted(index, "0", FLOAT64)
        text.line(f"const float64 {name} = 2595.0 * log1p_float64({hertz} / 700.0) / 0x1.26bb1bbb55516p+1;")
    text.line(f"const float64 step = (high - low) / (float64)({bins} + 2);")
    with text.loop("column", "0", bins):
        for offset, name in enumerate(("left", "center", "right")):
            text.line(f"const int64 {name} = {place}((float64)(column + {offset}) * step + low, {length}, {rate});")
        with text.loop("row", "0", rows):
            kernel.code(
                """
const float64 rising = (float64)(row - left) / (float64)max_int64(center - left, 1);
const float64 falling = (float64)(right - row) / (float64)max_int64(right - center, 1);
const float64 weight = row == center ? 1.0
  : row >= left && row < center ? rising : row > center && row < right ? falling : 0.0;"""
            )
            rounded = scalar.apply("convert", ["weight"], [FLOAT64], dtype)
            text.line(kernel.store(0, dtype, f"row * {bins} + column", rounded))
    return kernel.kernel(1)
