"""The kernel of a deformable convolution: a lane for each element, loops over taps, channels and neighbours."""

from __future__ import annotations

import contextlib

from argosy.ir.module import Module
from argosy.ops.deformable import DeformableConv
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = ["deformable_kernel"]

_BIAS, _MASK = 3, 4


def deformable_kernel(module: Module) -> Kernel:
    """The kernel of a `deform_conv`."""
    kernel = OpKernel(module)
    text, op = kernel.text, op_of(kernel.instruction, DeformableConv)
    x, weight, result = kernel.operand(0), kernel.operand(1), module.results[0]
    kind = scalar.compute_type(x.dtype)
    spatial, window = x.shape[2:], weight.shape[2:]
    rank = len(spatial)
    sizes = [text.dim(size) for size in spatial]
    kernel.items(product(result.shape))
    image, output, *out = kernel.counters("i", result.shape, "o")
    text.line(f"places, taps = {kernel.count(result.shape[2:])}, {kernel.count(window)}")
    text.line(f"channels, inner = {kernel.dim(0, 1)}, {kernel.dim(1, 1)}")
    text.line(f"group = {output} // ({kernel.dim(1, 0)} // {op.group})")
    text.line("spot = i % places")
    kernel.zeros("total", kind)
    with contextlib.ExitStack() as stack:
        for axis, extent in enumerate(window):
            stack.enter_context(text.block(f"for k{axis} in range(0, {text.dim(extent)}):"))
        stack.enter_context(text.block("for c in range(0, inner):"))
        text.line(f"tap = {_flat([f'k{axis}' for axis in range(rank)], [text.dim(size) for size in window])}")
        text.line("channel = group * inner + c")
        text.line(f"row = ({image} * {op.offset_group} + channel // (channels // {op.offset_group})) * taps + tap")
        for axis in range(rank):
            size = sizes[axis]
            start = f"{out[axis]} * {op.strides[axis]} + k{axis} * {op.dilations[axis]} - {text.dim(op.pads[axis])}"
            place = text.let(f"({start}).to({kind}) + {kernel.load(2, f'(row * {rank} + {axis}) * places + spot')}")
            # far outside all places are alike
            text.line(f"q{axis} = tl.where({place} > -2, tl.where({place} < {size} + 1, {place}, {size} + 1.0), -2.0)")
            text.line(f"f{axis} = libdevice.floor(q{axis})")
        factor = kernel.load(_MASK, "row * places + spot") if kernel.has(_MASK) else ""
        filters = kernel.load(1, f"({output} * inner + c) * taps + tap")
        if factor:
            filters = text.let(f"{filters} * {factor}")
        for axis in range(rank):
            stack.enter_context(text.block(f"for u{axis} in range(0, 2):"))
        text.line(f"source, share, known = {image} * channels + channel, {filters}, inside")
        for axis in range(rank):
            size = sizes[axis]
            text.line(f"c{axis} = f{axis}.to({text.index_type}) + u{axis}")
            text.line(f"share = share * tl.where(u{axis} == 1, q{axis} - f{axis}, 1 - (q{axis} - f{axis}))")
            text.line(f"known = known & (c{axis} >= 0) & (c{axis} < {size})")
            text.line(f"source = source * {size} + c{axis}")
        text.line(f"total = total + tl.where(known, {kernel.load(0, 'source', 'known')} * share, 0).to({kind})")
    if kernel.has(_BIAS):
        text.line(f"total = total + {kernel.load(_BIAS, output)}")
    kernel.put("i", "total")
    return kernel.finished()


def _flat(places: list[str], sizes: list[str]) -> str:
    """The row-major place of coordinates."""
    total = places[0]
    for place, size in zip(places[1:], sizes[1:], strict=True):
        total = f"({total}) * {size} + {place}"
    return total
