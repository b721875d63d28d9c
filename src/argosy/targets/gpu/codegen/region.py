"""Kernels of pooling over regions of interest: a lane for each bin and channel. Places are computed in float64."""

from __future__ import annotations

from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Module
from argosy.ops.region import MaxRegionPool, RegionAlign
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = ["align_kernel", "max_region_kernel"]


def _bins(kernel: OpKernel, output: tuple[int, int]) -> None:
    """Define `row`, `column`, `channel` and `region` of every lane, and the sizes of `x`."""
    kernel.items(product(kernel.module.results[0].shape))
    text, (rows, columns) = kernel.text, output
    text.line(f"channels, height, width = {kernel.dim(0, 1)}, {kernel.dim(0, 2)}, {kernel.dim(0, 3)}")
    text.line(f"row, column = i // {columns} % {rows}, i % {columns}")
    text.line(f"channel, region = i // {rows * columns} % channels, i // {rows * columns} // channels")


def _image(kernel: OpKernel, image: str) -> None:
    """Define `plane`, where the channel of a region's image begins; another image than there is, is a fault."""
    images = kernel.dim(0, 0)
    kernel.elements.fault(f"({image} < 0) | ({image} >= {images})", Fault.INDEX, image)
    kernel.text.line(f"image = tl.minimum(tl.maximum({image}, 0), {images} - 1)")
    kernel.text.line("plane = (image * channels + channel) * height * width")


def align_kernel(module: Module) -> Kernel:
    """The kernel of a `roi_align`."""
    kernel = OpKernel(module)
    text, op, x = kernel.text, op_of(kernel.instruction, RegionAlign), kernel.operand(0)
    kind, average = scalar.compute_type(x.dtype), op.kind == "average"
    rows, columns = op.output
    _bins(kernel, op.output)
    _image(kernel, kernel.load(2, "region"))
    scale, shift = (scalar.constant(number, FLOAT64) for number in (op.scale, 0.5 if op.half_pixel else 0.0))
    edges = ("x1", "y1", "x2", "y2")
    for place, name in enumerate(edges):
        text.line(f"{name} = {kernel.converted(1, f'region * 4 + {place}', FLOAT64)} * {scale} - {shift}")
    total = " + ".join(f"({name} - {name})" for name in edges)
    kernel.elements.fault(f"({total}) != 0", Fault.VALUE, "region")
    text.line(f"finite = inside & (({total}) == 0) & (height * width * (i * 0 + 1) != 0)")
    for first, last, bins, name in (("y1", "y2", rows, "row"), ("x1", "x2", columns, "column")):
        length = f"{last} - {first}" if op.half_pixel else f"tl.maximum({last} - {first}, 1.0)"
        text.line(f"{name}_size = tl.where(finite, {length}, 0.0).to(tl.float64) / {bins}")
        count = f"libdevice.ceil({name}_size)" if not op.samples else f"{name}_size * 0 + {op.samples}"
        text.line(f"{name}_count = tl.where(finite, tl.maximum({count}, 0.0), 0.0).to({text.index_type})")
        text.line(f"{name}_start = {first} + {name}.to(tl.float64) * {name}_size")
    kernel.zeros("total", "tl.float64" if average else kind)
    if not average:
        kernel.zeros("met", "tl.int1")
    with (
        text.block("for a in range(0, tl.max(row_count, 0)):"),
        text.block("for b in range(0, tl.max(column_count, 0)):"),
    ):
        text.line("live = (a < row_count) & (b < column_count)")
        for name, step, size in (("row", "a", "height"), ("column", "b", "width")):
            inner = f"({step} + 0.5) * {name}_size / tl.maximum({name}_count, 1).to(tl.float64)"
            text.line(f"{name}_lower, {name}_upper, {name}_near, {name}_far = "
                      f"region_sample({name}_start + {inner}, {size})")  # fmt: skip
        for vertical, down in (("lower", "near"), ("upper", "far")):
            for horizontal, across in (("lower", "near"), ("upper", "far")):
                at = f"plane + row_{vertical} * width + column_{horizontal}"
                value, weight = kernel.load(0, at, "live"), f"(row_{down} * column_{across})"
                if average:
                    text.line(f"total = total + tl.where(live, {value}.to(tl.float64) * {weight}, 0.0)")
                else:
                    text.line(f"term = {value} * {weight}.to({kind})")
                    text.line("total = tl.where(live & ((met == 0) | (term > total)), term, total)")
                    text.line("met = met | live")
    if average:
        text.line("total = total / tl.maximum(row_count * column_count, 1).to(tl.float64)")
    kernel.put("i", f"total.to({kind})")
    return kernel.finished()


def max_region_kernel(module: Module) -> Kernel:
    """The kernel of a `max_roi_pool`."""
    kernel = OpKernel(module)
    text, op, x = kernel.text, op_of(kernel.instruction, MaxRegionPool), kernel.operand(0)
    kind = scalar.compute_type(x.dtype)
    rows, columns = op.output
    _bins(kernel, op.output)
    scale = scalar.constant(op.scale, FLOAT64)
    for number, name in enumerate(("number", "x1", "y1", "x2", "y2")):
        value = kernel.converted(1, f"region * 5 + {number}", FLOAT64)
        text.line(f"{name} = {f'round_away({value} * {scale})' if number else value}.to(tl.int64)")
    _image(kernel, "number")
    for first, last, count, place, size in (
        ("y1", "y2", rows, "row", "height"),
        ("x1", "x2", columns, "column", "width"),
    ):
        text.line(f"{place}_size = tl.maximum({last} - {first} + 1, 1).to(tl.float64) / {count}")
        for edge, index, rounding in (("begin", place, "floor"), ("end", f"({place} + 1)", "ceil")):
            inner = f"libdevice.{rounding}({index}.to(tl.float64) * {place}_size).to(tl.int64) + {first}"
            text.line(f"{place}_{edge} = tl.minimum(tl.maximum({inner}, 0), {size})")
        text.line(f"{place}_count = tl.where(inside, {place}_end - {place}_begin, 0)")
    kernel.zeros("best", kind)
    kernel.zeros("met", "tl.int1")
    with (
        text.block("for a in range(0, tl.max(row_count, 0)):"),
        text.block("for b in range(0, tl.max(column_count, 0)):"),
    ):
        text.line("live = (a < row_count) & (b < column_count)")
        value = kernel.load(0, "plane + (row_begin + a) * width + column_begin + b", "live")
        text.line(f"best = tl.where(live & ((met == 0) | ({value} > best) | ({value} != {value})), {value}, best)")
        text.line("met = met | live")
    kernel.put("i", "best")
    return kernel.finished()
