"""The kernel of the matrix that sums a spectrum into bins of the mel scale, in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir.dim import DimLike, floordiv
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Instruction, Module
from argosy.ops.shapes import product
from argosy.ops.signal import MelWeights
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.steering import given
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["mel_kernel", "mel_sizes"]

_LOG_10: Final = 2.302585092994046


def mel_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of the result of a `mel_weights`."""
    (bins,), (length,) = (given(elements.entries(None, present(instruction, index))) for index in range(2))
    return [[floordiv(length, 2) + 1, bins]]


def mel_kernel(module: Module) -> Kernel:
    """The kernel of a `mel_weights`."""
    dtype = module.results[0].dtype
    kernel = OpKernel(module)
    op_of(kernel.instruction, MelWeights)
    text = kernel.text
    kernel.items(product(module.results[0].shape))
    bins = text.dim(module.results[0].shape[1])
    log_10, per = scalar.constant(_LOG_10, FLOAT64), scalar.constant(2595.0, FLOAT64)
    length, rate = (kernel.load(index, "i * 0") for index in (1, 2))
    for index, name in ((3, "low"), (4, "high")):
        hertz = kernel.converted(index, "i * 0", FLOAT64)
        text.line(f"{name} = {per} * libdevice.log1p({hertz} / 700.0) / {log_10}")
    text.line(f"row, column, step = i // {bins}, i % {bins}, (high - low) / ({bins} + 2)")
    for offset, name in enumerate(("left", "center", "right")):
        text.line(f"edge = (column + {offset}) * step + low")
        text.line(f"hertz = 700.0 * libdevice.expm1(edge / {per} * {log_10})")
        place = f"({length}.to(tl.float64) + 1.0) * hertz / {rate}.to(tl.float64)"
        text.line(f"{name} = libdevice.floor({place}).to(tl.int64)")
    rise, fall = (f"tl.maximum({name}, 1).to(tl.float64)" for name in ("center - left", "right - center"))
    text.line(f"rising = (row - left).to(tl.float64) / {rise}")
    text.line(f"falling = (right - row).to(tl.float64) / {fall}")
    text.line("up, down = (row >= left) & (row < center), (row > center) & (row < right)")
    text.line("weight = tl.where(row == center, 1.0, tl.where(up, rising, tl.where(down, falling, 0.0)))")
    kernel.put("i", text.let(scalar.apply("convert", ["weight"], [FLOAT64], dtype)))
    return kernel.finished()
