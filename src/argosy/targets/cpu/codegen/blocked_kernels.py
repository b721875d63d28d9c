"""Kernels over blocked images that are no products: elementwise, pooling, reductions of whole planes, joining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from argosy.ir import access as maps
from argosy.ir.access import axis_index
from argosy.ir.dim import DimLike, ceildiv, equal
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import Dims
from argosy.ops.pooling import Pool
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import product
from argosy.ops.window import extents, resolve_pads
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.blocked_elements import BlockedElements, Image, store_pixel
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.pooling import least
from argosy.targets.cpu.codegen.product_loops import counter
from argosy.targets.cpu.codegen.reorder import place, zero_halo
from argosy.targets.cpu.codegen.vector_elements import lanes_type, load_block, stored_lanes
from argosy.targets.cpu.layout import LANES, Blocked
from argosy.targets.lowering.accesses import op_of, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["blocked_concat", "blocked_elementwise", "blocked_pool", "blocked_reduction", "whole_planes"]


@contextmanager
def _lines(writer: KernelWriter, shape: Dims, layout: Blocked) -> Iterator[None]:
    """Loops over the images, blocks and pixels of a blocked result of dims `shape`; its halo becomes zero."""
    text = writer.text
    lines, blocks = product(shape[2:-1]), ceildiv(shape[1], LANES)
    count, many = text.dim(lines), text.dim(blocks)
    with share(writer, "unit", shape[0] * blocks * lines):
        text.line(f"const int64 line = unit % {count}, image = unit / {count};")
        text.line(f"const int64 block = image % {many}, i0 = image / {many};")
        if not layout.is_bare:
            with text.block("if (line == 0)"):
                zero_halo(text, layout, shape[2:], "image")
        decompose(text, "line", shape[2:-1], 2)
        with text.loop(axis_name(len(shape) - 1), "0", text.dim(shape[-1])):
            yield


def _pieces(shape: Dims) -> DimLike:
    return shape[0] * ceildiv(shape[1], LANES) * product(shape[2:-1])


def blocked_elementwise(module: Module, images: Mapping[str, Image], layout: Blocked) -> Kernel:
    """A module of views and pointwise ops, pixel by pixel."""
    root = module.results[0]
    writer = KernelWriter(module, [root.dtype])
    with _lines(writer, root.shape, layout):
        store_pixel(writer, images, layout)
    writer.in_place = writer.read_in_place()
    return writer.kernel(chunk_count(product(root.shape), _pieces(root.shape)))


def blocked_pool(
    module: Module, anchor: Instruction, source: Blocked, images: Mapping[str, Image], layout: Blocked
) -> Kernel:
    """A pooling of the blocked image `temporary0`; `module` is the part of the op behind the anchor."""
    op, x, result = op_of(anchor, Pool), present(anchor, 0), anchor.result()
    kind = x.dtype
    vector = lanes_type(kind)
    writer = KernelWriter(module, [layout.dtype], [kind])
    text = writer.text
    spatial = x.shape[2:]
    rank = len(spatial)
    pads = resolve_pads(op.auto_pad, spatial, extents(op.kernel, op.dilations), op.strides, op.pads)
    with _lines(writer, result.shape, layout):
        counts = []
        for axis in range(rank):
            dilation, size = op.dilations[axis], text.dim(spatial[axis])
            start = f"{axis_name(axis + 2)} * {op.strides[axis]} - {text.dim(pads[axis])}"
            text.line(f"const int64 start{axis} = {start};")
            text.line(f"const int64 low{axis} = max_int64(0, ceildiv_int64(-start{axis}, {dilation}));")
            high = f"min_int64({op.kernel[axis]}, ceildiv_int64({size} - start{axis}, {dilation}))"
            text.line(f"const int64 high{axis} = {high};")
            if op.count_include_pad:
                end = f"{size} + {text.dim(pads[rank + axis])} - start{axis}"
                counts.append(f"min_int64({op.kernel[axis]}, ceildiv_int64({end}, {dilation}))")
            else:
                counts.append(f"max_int64(0, high{axis} - low{axis})")
        begin = least(kind) if op.kind == "max" else "0"
        text.line(f"{vector} total = ({vector})({begin});")
        with ExitStack() as stack:
            places: list[DimLike] = []
            for axis in range(rank):
                stack.enter_context(text.loop(f"r{axis}", f"low{axis}", f"high{axis}"))
                text.line(f"const int64 p{axis} = start{axis} + r{axis} * {op.dilations[axis]};")
                places.append(counter(f"p{axis}", spatial[axis]))
            at = text.dim(source.offset(x.shape, axis_index(0, x.shape[0]), place("block"), places))
            text.line(f"const {vector} x = {load_block(kind, f'temporary0 + {at}')};")
            most = "max_float32" if vector == "float32x16" else "__builtin_elementwise_max"
            text.line(f"total = {most}(total, x);" if op.kind == "max" else "total = total + x;")
        value = "total"
        if op.kind == "average":
            text.line(f"const int64 count = {' * '.join(counts)};")
            value = "total / (float32x16)(float32)(count > 0 ? count : 1)"
        store_pixel(writer, images, layout, (result, value))
    work = product(result.shape) * product(op.kernel)
    return writer.kernel(chunk_count(work, _pieces(result.shape)))


def blocked_reduction(module: Module, anchor: Instruction, images: Mapping[str, Image]) -> Kernel:
    """A reduction of whole planes to one number for each channel, stored in row-major order.

    Sums are in float32 along a line and in float64 over lines.
    """
    op, source, result = op_of(anchor, Reduce), present(anchor, 0), anchor.result()
    root = module.results[0]
    writer = KernelWriter(module, [root.dtype])
    text = writer.text
    shape, spatial = source.shape, source.shape[2:]
    blocks = text.dim(ceildiv(shape[1], LANES))
    sums = op.kind in ("sum", "mean")
    combine = "line = line + {}" if sums else f"line = {op.kind}_float32(line, {{}})"
    start = "0" if sums else f"{'-' if op.kind == 'max' else ''}__builtin_inff()"
    units = shape[0] * ceildiv(shape[1], LANES)
    with share(writer, "unit", units):
        text.line(f"const int64 block = unit % {blocks}, i0 = unit / {blocks};")
        text.line(f"{'float64x16' if sums else 'float32x16'} total = {{0}};")
        if not sums:
            text.line(f"total = (float32x16)({start});")
        with text.loop("outer", "0", text.dim(product(spatial[:-1]))):
            decompose(text, "outer", spatial[:-1], 2)
            text.line(f"float32x16 line = (float32x16)({start});")
            with text.loop(axis_name(len(shape) - 1), "0", text.dim(spatial[-1])):
                elements = BlockedElements(text, writer.pointers, images)
                text.line(f"{combine.format(elements.of(source, maps.identity(shape)))};")
            text.line("total += widen(line);" if sums else f"total = {op.kind}_float32(total, line);")
        if op.kind == "mean":
            text.line(f"total /= (float64x16)(float64){text.dim(product(spatial))};")
        with text.loop("lane", "0", str(LANES)), writer.elements.scope():
            text.line(f"const int64 i1 = block * {LANES} + lane;")
            text.line(f"if (i1 >= {text.dim(shape[1])}) break;")
            writer.elements.given[result] = text.let("float32", "(float32)total[lane]")
            access = maps.identity(root.shape)
            value = writer.elements.of(root, access)
            text.line(f"{scalar.store(root.dtype, writer.result(), writer.elements.offset(access), value)};")
    return writer.kernel(chunk_count(product(shape), units))


def blocked_concat(module: Module, operands: Sequence[Value], images: Mapping[str, Image], layout: Blocked) -> Kernel:
    """Images joined along their channels, of which all but the last have whole blocks."""
    result = module.results[0]
    writer = KernelWriter(module, [layout.dtype])
    text, stored = writer.text, scalar.storage_type(layout.dtype)
    shape = result.shape
    first: DimLike = 0
    units: DimLike = 0
    for operand in operands:
        own = operand.shape
        with _operand_lines(writer, own, shape, first, layout):
            elements = BlockedElements(text, writer.pointers, images)
            value = elements.of(operand, maps.identity(own))
            places = [axis_index(axis, size) for axis, size in enumerate(shape)]
            at = layout.offset(shape, places[0], place("whole"), places[2:])
            text.line(f"*({stored}x16 *)(y0 + {text.dim(at)}) = {stored_lanes(layout.dtype, value)};")
        first = ceildiv(own[1], LANES) + first
        units = own[0] * ceildiv(own[1], LANES) * product(own[2:-1]) + units
    kernel = writer.kernel(chunk_count(product(shape), units))
    if not equal(shape[0], 1):
        return replace(kernel, apart="the channels of more than one image lie apart")
    if any(image.layout != layout for image in images.values()):
        return replace(kernel, apart="the operands lie with other halos")
    width = layout.dtype.bits // 8
    sizes = [product((*layout.kind(operand.shape).shape, width)) for operand in operands]
    return replace(kernel, joins=tuple(enumerate(sizes)))


@contextmanager
def _operand_lines(writer: KernelWriter, own: Dims, shape: Dims, first: DimLike, layout: Blocked) -> Iterator[None]:
    """Loops over the pixels of an operand whose blocks are number `first` and following of the result."""
    text = writer.text
    lines, blocks = text.dim(product(own[2:-1])), text.dim(ceildiv(own[1], LANES))
    with text.block(""), share(writer, "unit", own[0] * ceildiv(own[1], LANES) * product(own[2:-1])):
        text.line(f"const int64 line = unit % {lines}, block = unit / {lines} % {blocks};")
        text.line(f"const int64 i0 = unit / {lines} / {blocks}, whole = block + {text.dim(first)};")
        if not layout.is_bare:
            with text.block("if (line == 0)"):
                image = f"(i0 * {text.dim(ceildiv(shape[1], LANES))} + whole)"
                zero_halo(text, layout, shape[2:], image)
        decompose(text, "line", own[2:-1], 2)
        with text.loop(axis_name(len(own) - 1), "0", text.dim(own[-1])):
            yield


def whole_planes(anchor: Instruction) -> bool:
    """Whether a reduction is over all spatial axes of an image, and no other."""
    op, source = op_of(anchor, Reduce), present(anchor, 0)
    if op.axes is None or op.kind not in ("sum", "mean", "max", "min"):
        return False
    axes = {axis % source.rank for axis in op.axes}
    return source.rank > 2 and axes == set(range(2, source.rank))
