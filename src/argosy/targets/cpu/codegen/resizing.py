"""Kernels of resize: the nearest elements in one pass, interpolation one axis after the other.

Where an axis is read, and by which weights, is the same for all of its lines: a table that a small kernel makes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64, INT64, DType
from argosy.ir.module import Module
from argosy.ops.resize import Resize
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel, dot_text
from argosy.targets.cpu.codegen.resize_axes import ResizedAxis, place_text, resized_axes
from argosy.targets.lowering.accesses import op_of

__all__ = [
    "changed_axes",
    "interpolation_pass",
    "interpolation_table",
    "nearest_resize",
    "nearest_table",
    "rounded_copy",
    "taps",
    "widened_pass",
]

_NEAREST = {
    "round_prefer_floor": "__builtin_elementwise_ceil({place} - 0.5)",
    "round_prefer_ceil": "__builtin_elementwise_floor({place} + 0.5)",
    "floor": "__builtin_elementwise_floor({place})",
    "ceil": "__builtin_elementwise_ceil({place})",
    "floor_up_ceil_down": (
        "({scale} < 1.0 ? __builtin_elementwise_ceil({place}) : __builtin_elementwise_floor({place}))"
    ),
}


def nearest_table(module: Module, number: int) -> Kernel:
    """For each place on axis `number` of the result the place on that of `x`, -1 where it is outside."""
    kernel = OpKernel(module, [INT64])
    op, axis = op_of(kernel.instruction, Resize), _axis(kernel, number)
    _check_not_empty(kernel, axis)
    with kernel.text.loop("to", "0", kernel.text.dim(axis.output)):
        kernel.text.line(f"y0[to] = {_nearest(kernel, op, axis)};")
    return kernel.kernel(1)


def nearest_resize(module: Module, tables: Sequence[int]) -> Kernel:
    """Every element of the result is the nearest one of `x`. `tables` are the axes that have one, the temporaries."""
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype], [INT64] * len(tables))
    text, op, x = kernel.text, op_of(kernel.instruction, Resize), kernel.operand(0)
    crop = op.coordinates == "tf_crop_and_resize"
    fill = scalar.apply("convert", [scalar.constant(op.extrapolation, FLOAT64)], [FLOAT64], result.dtype)
    outer, rank, steps = result.shape[:-1], result.rank, kernel.strides(x.shape)
    if rank == 0:
        text.line("y0[0] = x0[0];")
        return kernel.kernel(1)

    def place(axis: int, index: str) -> str:
        return f"temporary{tables.index(axis)}[{index}]" if axis in tables else index

    with kernel.share("row", kernel.count(outer)):
        names = [text.let("int64", place(axis, name)) for axis, name in enumerate(kernel.counters("row", outer, "i"))]
        outside = [f"{name} < 0" for axis, name in enumerate(names) if crop and axis in tables]
        base = text.let("int64", dot_text(names, steps[:-1]))
        size = text.let("int64", text.dim(result.shape[-1]))
        text.line(f"{scalar.storage_type(result.dtype)} *to = y0 + row * {size};")
        if outside:
            with text.block(f"if ({' || '.join(outside)})"):
                text.line(f"for (int64 i = 0; i < {size}; ++i) {scalar.store(result.dtype, 'to', 'i', fill)};")
                text.line("continue;")
        with text.loop("last", "0", size):
            if crop and rank - 1 in tables:
                text.line(f"const int64 from = {place(rank - 1, 'last')};")
                value = f"(from < 0 ? {fill} : {kernel.load(0, f'{base} + from')})"
                text.line(f"{scalar.store(result.dtype, 'to', 'last', value)};")
            else:
                text.line(f"to[last] = x0[{base} + {place(rank - 1, 'last')}];")
    return kernel.kernel(chunk_count(product(result.shape), product(outer)))


def _axis(kernel: OpKernel, number: int) -> ResizedAxis:
    return next(a for a in resized_axes(kernel.elements, kernel.instruction) if a.axis == number)


def _check_not_empty(kernel: OpKernel, axis: ResizedAxis) -> None:
    """An empty axis has no element to read."""
    if isinstance(axis.size, int) and axis.size > 0:
        return
    kernel.text.line(f"if ({kernel.text.dim(axis.size)} == 0 && {kernel.text.dim(axis.output)} != 0) {{")
    kernel.text.line("  argosy_fail(scratch, ARGOSY_SIZE, 0); return;")
    kernel.text.line("}")


def _nearest(kernel: OpKernel, op: Resize, axis: ResizedAxis) -> str:
    text = kernel.text
    size, output = text.dim(axis.size), text.dim(axis.output)
    place = text.let("float64", place_text(op.coordinates, axis, size, output, "to"))
    rounded = _NEAREST[op.nearest].format(place=place, scale=axis.scale)
    chosen = f"clamp_int64((int64){rounded}, 0, {size} - 1)"
    if op.coordinates == "tf_crop_and_resize":
        return f"{place} < 0.0 || {place} > (float64){size} - 1.0 ? -1 : {chosen}"
    # an axis that keeps its size is left alone, whatever the rule
    return f"{size} == {output} && {axis.scale} == 1.0 ? to : {chosen}"


def changed_axes(module: Module) -> list[int]:
    """The axes to which something happens."""
    trial = OpKernel(module, [])
    return [axis.axis for axis in resized_axes(trial.elements, trial.instruction) if not axis.still]


def taps(op: Resize) -> int:
    """Neighbours that an interpolation takes."""
    return 2 if op.mode == "linear" else 4


def interpolation_table(module: Module, number: int, wide: DType) -> Kernel:
    """For each place on axis `number` of the result its neighbours in `x` and their weights; -1 for one outside."""
    kernel = OpKernel(module, [INT64, wide])
    text, op, axis = kernel.text, op_of(kernel.instruction, Resize), _axis(kernel, number)
    _check_not_empty(kernel, axis)
    size, output, count = text.dim(axis.size), text.dim(axis.output), taps(op)
    kind = scalar.compute_type(wide)
    with text.loop("to", "0", output):
        place = text.let("float64", place_text(op.coordinates, axis, size, output, "to"))
        base = text.let("float64", f"__builtin_elementwise_ceil({place}) - 1.0")
        fraction, whole = text.let("float64", f"{place} - {base}"), text.let("int64", f"(int64){base}")
        text.line("float64 total = 0.0;")
        for tap in range(count):
            offset = tap - count // 2 + 1
            with text.block(""):
                text.line(f"const int64 tap = {offset};")
                weight = text.let("float64", _weight(kernel, op, "1.0", fraction, whole, size))
                text.line(f"total += {weight};")
                text.line(f"y0[to * {count} + {tap}] = clamp_int64({whole} + tap, 0, {size} - 1);")
                text.line(f"y1[to * {count} + {tap}] = ({kind}){weight};")
        if op.exclude_outside:
            with text.loop("tap", str(1 - count // 2), str(count // 2 + 1)), text.block("if (total != 0.0)"):
                weight = _weight(kernel, op, "1.0", fraction, whole, size)
                text.line(f"y1[to * {count} + tap + {count // 2 - 1}] = ({kind})({weight} / total);")
        if op.coordinates == "tf_crop_and_resize":
            text.line(f"if ({place} < 0.0 || {place} > (float64){size} - 1.0) y0[to * {count}] = -1;")
    return kernel.kernel(1)


def interpolation_pass(module: Module, number: int, shape: tuple[DimLike, ...], wide: DType, *, first: bool) -> Kernel:
    """The pass over axis `number` of a tensor of dims `shape`: the operand in the first pass, else a temporary.

    The other temporaries are the axis's table.
    """
    kernel = OpKernel(module, [wide], [INT64, wide] if first else [INT64, wide, wide])
    text, op, axis = kernel.text, op_of(kernel.instruction, Resize), _axis(kernel, number)
    size, output, count = text.let("int64", text.dim(axis.size)), text.let("int64", text.dim(axis.output)), taps(op)
    inner = text.let("int64", kernel.count(shape[number + 1 :]))
    kind = scalar.compute_type(wide)
    fill = scalar.constant(op.extrapolation, wide)

    def source(at: str) -> str:
        return f"({kind}){kernel.load(0, at)}" if first else f"temporary2[{at}]"

    def total(behind: str) -> str:
        parts = (
            f"{source(f'(before * {size} + index[{tap}]) * {inner} + {behind}')} * weight[{tap}]"
            for tap in range(count)
        )
        return " + ".join(parts)

    if number == len(shape) - 1:
        lines: DimLike = product(shape[:number])
        with kernel.share("before", text.dim(lines)), text.loop("to", "0", output):
            _table_entry(kernel, count, kind)
            value = total("0")
            if op.coordinates == "tf_crop_and_resize":
                value = f"index[0] < 0 ? {fill} : {value}"
            text.line(f"y0[before * {output} + to] = {value};")
    else:
        lines = product(shape[:number]) * axis.output
        with kernel.share("line", text.dim(lines)):
            text.line(f"const int64 before = line / {output}, to = line % {output};")
            _table_entry(kernel, count, kind)
            if op.coordinates == "tf_crop_and_resize":
                with text.block("if (index[0] < 0)"):
                    text.line(f"for (int64 k = 0; k < {inner}; ++k) y0[line * {inner} + k] = {fill};")
                    text.line("continue;")
            with text.loop("k", "0", inner):
                text.line(f"y0[line * {inner} + k] = {total('k')};")
    work = product(shape[:number]) * product(shape[number + 1 :]) * axis.output * count
    return kernel.kernel(chunk_count(work, lines))


def _table_entry(kernel: OpKernel, count: int, kind: str) -> None:
    kernel.text.line(f"const int64 *restrict index = temporary0 + to * {count};")
    kernel.text.line(f"const {kind} *restrict weight = temporary1 + to * {count};")


def widened_pass(module: Module, number: int, shape: tuple[DimLike, ...], wide: DType, *, first: bool) -> Kernel:
    """Like `interpolation_pass`, for a kernel that is widened by the scale: it may have any number of taps."""
    kernel = OpKernel(module, [wide], [] if first else [wide])
    text, op = kernel.text, op_of(kernel.instruction, Resize)
    axis = _axis(kernel, number)
    _check_not_empty(kernel, axis)
    size, output = text.dim(axis.size), text.let("int64", text.dim(axis.output))
    outer = text.let("int64", kernel.count(shape[:number]))
    inner = text.let("int64", kernel.count(shape[number + 1 :]))
    kind = scalar.compute_type(wide)
    stretch = text.let("float64", f"{axis.scale} < 1.0 ? {axis.scale} : 1.0" if op.antialias else "1.0")
    reach = "1.0" if op.mode == "linear" else "2.0"
    first_tap = text.let("int64", f"(int64)__builtin_elementwise_floor(-{reach} / {stretch}) + 1")
    with kernel.share("to", output):
        place = text.let("float64", place_text(op.coordinates, axis, size, output, "to"))
        base = text.let("float64", f"__builtin_elementwise_ceil({place}) - 1.0")
        fraction = text.let("float64", f"{place} - {base}")
        whole = text.let("int64", f"(int64){base}")
        total = "1.0"
        if op.exclude_outside or op.antialias:
            total = text.fresh("total")
            text.line(f"float64 {total} = 0.0;")
            with text.loop("tap", first_tap, f"2 - {first_tap}"):
                text.line(f"{total} += {_weight(kernel, op, stretch, fraction, whole, size)};")
            text.line(f"{total} = {total} == 0.0 ? 1.0 : {total};")
        with text.loop("tap", first_tap, f"2 - {first_tap}"):
            weight = _weight(kernel, op, stretch, fraction, whole, size)
            factor = text.let(kind, f"({kind})({weight} / {total})")
            source = text.let("int64", f"clamp_int64({whole} + tap, 0, {size} - 1)")
            with text.loop("before", "0", outer), text.loop("behind", "0", inner):
                at = f"(before * {size} + {source}) * {inner} + behind"
                value = f"({kind}){kernel.load(0, at)}" if first else scalar.load(wide, "temporary0", at)
                target = f"y0[(before * {output} + to) * {inner} + behind]"
                text.line(f"{target} = (tap == {first_tap} ? 0 : {target}) + {value} * {factor};")
        if op.coordinates == "tf_crop_and_resize":
            with (
                text.block(f"if ({place} < 0.0 || {place} > (float64){size} - 1.0)"),
                text.loop("before", "0", outer),
                text.loop("behind", "0", inner),
            ):
                fill = scalar.constant(op.extrapolation, wide)
                text.line(f"y0[(before * {output} + to) * {inner} + behind] = {fill};")
    work = product(shape[:number]) * product(shape[number + 1 :]) * axis.output * 4
    return kernel.kernel(chunk_count(work, axis.output))


def _weight(kernel: OpKernel, op: Resize, stretch: str, fraction: str, whole: str, size: str) -> str:
    """The weight of tap number `tap`."""
    text = kernel.text
    distance = text.let("float64", f"__builtin_elementwise_abs(((float64)tap - {fraction}) * {stretch})")
    if op.mode == "linear":
        weight = f"({distance} < 1.0 ? 1.0 - {distance} : 0.0)"
    else:
        weight = f"cubic_weight({distance}, {scalar.constant(op.cubic_a, FLOAT64)})"
    if op.exclude_outside:
        weight = f"({whole} + tap < 0 || {whole} + tap >= {size} ? 0.0 : {weight})"
    return weight


def rounded_copy(module: Module, wide: DType, *, first: bool) -> Kernel:
    """The result from the last pass: integers are rounded and clipped."""
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype], [] if first else [wide])
    with kernel.share("i", kernel.count(result.shape)):
        value = kernel.load(0, "i") if first else "temporary0[i]"
        if result.dtype.is_integer and not first:
            bits = result.dtype.bits - (result.dtype.kind == "int")
            low = -(2**bits) if result.dtype.kind == "int" else 0
            low_text, high_text = scalar.constant(low, result.dtype), scalar.constant(2**bits - 1, result.dtype)
            near = f"round_float64({value})"
            inside = scalar.apply("convert", [near], [wide], result.dtype)
            value = (
                f"({near} >= {scalar.constant(float(2**bits), FLOAT64)} ? {high_text} : "
                f"{near} < {scalar.constant(float(low), FLOAT64)} ? {low_text} : {inside})"
            )
        elif not first:
            value = scalar.apply("convert", [value], [wide], result.dtype)
        kernel.text.line(kernel.store(0, result.dtype, "i", value))
    return kernel.kernel(chunk_count(product(result.shape), product(result.shape)))
