"""Kernels of resize: the nearest elements in one pass, interpolation one axis after the other."""

from __future__ import annotations

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64, DType
from argosy.ir.module import Module
from argosy.ops.resize import Resize
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.element import op_of
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel, dot_text
from argosy.targets.cpu.codegen.resize_axes import ResizedAxis, place_text, resized_axes

__all__ = ["interpolation_axes", "interpolation_pass", "nearest_resize", "rounded_copy"]

_NEAREST = {
    "round_prefer_floor": "__builtin_elementwise_ceil({place} - 0.5)",
    "round_prefer_ceil": "__builtin_elementwise_floor({place} + 0.5)",
    "floor": "__builtin_elementwise_floor({place})",
    "ceil": "__builtin_elementwise_ceil({place})",
    "floor_up_ceil_down": (
        "({scale} < 1.0 ? __builtin_elementwise_ceil({place}) : __builtin_elementwise_floor({place}))"
    ),
}


def nearest_resize(module: Module) -> Kernel:
    """Every element of the result is the nearest one of `x`."""
    kernel = OpKernel(module, [module.results[0].dtype])
    text, op = kernel.text, op_of(kernel.instruction, Resize)
    x, result = kernel.operand(0), kernel.instruction.result()
    axes = {axis.axis: axis for axis in resized_axes(kernel.elements, kernel.instruction) if not axis.still}
    for axis in axes.values():
        _check_not_empty(kernel, axis)
    outer, rank = result.shape[:-1], result.rank
    source = kernel.strides(x.shape)

    def sample(axis: int, index: str) -> tuple[str, str]:
        """The place on an axis of `x`, and where it is outside."""
        if axis not in axes:
            return index, ""
        return _nearest(kernel, op, axes[axis], index)

    if rank == 0:
        text.line(kernel.store(0, x.dtype, "0", kernel.load(0, "0")))
        return kernel.kernel(1)
    with kernel.share("row", kernel.count(outer)):
        names = kernel.counters("row", outer, "i")
        chosen = [sample(axis, name) for axis, name in enumerate(names)]
        base = text.let("int64", dot_text([place for place, _ in chosen], source[:-1]))
        with text.loop("last", "0", text.dim(result.shape[-1])):
            chosen.append(sample(rank - 1, "last"))
            value = kernel.load(0, f"{base} + {chosen[-1][0]}")
            outside = [test for _, test in chosen if test]
            if outside:
                fill = scalar.constant(op.extrapolation, x.dtype)
                value = f"({' || '.join(outside)} ? {fill} : {value})"
            text.line(kernel.store(0, x.dtype, f"row * {text.dim(result.shape[-1])} + last", value))
    return kernel.kernel(chunk_count(product(result.shape), product(outer)))


def _check_not_empty(kernel: OpKernel, axis: ResizedAxis) -> None:
    """An empty axis has no element to read."""
    if isinstance(axis.size, int) and axis.size > 0:
        return
    kernel.text.line(f"if ({kernel.text.dim(axis.size)} == 0 && {kernel.text.dim(axis.output)} != 0) {{")
    kernel.text.line("  argosy_fail(scratch, ARGOSY_SIZE, 0); return;")
    kernel.text.line("}")


def _nearest(kernel: OpKernel, op: Resize, axis: ResizedAxis, index: str) -> tuple[str, str]:
    text = kernel.text
    size, output = text.dim(axis.size), text.dim(axis.output)
    place = text.let("float64", place_text(op.coordinates, axis, size, output, index))
    rounded = _NEAREST[op.nearest].format(place=place, scale=axis.scale)
    chosen = f"clamp_int64((int64){rounded}, 0, {size} - 1)"
    if op.coordinates == "tf_crop_and_resize":
        return text.let("int64", chosen), f"({place} < 0.0 || {place} > (float64){size} - 1.0)"
    # an axis that keeps its size is left alone, whatever the rule
    still = f"{size} == {output} && {axis.scale} == 1.0"
    return text.let("int64", f"{still} ? {index} : {chosen}"), ""


def interpolation_axes(module: Module) -> list[int]:
    """The axes that need a pass."""
    trial = OpKernel(module, [])
    return [axis.axis for axis in resized_axes(trial.elements, trial.instruction) if not axis.still]


def interpolation_pass(module: Module, number: int, shape: tuple[DimLike, ...], wide: DType, *, first: bool) -> Kernel:
    """The pass over axis `number` of a tensor of dims `shape`: the operand in the first pass, else the temporary."""
    kernel = OpKernel(module, [wide], [] if first else [wide])
    text, op = kernel.text, op_of(kernel.instruction, Resize)
    axis = next(a for a in resized_axes(kernel.elements, kernel.instruction) if a.axis == number)
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
