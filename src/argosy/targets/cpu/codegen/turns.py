"""Kernels of loops and scans: a number of iterations, and the element whose turn it is."""

from __future__ import annotations

from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter
from argosy.targets.cpu.codegen.loops import copy_code
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.control import Turn

__all__ = ["element_kernel", "length_kernel"]


def length_kernel(length: DimLike) -> Kernel:
    """Writes a size as an int64."""
    writer = KernelWriter(Module("length", (), (), (), ()), [INT64])
    writer.text.line(f"y0[0] = {writer.text.dim(length)};")
    return writer.kernel(1).labelled("length")


def element_kernel(turn: Turn) -> Kernel:
    """Copies the element whose turn it is. Reads the tensor and the iteration."""
    value, axis = turn.value, turn.axis
    kind = value.tensor.with_dtype(copy_code(value.dtype))
    parameters = [
        Instruction(Parameter(each), (), (each,), (None,), (name,))
        for each, name in ((kind, "x"), (TensorType(INT64, ()), "iteration"))
    ]
    module = Module("element", tuple(parameters), tuple(parameters[:1]), (), ())
    kernel = OpKernel(module, [kind.dtype])
    text, shape = kernel.text, value.shape
    size = text.let("int64", text.dim(shape[axis]))
    inner = text.let("int64", kernel.count(shape[axis + 1 :]))
    text.line(f"const int64 place = {f'{size} - 1 - x1[0]' if turn.backwards else 'x1[0]'};")
    with text.loop("row", "0", kernel.count(shape[:axis])), text.loop("k", "0", inner):
        text.line(f"y0[row * {inner} + k] = x0[(row * {size} + place) * {inner} + k];")
    return kernel.kernel(1).labelled("element")
