"""Products as plain loops: a sum for each element of the result, for every type, shape and view.

What the tiled kernels (`gemm`, `direct_conv`) do not take comes here: it is right for everything and fast for
nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from argosy.ir import access as maps
from argosy.ir.access import axis_index
from argosy.ir.dim import DimLike, Symbol, dim_min, equal, symbol_dim
from argosy.ir.dtype import DType
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.shapes import product
from argosy.ops.window import extents, resolve_pads
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.loops import chunked_loops
from argosy.targets.lowering.accesses import axes_access, op_of, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["conv_loops", "conv_transpose_loops", "counter", "dot_loops", "operand_index"]


def counter(name: str, size: DimLike) -> DimLike:
    """A C variable that runs over an axis of `size`, as an index; 0 where there is one place only."""
    if isinstance(size, int) and size == 1:
        return 0
    return symbol_dim(Symbol(f"@{name}", 0, size - 1 if isinstance(size, int) else None))


def operand_index(result: Sequence[DimLike], operand: Sequence[DimLike]) -> list[DimLike]:
    """Indices of the leading (batch) axes of an operand of a product, which broadcast to those of the result."""
    offset = len(result) - len(operand)
    indices: list[DimLike] = []
    for axis, size in enumerate(operand):
        index = axis_index(offset + axis, result[offset + axis])
        # Where only the run knows whether the axis repeats, so does the index.
        indices.append(index if equal(size, result[offset + axis]) else dim_min(index, size - 1))
    return indices


def dot_loops(module: Module, anchor: Instruction) -> Kernel:
    """A dot: the loop over the summed axis inside loops over the result."""
    left, right, result = present(anchor, 0), present(anchor, 1), anchor.result()
    depth = left.shape[-1]
    batch = result.shape[: result.rank - (left.rank > 1) - (right.rank > 1)]
    row = axis_index(len(batch), result.shape[len(batch)]) if left.rank > 1 else None
    column = axis_index(result.rank - 1, result.shape[-1]) if right.rank > 1 else None

    def body(writer: KernelWriter) -> str:
        total = _zero(writer, result.dtype)
        with writer.text.loop("k", "0", writer.text.dim(depth)):
            k = counter("k", depth)
            a = [*operand_index(batch, left.shape[:-2]), *([] if row is None else [row]), k]
            b = [*operand_index(batch, right.shape[:-2]), k, *([] if column is None else [column])]
            with writer.elements.scope():
                x = writer.elements.of(left, axes_access(result.shape, left.shape, a))
                y = writer.elements.of(right, axes_access(result.shape, right.shape, b))
                _add_product(writer, total, result.dtype, (x, left.dtype), (y, right.dtype))
        return total

    return _kernel(module, anchor, product(result.shape) * depth, body)


def conv_loops(module: Module, anchor: Instruction) -> Kernel:
    """A convolution of any rank, stride, dilation and group."""
    op = op_of(anchor, Conv)
    x, weight, result = present(anchor, 0), present(anchor, 1), anchor.result()
    kernel = weight.shape[2:]
    pads = resolve_pads(op.auto_pad, x.shape[2:], extents(kernel, op.dilations), op.strides, op.pads)
    per_group = weight.shape[1]

    def body(writer: KernelWriter) -> str:
        text = writer.text
        first = "0"
        if op.group > 1:
            outputs = text.dim(_per_group(weight.shape[0], op.group))
            first = text.let("int64", f"{axis_name(1)} / {outputs} * {text.dim(per_group)}")
        total = _zero(writer, result.dtype)
        with contextlib.ExitStack() as stack:
            stack.enter_context(text.loop("c", "0", text.dim(per_group)))
            channel = counter("c", per_group)
            if op.group > 1:
                text.line(f"const int64 cx = {first} + c;")
                channel = counter("cx", x.shape[1])
            places: list[DimLike] = [axis_index(0, x.shape[0]), channel]
            taps: list[DimLike] = [axis_index(1, weight.shape[0]), counter("c", per_group)]
            for axis, (size, count, stride, dilation) in enumerate(
                zip(x.shape[2:], kernel, op.strides, op.dilations, strict=True)
            ):
                stack.enter_context(text.loop(f"r{axis}", "0", text.dim(count)))
                taps.append(counter(f"r{axis}", count))
                at = f"{axis_name(axis + 2)} * {stride} - {text.dim(pads[axis])} + r{axis} * {dilation}"
                text.line(f"const int64 p{axis} = {at};")
                text.line(f"if (p{axis} < 0 || p{axis} >= {text.dim(size)}) continue;")
                places.append(counter(f"p{axis}", size))
            stack.enter_context(writer.elements.scope())
            value = writer.elements.of(x, axes_access(result.shape, x.shape, places))
            factor = writer.elements.of(weight, axes_access(result.shape, weight.shape, taps))
            _add_product(writer, total, result.dtype, (value, x.dtype), (factor, weight.dtype))
        return _with_bias(writer, anchor, total)

    return _kernel(module, anchor, product(result.shape) * product(weight.shape[1:]), body)


def conv_transpose_loops(module: Module, anchor: Instruction) -> Kernel:
    """A transposed convolution: for each element of the result, what the inputs add to it."""
    op = op_of(anchor, ConvTranspose)
    x, weight, result = present(anchor, 0), present(anchor, 1), anchor.result()
    kernel = weight.shape[2:]
    begins = op.geometry(x.shape[2:], kernel)[1]
    per_group = _per_group(x.shape[1], op.group)

    def body(writer: KernelWriter) -> str:
        text = writer.text
        outputs = text.dim(weight.shape[1])
        first = "0"
        if op.group > 1:
            first = text.let("int64", f"{axis_name(1)} / {outputs} * {text.dim(per_group)}")
        output = text.let("int64", f"{axis_name(1)} % {outputs}")
        total = _zero(writer, result.dtype)
        with contextlib.ExitStack() as stack:
            stack.enter_context(text.loop("c", "0", text.dim(per_group)))
            text.line(f"const int64 cx = {first} + c;")
            channel = counter("cx", x.shape[1])
            places: list[DimLike] = [axis_index(0, x.shape[0]), channel]
            taps: list[DimLike] = [channel, counter(output, weight.shape[1])]
            for axis, (size, count, stride, dilation) in enumerate(
                zip(x.shape[2:], kernel, op.strides, op.dilations, strict=True)
            ):
                stack.enter_context(text.loop(f"r{axis}", "0", text.dim(count)))
                taps.append(counter(f"r{axis}", count))
                at = f"{axis_name(axis + 2)} + {text.dim(begins[axis])} - r{axis} * {dilation}"
                text.line(f"const int64 q{axis} = {at}, p{axis} = q{axis} / {stride};")
                text.line(f"if (q{axis} < 0 || q{axis} % {stride} || p{axis} >= {text.dim(size)}) continue;")
                places.append(counter(f"p{axis}", size))
            stack.enter_context(writer.elements.scope())
            value = writer.elements.of(x, axes_access(result.shape, x.shape, places))
            factor = writer.elements.of(weight, axes_access(result.shape, weight.shape, taps))
            _add_product(writer, total, result.dtype, (value, x.dtype), (factor, weight.dtype))
        return _with_bias(writer, anchor, total)

    return _kernel(module, anchor, product(result.shape) * per_group * product(kernel), body)


def _per_group(size: DimLike, group: int) -> DimLike:
    return size // group


def _kernel(module: Module, anchor: Instruction, work: DimLike, body: Callable[[KernelWriter], str]) -> Kernel:
    """Loops over the result, `body` for the sum of one element, and what takes it behind."""
    root = module.results[0]
    writer = KernelWriter(module, [root.dtype])

    def one() -> None:
        writer.elements.given[anchor.result()] = body(writer)
        place = maps.identity(root.shape)
        value = writer.elements.of(root, place)
        writer.text.line(f"{scalar.store(root.dtype, writer.result(), writer.elements.offset(place), value)};")

    with writer.elements.scope():
        pieces = chunked_loops(writer.text, root.shape, one)
    return writer.kernel(chunk_count(work, pieces))


def _zero(writer: KernelWriter, dtype: DType) -> str:
    """A variable that starts at zero, in the compute type of `dtype`; its name."""
    total = writer.text.fresh("sum")
    writer.text.line(f"{scalar.compute_type(dtype)} {total} = {scalar.constant(0, dtype)};")
    return total


def _add_product(
    writer: KernelWriter, total: str, dtype: DType, left: tuple[str, DType], right: tuple[str, DType]
) -> None:
    """`total += left * right` in the compute type of `dtype`; of floats with one rounding."""
    kind = scalar.compute_type(dtype)
    if dtype.kind == "complex":
        both = scalar.apply("mul", [left[0], right[0]], [left[1], right[1]], dtype)
        writer.text.line(f"{total} = {scalar.apply('add', [total, both], [dtype, dtype], dtype)};")
        return
    a, b = (f"({kind}){name}" if scalar.compute_type(own) != kind else name for name, own in (left, right))
    if dtype.is_float:
        writer.text.line(f"{total} = muladd({a}, {b}, {total});")
        return
    both = scalar.apply("mul", [a, b], [dtype, dtype], dtype)
    writer.text.line(f"{total} = {scalar.apply('add', [total, both], [dtype, dtype], dtype)};")


def _with_bias(writer: KernelWriter, anchor: Instruction, total: str) -> str:
    bias = anchor.operands[2] if len(anchor.operands) > 2 else None
    if bias is None:
        return total
    result = anchor.result()
    access = axes_access(result.shape, bias.shape, [axis_index(1, result.shape[1])])
    value: Value = bias
    name = writer.elements.of(value, access)
    dtype = result.dtype
    return writer.elements.let(dtype, scalar.apply("add", [total, name], [dtype, dtype], dtype))
