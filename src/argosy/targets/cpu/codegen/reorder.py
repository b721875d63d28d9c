"""Kernels that take images into the blocked layout and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.dtype import DType
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.types import Dims, TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.copying import decompose, lies_along, share, transpose_text
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.vector_elements import KINDS, VectorElements, store_lanes, stored_lanes
from argosy.targets.cpu.layout import LANES, Blocked, Padded, Planar
from argosy.targets.lowering.kernel_text import axis_name, strides_of

__all__ = ["from_blocked", "image_shape", "place", "to_blocked", "to_planar", "whole", "zero_halo"]


def whole(kind: TensorType) -> Module:
    """The module that gives back its one parameter."""
    parameter = Instruction(Parameter(kind), (), (kind,), (None,), ("x",))
    return Module("reorder", (parameter,), (), (parameter.result(),), ("y",))


def place(name: str) -> DimLike:
    """A C variable as a place."""
    return symbol_dim(Symbol(f"@{name}", 0))


def image_shape(shape: Dims, axes: Sequence[int | None]) -> Dims:
    """The dims of an image whose axis i is axis `axes[i]` of a value of `shape`, or of size 1 where that is None."""
    return tuple(1 if axis is None else shape[axis] for axis in axes)


def to_blocked(module: Module, layout: Blocked, axes: Sequence[int | None] | None = None) -> Kernel:
    """The result of `module` as a blocked image whose axes are `axes` of it (default: its own)."""
    value = module.results[0]
    axes = tuple(range(value.rank)) if axes is None else tuple(axes)
    shape = image_shape(value.shape, axes)
    spatial = shape[2:]
    writer = KernelWriter(module, [layout.dtype])
    text, stored = writer.text, scalar.storage_type(layout.dtype)
    channel, last = axes[1], axes[-1]
    padded = layout.padded(spatial)
    lines = product(padded[:-1])
    blocks = ceildiv(shape[1], LANES)
    total = product((shape[0], blocks)) * lines
    with share(writer, "unit", total):
        text.line(f"const int64 line = unit % {text.dim(lines)};")
        text.line(f"const int64 image = unit / {text.dim(lines)};")
        text.line(f"const int64 block = image % {text.dim(blocks)};")
        _declare(text, axes[0], f"image / {text.dim(blocks)}")
        width = text.dim(padded[-1])
        text.line(
            f"{stored} *restrict to = y0 + (image * {text.dim(layout.plane(spatial))} + line * {width}) * {LANES};"
        )
        inside = _line_places(text, axes[2:-1], spatial[:-1], layout, "line")
        if inside:
            with text.block(f"if (!({inside}))"):
                text.line(f"for (int64 i = 0; i < {width} * {LANES}; ++i) to[i] = {layout.fill};")
                text.line("continue;")
        begin, end = layout.halo[-1]
        size = text.dim(spatial[-1])
        if begin:
            text.line(f"for (int64 i = 0; i < {begin * LANES}; ++i) to[i] = {layout.fill};")
            text.line(f"to += {begin * LANES};")
        if end:
            text.line(f"for (int64 i = 0; i < {end * LANES}; ++i) to[{size} * {LANES} + i] = {layout.fill};")
        text.line(f"const int64 channels = min_int64({LANES}, {text.dim(shape[1])} - block * {LANES});")
        fast = channel is not None and last is not None and lies_along(module, value, last, layout.dtype)
        if fast and channel is not None and last is not None:
            with text.block(f"if ({size} >= {LANES})"):
                _copy_lines(writer, value, channel, last, size, layout.dtype)
                text.line("continue;")
        _copy_elements(writer, value, channel, last, size, layout.dtype)
    kernel = writer.kernel(chunk_count(product(shape), total))
    return replace(kernel, text=transpose_text(stored) + kernel.text) if fast else kernel


def to_planar(module: Module, layout: Planar) -> Kernel:
    """The result of `module` with a halo around each of its planes."""
    value = module.results[0]
    shape, spatial, last = value.shape, value.shape[2:], value.rank - 1
    writer = KernelWriter(module, [layout.dtype])
    text, stored = writer.text, scalar.storage_type(layout.dtype)
    padded = layout.padded(spatial)
    lines, width, size = product(padded[:-1]), text.dim(padded[-1]), text.dim(spatial[-1])
    begin, end = layout.halo[-1]
    total = product(shape[:2]) * lines
    with share(writer, "unit", total):
        text.line(f"const int64 line = unit % {text.dim(lines)}, image = unit / {text.dim(lines)};")
        text.line(f"const int64 i0 = image / {text.dim(shape[1])}, i1 = image % {text.dim(shape[1])};")
        text.line(f"{stored} *restrict to = y0 + unit * {width};")
        inside = _line_places(text, range(2, last), spatial[:-1], layout, "line")
        if inside:
            with text.block(f"if (!({inside}))"):
                text.line(f"for (int64 i = 0; i < {width}; ++i) to[i] = {layout.fill};")
                text.line("continue;")
        text.line(f"for (int64 i = 0; i < {begin}; ++i) to[i] = {layout.fill};")
        text.line(f"to += {begin};")
        text.line(f"for (int64 i = 0; i < {end}; ++i) to[{size} + i] = {layout.fill};")
        if lies_along(module, value, last, layout.dtype):
            with text.block(f"if ({size} >= {LANES})"):
                with text.block(f"for (int64 done = 0; done < {size}; done += {LANES})"):
                    # The last ones may be copied twice.
                    text.line(f"const int64 {axis_name(last)} = min_int64(done, {size} - {LANES});")
                    vector = VectorElements(text, writer.pointers, last).of(value, maps.identity(shape))
                    text.line(store_lanes(layout.dtype, f"to + {axis_name(last)}", vector))
                text.line("continue;")
        with text.loop(axis_name(last), "0", size), writer.elements.scope():
            number = f"({scalar.compute_type(layout.dtype)}){writer.elements.of(value, maps.identity(shape))}"
            text.line(f"{scalar.store(layout.dtype, 'to', axis_name(last), number)};")
    return writer.kernel(chunk_count(product(shape), total))


def _declare(text: CText, axis: int | None, value: str) -> None:
    if axis is not None:
        text.line(f"const int64 {axis_name(axis)} = {value};")


def _line_places(text: CText, axes: Sequence[int | None], spatial: Sequence[DimLike], layout: Padded, line: str) -> str:
    """Declare the places of a padded line on all spatial axes but the last; whether it is inside the image, as C."""
    inside = []
    rest = line
    if len(spatial) > 1:
        text.line(f"int64 rest = {line};")
        rest = "rest"
    for number in reversed(range(len(spatial))):
        begin, end = layout.halo[number]
        name = text.fresh("p")
        size = text.dim(spatial[number])
        if number:
            wide = text.dim(spatial[number] + (begin + end))
            text.line(f"const int64 {name} = {rest} % {wide} - {begin}; {rest} /= {wide};")
        else:
            text.line(f"const int64 {name} = {rest} - {begin};")
        if begin or end:
            inside.append(f"{name} >= 0 && {name} < {size}")
        _declare(text, axes[number], name)
    return " && ".join(inside)


def _copy_lines(writer: KernelWriter, value: Value, channel: int, last: int, size: str, dtype: DType) -> None:
    """Sixteen pixels at a time; the last ones may be copied twice."""
    text, stored = writer.text, scalar.storage_type(dtype)
    with text.block(f"for (int64 done = 0; done < {size}; done += {LANES})"):
        text.line(f"const int64 {axis_name(last)} = min_int64(done, {size} - {LANES});")
        text.line(f"{stored}x16 v[16];")
        text.line("#pragma clang loop unroll(full)")
        with text.loop("lane", "0", str(LANES)):
            text.line(f"if (lane >= channels) {{ v[lane] = ({stored}x16)0; continue; }}")
            text.line(f"const int64 {axis_name(channel)} = block * {LANES} + lane;")
            elements = VectorElements(text, writer.pointers, last)
            text.line(f"v[lane] = {stored_lanes(dtype, elements.of(value, maps.identity(value.shape)))};")
        text.line("transpose_16(v);")
        text.line("#pragma clang loop unroll(full)")
        at = f"to + ({axis_name(last)} + lane) * {LANES}"
        text.line(f"for (int64 lane = 0; lane < {LANES}; ++lane) store_{stored}x16({at}, v[lane]);")


def _copy_elements(
    writer: KernelWriter, value: Value, channel: int | None, last: int | None, size: str, dtype: DType
) -> None:
    text = writer.text
    with text.loop("pixel", "0", size):
        _declare(text, last, "pixel")
        with text.loop("lane", "0", str(LANES)), writer.elements.scope():
            text.line(f"if (lane >= channels) {{ to[pixel * {LANES} + lane] = 0; continue; }}")
            _declare(text, channel, f"block * {LANES} + lane")
            element = writer.elements.of(value, maps.identity(value.shape))
            number = f"({scalar.compute_type(dtype)}){element}"
            text.line(f"{scalar.store(dtype, 'to', f'pixel * {LANES} + lane', number)};")


def from_blocked(kind: TensorType, layout: Blocked) -> Kernel:
    """A blocked image as the row-major tensor of type `kind`."""
    shape = kind.shape
    spatial = shape[2:]
    if layout.is_bare:
        # Without a halo the pixels of a plane are one line.
        spatial = (product(spatial),)
    writer = KernelWriter(Module("reorder", (), (), (), ()), [kind.dtype], [layout.dtype])
    text, stored = writer.text, scalar.storage_type(layout.dtype)
    lines = product(spatial[:-1])
    blocks = ceildiv(shape[1], LANES)
    total = product((shape[0], blocks)) * lines
    steps = strides_of((shape[0], shape[1], *spatial))
    size = text.dim(spatial[-1])
    with share(writer, "unit", total):
        text.line(f"const int64 line = unit % {text.dim(lines)}, image = unit / {text.dim(lines)};")
        text.line(f"const int64 block = image % {text.dim(blocks)}, batch = image / {text.dim(blocks)};")
        decompose(text, "line", spatial[:-1], 2)
        places = [*(maps.axis_index(axis + 2, extent) for axis, extent in enumerate(spatial[:-1])), 0]
        plane = text.dim(layout.plane(shape[2:]))
        pixel = "0" if layout.is_bare else text.dim(layout.pixel(spatial, places))
        text.line(f"const {stored} *restrict from = temporary0 + (image * {plane} + {pixel}) * {LANES};")
        text.line(f"const int64 channels = min_int64({LANES}, {text.dim(shape[1])} - block * {LANES});")
        line: DimLike = 0
        for index, step in zip(places, steps[2:], strict=True):
            line = step * index + line
        first = f"(batch * {text.dim(shape[1])} + block * {LANES}) * {text.dim(steps[1])} + {text.dim(line)}"
        text.line(f"{scalar.storage_type(kind.dtype)} *restrict to = y0 + {first};")
        channel = text.dim(steps[1])
        fast = kind.dtype is layout.dtype and kind.dtype in KINDS
        if fast:
            with text.block(f"if ({size} >= {LANES})"):
                with text.block(f"for (int64 done = 0; done < {size}; done += {LANES})"):
                    text.line(f"const int64 pixel = min_int64(done, {size} - {LANES});")
                    text.line(f"{stored}x16 v[16];")
                    text.line("#pragma clang loop unroll(full)")
                    at = f"from + (pixel + lane) * {LANES}"
                    text.line(f"for (int64 lane = 0; lane < {LANES}; ++lane) v[lane] = load_{stored}x16({at});")
                    text.line("transpose_16(v);")
                    text.line("#pragma clang loop unroll(full)")
                    with text.loop("lane", "0", str(LANES)):
                        text.line(f"if (lane < channels) store_{stored}x16(to + lane * {channel} + pixel, v[lane]);")
                text.line("continue;")
        with text.loop("lane", "0", "channels"), text.loop("pixel", "0", size):
            value = scalar.load(layout.dtype, "from", f"pixel * {LANES} + lane")
            text.line(f"{scalar.store(kind.dtype, 'to', f'lane * {channel} + pixel', value)};")
    kernel = writer.kernel(chunk_count(product(shape), total))
    return replace(kernel, text=transpose_text(stored) + kernel.text) if fast else kernel


def zero_halo(text: CText, layout: Blocked, spatial: Dims, number: str) -> None:
    """Write the halo of a plane of the result, zeros or the code of zero; `number` planes lie before it."""
    if layout.is_bare:
        return
    stored = scalar.storage_type(layout.dtype)
    plane = text.dim(layout.plane(spatial))
    padded = layout.padded(spatial)
    width = text.dim(padded[-1])
    begin, end = layout.halo[-1]
    with text.loop("line", "0", text.dim(product(padded[:-1]))):
        text.line(f"{stored} *restrict edge = y0 + (({number}) * {plane} + line * {width}) * {LANES};")
        inside = _line_places(text, (None,) * (len(spatial) - 1), spatial[:-1], layout, "line")
        if inside:
            with text.block(f"if (!({inside}))"):
                text.line(f"for (int64 i = 0; i < {width} * {LANES}; ++i) edge[i] = {layout.fill};")
                text.line("continue;")
        if begin:
            text.line(f"for (int64 i = 0; i < {begin * LANES}; ++i) edge[i] = {layout.fill};")
        if end:
            text.line(
                f"for (int64 i = 0; i < {end * LANES}; ++i) edge[({width} - {end}) * {LANES} + i] = {layout.fill};"
            )
