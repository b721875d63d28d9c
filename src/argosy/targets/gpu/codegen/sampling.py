"""Kernels that sample between elements: a lane for each element of the result, loops over the neighbours."""

from __future__ import annotations

import contextlib
from typing import Final

from argosy.ir.dtype import FLOAT64, DType
from argosy.ir.module import Module
from argosy.ops.sampling import GridSample
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = ["grid_sample_kernel"]

_TAPS: Final = {"nearest": 1, "linear": 2, "cubic": 4}
_CUBIC_A: Final = -0.75


def grid_sample_kernel(module: Module) -> Kernel:
    """The kernel of a `grid_sample`."""
    kernel = OpKernel(module)
    text, op = kernel.text, op_of(kernel.instruction, GridSample)
    x, grid = kernel.operand(0), kernel.operand(1)
    spatial, outputs = x.shape[2:], grid.shape[1:-1]
    rank = len(spatial)
    wide = x.dtype.compute if x.dtype.is_float else FLOAT64
    kind = scalar.compute_type(x.dtype if op.mode == "nearest" else wide)
    sizes = [text.dim(size) for size in spatial]
    kernel.items(product(module.results[0].shape))
    text.line(f"places, channels = {kernel.count(outputs)}, {kernel.dim(0, 1)}")
    text.line("image = i // (places * channels)")
    text.line("spot = image * places + i % places")
    for axis in range(rank):
        # the last axis comes first in the grid
        _place(kernel, op, axis, kernel.load(1, f"spot * {rank} + {rank - 1 - axis}"), sizes[axis])
    kernel.zeros("total", kind)
    with contextlib.ExitStack() as stack:
        text.line("source0, known0, share0 = i // places, inside, 1.0")
        for axis in range(rank):
            taps = _TAPS[op.mode]
            if taps > 1:
                stack.enter_context(text.block(f"for k{axis} in range(0, {taps}):"))
            _tap(kernel, op, axis, sizes[axis], grid.dtype.compute)
        value = kernel.load(0, f"source{rank}", f"known{rank}")
        if op.mode == "nearest":
            text.line(f"total = tl.where(known{rank}, {value}, total)")
        else:
            # an element that does not count may be infinite
            term = f"{value}.to({kind}) * share{rank}.to({kind})"
            text.line(f"total = total + tl.where(known{rank} & (share{rank} != 0), {term}, 0).to({kind})")
    result = "total"
    if op.mode != "nearest" and wide is not x.dtype.compute:
        result = text.let(scalar.apply("convert", ["total"], [wide], x.dtype))
    kernel.put("i", result)
    return kernel.finished()


def _edges(op: GridSample, size: str) -> tuple[str, str]:
    return ("0.0", f"({size} - 1.0)") if op.align_corners else ("-0.5", f"({size} - 0.5)")


def _place(kernel: OpKernel, op: GridSample, axis: int, point: str, size: str) -> None:
    """Define `base` and `part` of an axis: the element before a place, and how far behind it the place is."""
    text = kernel.text
    low, high = _edges(op, size)
    place = text.let(f"({point} + 1) / 2 * ({size} - 1)" if op.align_corners else f"(({point} + 1) * {size} - 1) / 2")
    if op.mode == "nearest":
        place = text.let(f"libdevice.rint({place})")
    if op.padding == "reflection":
        place = text.let(f"reflected({place}.to(tl.float64), {low}, {high}).to({place}.dtype)")
    # elements beyond the border are looked up one by one; far off all are alike, NaN is place 0
    place = text.let(f"tl.where({place} == {place}, {place}, 0.0)")
    place = text.let(f"tl.where({place} < -8.0, -8.0, tl.where({place} > {size} + 8.0, {size} + 8.0, {place}))")
    whole = text.let(f"libdevice.floor({place})")
    text.line(f"part{axis} = {place} - {whole}")
    text.line(f"base{axis} = {whole}.to({text.index_type})")


def _tap(kernel: OpKernel, op: GridSample, axis: int, size: str, points: DType) -> None:
    """Add the neighbour at hand of an axis to the `source`, to what is `known` of it and to its `share`."""
    text = kernel.text
    tap = f"k{axis}"
    if op.mode == "nearest":
        text.line(f"at{axis}, weight{axis} = base{axis}, 1.0")
    elif op.mode == "linear":
        text.line(f"at{axis} = base{axis} + {tap}")
        text.line(f"weight{axis} = tl.where({tap} == 0, 1.0 - part{axis}, part{axis})")
    else:
        text.line(f"at{axis} = base{axis} + {tap} - 1")
        distance = f"tl.abs(part{axis} + 1.0 - {tap})"
        text.line(f"weight{axis} = cubic_weight({distance}, {_CUBIC_A}).to({scalar.compute_type(points)})")
    known = f"known{axis} & ({size} + i * 0 > 0)" if not size.isdigit() else f"known{axis}"
    if op.padding == "zeros":
        known = f"{known} & (at{axis} >= 0) & (at{axis} < {size})"
    elif op.padding == "reflection":
        low, high = _edges(op, size)
        text.line(f"at{axis} = reflected(at{axis}.to(tl.float64), {low}, {high}).to({text.index_type})")
    text.line(f"known{axis + 1} = {known}")
    text.line(f"source{axis + 1} = source{axis} * {size} + tl.minimum(tl.maximum(at{axis}, 0), {size} - 1)")
    text.line(f"share{axis + 1} = share{axis} * weight{axis}")
