"""Pooling as plain loops over windows: max, average and p-norm, with every option, of any rank."""

from __future__ import annotations

import contextlib

from argosy.ir import access as maps
from argosy.ir.access import axis_index
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32, INT64, DType
from argosy.ir.module import Instruction, Module
from argosy.ops.pooling import Pool
from argosy.ops.shapes import product
from argosy.ops.window import extents, resolve_pads
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.loops import chunked_loops
from argosy.targets.cpu.codegen.product_loops import counter
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["least", "pool_loops"]


def pool_loops(module: Module, anchor: Instruction) -> Kernel:
    """A loop over the window of each element of the result."""
    op = op_of(anchor, Pool)
    root = module.results[0]
    if op.with_indices and (root.instruction is not anchor or len(module.results) != 2):
        raise DeclinedError("a pool with indices that is fused with other ops")
    writer = KernelWriter(module, [root.dtype, *([INT64] if op.with_indices else [])])
    text = writer.text

    def body() -> None:
        value, where = _window(writer, anchor)
        writer.elements.given[anchor.result()] = value
        place = maps.identity(root.shape)
        result = writer.elements.of(root, place)
        at = writer.elements.offset(place)
        text.line(f"{scalar.store(root.dtype, writer.result(), at, result)};")
        if op.with_indices:
            text.line(f"{writer.result(1)}[{at}] = {where};")

    with writer.elements.scope():
        pieces = chunked_loops(text, root.shape, body)
    work = product(root.shape) * product(op.kernel)
    return writer.kernel(chunk_count(work, pieces))


def _window(writer: KernelWriter, anchor: Instruction) -> tuple[str, str]:
    """Write the loop over one window; the variable with the result, and that with the position of the greatest."""
    op, x, result = op_of(anchor, Pool), present(anchor, 0), anchor.result()
    text, kind = writer.text, scalar.compute_type(x.dtype)
    rank = x.rank - 2
    sizes = x.shape[2:]
    pads = resolve_pads(op.auto_pad, sizes, extents(op.kernel, op.dilations), op.strides, op.pads)
    start = least(x.dtype) if op.kind == "max" else scalar.constant(0, x.dtype)
    total, count, where = text.fresh("acc"), text.fresh("count"), text.fresh("at")
    text.line(f"{kind} {total} = {start};")
    if op.kind == "average":
        text.line(f"int64 {count} = 0;")
    if op.with_indices:
        text.line(f"int64 {where} = -1;")
    with contextlib.ExitStack() as stack:
        places: list[DimLike] = [axis_index(axis, result.shape[axis]) for axis in (0, 1)]
        inside, counted = [], []
        for axis in range(rank):
            stack.enter_context(text.loop(f"r{axis}", "0", str(op.kernel[axis])))
            at = f"{axis_name(axis + 2)} * {op.strides[axis]} - {text.dim(pads[axis])} + r{axis} * {op.dilations[axis]}"
            size = text.dim(sizes[axis])
            text.line(f"const int64 p{axis} = {at};")
            places.append(counter(f"p{axis}", sizes[axis]))
            inside.append(f"p{axis} >= 0 && p{axis} < {size}")
            counted.append(f"p{axis} < {size} + {text.dim(pads[rank + axis])}")
        if op.kind == "average" and op.count_include_pad:
            text.line(f"{count} += {' && '.join(counted)};")
        text.line(f"if (!({' && '.join(inside)})) continue;")
        stack.enter_context(writer.elements.scope())
        value = writer.elements.of(x, axes_access(result.shape, x.shape, places))
        if op.kind == "max" and op.with_indices:
            nan = f" || ({value} != {value} && {total} == {total})" if x.dtype.is_float else ""
            with text.block(f"if ({where} < 0 || {value} > {total}{nan})"):
                text.line(f"{total} = {value}; {where} = {_flat(writer, op, sizes)};")
        elif op.kind == "max":
            text.line(f"{total} = {scalar.apply('max', [total, value], [x.dtype, x.dtype], x.dtype)};")
        else:
            term = value if op.kind == "average" else _power(value, op.p, x.dtype)
            text.line(f"{total} = {total} + {term};")
            if op.kind == "average" and not op.count_include_pad:
                text.line(f"{count} += 1;")
    if op.kind == "average":
        text.line(f"{total} = {total} / ({kind})({count} > 0 ? {count} : 1);")
    if op.kind == "lp":
        text.line(f"{total} = {_root(total, op.p, x.dtype)};")
    if op.with_indices:
        plane = text.dim(product(sizes))
        lead = text.dim(axis_index(0, x.shape[0]) * x.shape[1] + axis_index(1, x.shape[1]))
        text.line(f"{where} += {lead} * {plane};")
    return total, where


def _flat(writer: KernelWriter, op: Pool, sizes: tuple[DimLike, ...]) -> str:
    """The position in the flattened spatial axes, the last one fastest or the first."""
    axes = range(len(sizes)) if not op.column_major else reversed(range(len(sizes)))
    text = ""
    for axis in axes:
        text = f"({text}) * {writer.text.dim(sizes[axis])} + p{axis}" if text else f"p{axis}"
    return text


def least(dtype: DType) -> str:
    """The least value of a type: what is never the greatest of a window."""
    if dtype.is_float:
        return scalar.constant(float("-inf"), dtype)
    return scalar.constant(-(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0, dtype)


def _power(value: str, p: int, dtype: DType) -> str:
    size = scalar.apply("abs", [value], [dtype], dtype)
    if p == 1:
        return size
    if p == 2:
        return f"{value} * {value}"
    wide = dtype.compute
    return scalar.apply("pow", [size, scalar.constant(p, wide)], [wide, wide], wide)


def _root(value: str, p: int, dtype: DType) -> str:
    wide = dtype.compute if dtype.is_float else FLOAT32
    if p == 1:
        return value
    if p == 2:
        return scalar.apply("sqrt", [value], [wide], wide)
    return scalar.apply("pow", [value, scalar.constant(1.0 / p, wide)], [wide, wide], wide)
